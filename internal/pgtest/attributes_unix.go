//go:build unix && !linux

package pgtest

import "syscall"

func attributes() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }
