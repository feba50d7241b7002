//go:build !linux

package testutil

import "syscall"

// noOrphan has no means here: a program outlives a test that crashes.
func noOrphan() *syscall.SysProcAttr { return nil }
