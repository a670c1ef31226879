package devtest

import "syscall"

// ChildOf makes a process end with the one that started it.
func ChildOf() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
