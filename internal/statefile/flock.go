//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package statefile

import (
	"os"
	"syscall"
)

// flock takes the exclusive lock of an open folder, or fails at once.
func flock(dir *os.File) error {
	return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
