//go:build !linux

package devtest

import "syscall"

// ChildOf says nothing: only Linux ends a process with its parent.
func ChildOf() *syscall.SysProcAttr { return nil }
