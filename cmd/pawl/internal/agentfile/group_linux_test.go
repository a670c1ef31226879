package agentfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Ctrl-C in the worker's terminal is sent to the worker's process group, in which no tool is.
func TestOwnGroup(t *testing.T) {
	got := run(t, `    command: [sh, -c, 'cut -d" " -f1,5 /proc/$$/stat']`+"\n", "x")
	fields := strings.Fields(strings.TrimPrefix(got, "It says: "))
	if len(fields) != 2 || fields[0] != fields[1] {
		t.Errorf("process and group are %q", got)
	}
}

// What a program has started ends with it when its time is over.
func TestEndsWithChildren(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	run(t, "    timeout: 500ms\n    command: [sh, -c, 'sleep 60 & echo $! > "+pid+"; trap \"\" INT; wait; wait']\n", "x")
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if !alive(t, strings.TrimSpace(string(text))) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the child is still there")
		}
	}
}

// alive says that a process runs, and is no zombie.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return !os.IsNotExist(err) && err != syscall.ESRCH
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
