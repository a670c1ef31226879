//go:build unix

package scenarios

import "syscall"

// stops has the process stand still, as if its machine slept.
func (k *worker) stops() { k.signal(syscall.SIGSTOP) }

// continues has it go on.
func (k *worker) continues() { k.signal(syscall.SIGCONT) }

func (k *worker) signal(s syscall.Signal) {
	k.w.Helper()
	if err := k.cmd.Process.Signal(s); err != nil {
		k.w.Fatal(err)
	}
}
