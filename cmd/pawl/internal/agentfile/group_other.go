//go:build !unix

package agentfile

import "os/exec"

// apart leaves a program with the worker.
func apart(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Kill() }
}

func endAll(*exec.Cmd) {}
