//go:build !linux

package temporal

import "syscall"

func childOf() *syscall.SysProcAttr { return nil }
