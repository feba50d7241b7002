//go:build !windows

package statefile

import (
	"errors"
	"os"
)

// syncDir makes the names in a folder safe.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
