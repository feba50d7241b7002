// Package statefile keeps small files and their folder safe: a file is replaced as a whole or not
// at all, also when the machine dies meanwhile, and a folder has one owner.
//
// It does not know what is in the files.
//
// Source: nsqd-storage spec, sections 1 to 3.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// disk has the steps of which the order matters, so that tests can watch them and make them fail.
type disk struct {
	sync    func(*os.File) error
	rename  func(from, to string) error
	syncDir func(path string) error
}

var osDisk = disk{sync: (*os.File).Sync, rename: os.Rename, syncDir: syncDir}

// Write replaces the file at path by one with this content and mode. Whoever reads the path at any
// moment finds the old content or the new one; when Write returns nil, the new one survives a loss
// of power. On failure the old file is still there, but for one case: an error of the folder's
// fsync leaves the new one, of which nobody knows whether it is going to stay.
//
// Two calls for one path at the same time are safe, one of them wins.
func Write(path string, data []byte, perm fs.FileMode) error {
	return osDisk.write(path, data, perm)
}

// Probe finds out whether Write would work with this content, without replacing anything: it writes
// the temporary file, down to the disk, and removes it.
func Probe(path string, data []byte, perm fs.FileMode) error {
	temp, err := osDisk.stage(path, data, perm)
	if err != nil {
		return err
	}
	return os.Remove(temp)
}

func (d disk) write(path string, data []byte, perm fs.FileMode) error {
	temp, err := d.stage(path, data, perm)
	if err != nil {
		return err
	}
	if err := d.rename(temp, path); err != nil {
		return discard(temp, err)
	}
	if err := d.syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// stage writes the file that is to replace the one at path, and returns its name. After an error
// there is no such file.
func (d disk) stage(path string, data []byte, perm fs.FileMode) (temp string, err error) {
	temp = fmt.Sprintf("%s.%d.tmp", path, rand.Int64())
	if err := d.create(temp, data, perm); err != nil {
		return "", discard(temp, err)
	}
	return temp, nil
}

// discard removes a temporary file after a failure, and returns all that went wrong.
func discard(temp string, err error) error {
	if gone := os.Remove(temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return fmt.Errorf("%w; remove temporary file: %w", err, gone)
	}
	return err
}

// create writes a file that is not there yet, down to the disk.
func (d disk) create(path string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = d.sync(f)
	}
	return errors.Join(err, f.Close())
}
