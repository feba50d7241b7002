package diskq

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nsq/internal/statefile"
)

const (
	marker     = ".diskqueue."
	metaSuffix = "meta.dat"
	dataSuffix = ".dat"
	badSuffix  = ".bad"
	tempSuffix = ".tmp"

	// maxFileNumber bounds what is believed to be the number of a data file, so that counting up
	// from it cannot overflow.
	maxFileNumber = 1 << 40
)

// files is what a folder holds of one queue.
type files struct {
	data  []int64  // numbers, ascending
	meta  bool     // the metadata file is there
	temps []string // paths of unfinished metadata
	bad   []string // paths of data set aside after damage
}

// kind says what part of a queue a file is.
type kind int

const (
	foreign kind = iota
	metaFile
	tempFile
	dataFile
	badFile
)

// parseFileName splits the name of a file into the queue it belongs to and what it is there;
// number is that of a data file.
func parseFileName(file string) (queue string, what kind, number int64) {
	at := strings.LastIndex(file, marker)
	if at <= 0 {
		return "", foreign, 0
	}
	queue, part := file[:at], file[at+len(marker):]
	if part == metaSuffix {
		return queue, metaFile, 0
	}
	if n, ok := strings.CutPrefix(part, metaSuffix+"."); ok {
		if n, ok = strings.CutSuffix(n, tempSuffix); ok && isDigits(n) {
			return queue, tempFile, 0
		}
		return "", foreign, 0
	}
	what = dataFile
	if whole, ok := strings.CutSuffix(part, badSuffix); ok {
		part, what = whole, badFile
	}
	digits, ok := strings.CutSuffix(part, dataSuffix)
	if !ok || !isDigits(digits) {
		return "", foreign, 0
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number > maxFileNumber || fmt.Sprintf("%06d", number) != digits {
		return "", foreign, 0
	}
	return queue, what, number
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// list reads the folder once and sorts what it finds by queue.
func list(path string) (map[string]*files, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("list data path: %w", err)
	}
	found := make(map[string]*files)
	for _, entry := range entries {
		queue, what, number := parseFileName(entry.Name())
		if what == foreign || entry.IsDir() {
			continue
		}
		f := found[queue]
		if f == nil {
			f = new(files)
			found[queue] = f
		}
		full := filepath.Join(path, entry.Name())
		switch what {
		case metaFile:
			f.meta = true
		case tempFile:
			f.temps = append(f.temps, full)
		case dataFile:
			f.data = append(f.data, number)
		case badFile:
			f.bad = append(f.bad, full)
		}
	}
	for _, f := range found {
		slices.Sort(f.data)
	}
	return found, nil
}

// listQueue reads what the folder holds of one queue now.
func listQueue(path, name string) (*files, error) {
	all, err := list(path)
	if err != nil {
		return nil, err
	}
	if f := all[name]; f != nil {
		return f, nil
	}
	return new(files), nil
}

// claim returns the files of a queue that is being opened. The folder is read once for all
// queues, so that opening many of them does not read it as many times.
func (c *Config) claim(name string) (*files, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index == nil {
		index, err := list(c.Path)
		if err != nil {
			return nil, err
		}
		c.index = index
	}
	if c.stale[name] {
		f, err := listQueue(c.Path, name)
		if err == nil {
			delete(c.stale, name)
		}
		return f, err
	}
	if f := c.index[name]; f != nil {
		delete(c.index, name)
		return f, nil
	}
	return new(files), nil
}

// release notes that a queue was closed; left says that it may have files.
func (c *Config) release(name string, left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !left {
		delete(c.stale, name)
		return
	}
	if c.stale == nil {
		c.stale = make(map[string]bool)
	}
	c.stale[name] = true
}

func (c *Config) metaPath(name string) string {
	return filepath.Join(c.Path, name+marker+metaSuffix)
}

func (c *Config) dataPath(name string, number int64) string {
	return filepath.Join(c.Path, fmt.Sprintf("%s%s%06d%s", name, marker, number, dataSuffix))
}

// remove removes a file; one that is not there is no error.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeAll removes every file of a queue: metadata last, so that a crash on the way leaves
// nothing that looks like a lost backlog.
func (c *Config) removeAll(name string) error {
	f, err := listQueue(c.Path, name)
	if err != nil {
		return err
	}
	var errs []error
	for _, number := range f.data {
		errs = append(errs, remove(c.dataPath(name, number)))
	}
	for _, path := range slices.Concat(f.bad, f.temps) {
		errs = append(errs, remove(path))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := remove(c.metaPath(name)); err != nil {
		return err
	}
	return statefile.SyncDir(c.Path)
}

// syncFile makes the content of a file durable, whoever wrote it.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
