//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A store that this user may only read, or not even that, is refused by every command, with the exit code of stores.
func TestReadOnlyStore(t *testing.T) {
	dir, err := os.MkdirTemp("", "pawl-access") // not t.TempDir, which no other user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command(binary, "demo")
	cmd.Dir, cmd.Env = dir, cleanEnv()
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("the demo does not wait:\n%s", out)
	}
	store := filepath.Join(dir, "pawl-demo")
	t.Cleanup(func() { os.Chmod(store, 0o700) })
	for name, mode := range map[string]struct{ dir, file os.FileMode }{"read only": {0o555, 0o444}, "closed file": {0o555, 0}, "closed directory": {0, 0o444}} {
		t.Run(name, func(t *testing.T) {
			chmod(t, 0o755, dir, filepath.Dir(binary))
			chmod(t, 0o755, store)
			chmod(t, mode.file, filepath.Join(store, "pawl.db"), filepath.Join(store, "shop.db"))
			chmod(t, mode.dir, store)
			for _, args := range []string{"runs", "show ticket-1001", "approve ticket-1001", "resume ticket-1001", "demo"} {
				cmd := exec.Command(binary, strings.Fields(args)...)
				cmd.Dir, cmd.Env = dir, cleanEnv()
				if os.Geteuid() == 0 { // whom no mode keeps out
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				}
				out, _ := cmd.CombinedOutput()
				if code := cmd.ProcessState.ExitCode(); code != 4 || strings.Contains(string(out), "Go on with") {
					t.Errorf("pawl %s: exit code %d\n%s", args, code, out)
				}
			}
		})
	}
}

func chmod(t *testing.T, mode os.FileMode, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
}
