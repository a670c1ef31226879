package pgtest

import "syscall"

// attributes see to it that the server ends with the test.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }
