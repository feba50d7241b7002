package statefile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock is the ownership of a folder. It ends with Unlock or with the process, however that ends.
type Lock struct{ dir *os.File }

// LockDir makes this process the only owner of a folder, which must exist; the empty path is the
// working directory. It does not wait for another owner. Systems without flock only have the checks
// of the path.
func LockDir(path string) (*Lock, error) {
	if path == "" {
		wd, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find working directory: %w", err)
		}
		path = wd
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := claim(dir, path); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Lock{dir: dir}, nil
}

func claim(dir *os.File, path string) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &os.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err := flock(dir); err != nil {
		return fmt.Errorf("cannot flock directory %s - %w (possibly in use by another instance of nsqd)", path, err)
	}
	return nil
}

// Unlock gives the folder up.
func (l *Lock) Unlock() error { return l.dir.Close() }
