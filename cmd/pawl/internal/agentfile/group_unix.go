//go:build unix

package agentfile

import (
	"os/exec"
	"syscall"
)

// apart gives a program a process group of its own: a Ctrl-C that is meant for the worker does not reach it, and what it starts
// is told to end with it.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}

// endAll kills what is left of the group of a program that was told to end.
func endAll(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there is nothing left, most often
	}
}
