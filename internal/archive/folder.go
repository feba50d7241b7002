package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"nsq/internal/statefile"
)

// Modes of what is created, before umask.
const (
	folderMode = 0o770
	fileMode   = 0o666
)

// makeFolders makes a folder and those above it that are missing, to stay.
func makeFolders(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := makeFolders(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

// syncFolder makes the names in a folder survive a loss of power, where that is possible: not in every
// file system, and not without the right to read the folder.
func syncFolder(path string) error {
	err := statefile.SyncDir(path)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// exists says whether there is anything at the path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
