package temporal

import "syscall"

// childOf makes a process end with the one that started it.
func childOf() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
