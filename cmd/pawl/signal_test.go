package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A process that is told to stop in the middle of a refund stops, says how to go on, and going on pays once.
func TestInterrupt(t *testing.T) {
	for name, sig := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			k := &killer{T: t, ctx: t.Context(), dir: t.TempDir()}
			cmd := exec.Command(binary, "demo", "--yes", "--hang-in-refund")
			cmd.Dir, cmd.Env = k.dir, cleanEnv()
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			for sc := bufio.NewScanner(stderr); sc.Scan(); {
				said.WriteString(sc.Text() + "\n")
				if strings.Contains(sc.Text(), "hangs before it can say so") {
					k.drivenElsewhere()
					if err := cmd.Process.Signal(sig); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 130 {
				t.Errorf("exit code %d, want 130", got)
			}
			if want := "pawl: interrupted\nNothing is lost. Go on with:\n"; !strings.Contains(said.String(), want) {
				t.Errorf("it said:\n%s", said.String())
			}
			k.goOn(name)
		})
	}
}

// drivenElsewhere checks what others are told while a process drives the run.
func (k *killer) drivenElsewhere() {
	k.Helper()
	if code, out := k.pawl("resume", "ticket-1001", "--yes"); code != 5 || !strings.Contains(out, "the run is being driven elsewhere") {
		k.Errorf("a second resume: exit code %d\n%s", code, out)
	}
	if code, out := k.pawl("runs"); code != 0 || !strings.Contains(out, "ticket-1001  running") {
		k.Errorf("runs: exit code %d\n%s", code, out)
	}
}
