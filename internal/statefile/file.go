package statefile

import (
	"errors"
	"os"
	"syscall"
)

// ErrLocked is the error of TryLock when somebody else has the lock.
var ErrLocked = errors.New("file is locked")

// TryLock takes the exclusive, advisory lock of an open file, which ends when the file is closed. It
// does not wait: if another open file has it, in this process or not, the error is ErrLocked. Any other
// error means that there are no such locks here.
func TryLock(f *os.File) error {
	err := flock(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// SyncDir makes the names in a folder survive a loss of power.
func SyncDir(path string) error { return syncDir(path) }
