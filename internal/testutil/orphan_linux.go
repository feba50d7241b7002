package testutil

import "syscall"

// noOrphan makes a program die with the test that started it, however that ends.
func noOrphan() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
