// Package archive writes records, one a line, to files that rotate by name, age and size, compressed or
// not. A file that exists is never overwritten, and holds whole records only: what was half written is
// taken back. With a work folder, files are written there and move to the output folder when finished.
//
//	archive, err := archive.New(config, topic, logf)
//	for {
//		if archive.IsDue(now) {
//			err = archive.Next(now)
//		}
//		err = archive.Write(body)
//		err = archive.Sync()         // now, and no earlier, the record is safe
//	}
//
// After an error the caller calls Abandon, writes again what was not synced yet, and may go on.
//
// The package knows files and disks; it does not know where records come from, nor when to sync.
//
// Source: apps spec, sections 7.4 to 7.8.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"nsq/internal/log"
	"nsq/internal/statefile"
)

// ErrNoRevision is the error of a file name format that needs a revision and has none.
var ErrNoRevision = errors.New("missing <REV> in --filename-format when gzip, rotation, or work dir enabled")

// errTaken means that a name cannot be used, but the next revision perhaps can.
var errTaken = errors.New("file name is taken")

// flushSize is how many bytes wait for a Flush at most.
const flushSize = 64 << 10

// Logf writes a line to the log.
type Logf func(level log.Level, format string, args ...any)

// Config is what the archives of a program have in common. It does not change once there is an archive.
type Config struct {
	Naming         Naming
	OutputDir      string
	Mover          *Mover // nil: files are written where they stay
	Compression    Compression
	Level          int           // of compression
	RotateSize     int64         // bytes, not compressed, that a file may exceed by one record; 0: no limit
	RotateInterval time.Duration // 0: no limit
}

// revised says whether names have a revision.
func (c *Config) revised() bool { return c.exclusive() || c.RotateSize > 0 || c.Mover != nil }

// exclusive says whether files are never continued by another process, or later.
func (c *Config) exclusive() bool { return c.Compression != Plain || c.RotateInterval > 0 }

// Check says whether the settings go together.
func (c *Config) Check() error {
	_, err := New(*c, "topic", log.Discard().Logf)
	return err
}

// Archive is the sequence of a topic's files. It is not safe for concurrent use.
type Archive struct {
	config  Config
	names   *names
	encoder encoder
	logf    Logf

	file   *file // nil: none is open
	last   name  // the name that was used last
	next   int   // revision that is tried next for it
	opened time.Time

	second  int64 // Unix time that current is for
	current name
}

// New returns the archive of a topic, and opens nothing yet.
func New(config Config, topic string, logf Logf) (*Archive, error) {
	names, err := config.Naming.newNames(topic, config.revised(), config.Compression.suffix())
	if err != nil {
		return nil, err
	}
	encoder, err := config.Compression.newEncoder(config.Level)
	if err != nil {
		return nil, err
	}
	return &Archive{config: config, names: names, encoder: encoder, logf: logf}, nil
}

// Adopt has those files moved that ended processes have left in the work folder.
func (a *Archive) Adopt() {
	if a.config.Mover != nil {
		a.config.Mover.adopt(a.names, a.logf)
	}
}

// IsDue says whether the next record needs a new file.
func (a *Archive) IsDue(now time.Time) bool {
	c := &a.config
	switch next := a.nameAt(now); {
	case a.file == nil:
		return true
	case next.text != a.file.name.text:
		a.logf(log.Info, "new filename %s, rotating...", next)
	case c.RotateInterval > 0 && now.Sub(a.opened) > c.RotateInterval:
		a.logf(log.Info, "%s since last open, rotating...", now.Sub(a.opened))
	case c.RotateSize > 0 && a.file.count > c.RotateSize:
		a.logf(log.Info, "%s currently %d bytes (> %d), rotating...", a.file.path, a.file.count, c.RotateSize)
	default:
		return false
	}
	return true
}

// nameAt makes the name once a second: times in names are no finer.
func (a *Archive) nameAt(now time.Time) name {
	if second := now.Unix(); second != a.second || a.current.text == "" {
		a.second, a.current = second, a.names.at(now)
	}
	return a.current
}

// Next closes the open file, if there is one, and opens the next.
func (a *Archive) Next(now time.Time) error {
	if err := a.Close(); err != nil {
		return err
	}
	next := a.nameAt(now)
	if next.text != a.last.text {
		a.last, a.next = next, 0
	}
	for ; ; a.next++ {
		next.revision = a.next
		f, err := a.open(next)
		if err == nil {
			a.file, a.opened = f, now
			a.next++
			return nil
		}
		if !errors.Is(err, errTaken) {
			return fmt.Errorf("unable to open %s: %w", a.path(next), err)
		}
	}
}

// path is where a file is written.
func (a *Archive) path(n name) string {
	if a.config.Mover != nil {
		return filepath.Join(a.config.Mover.from, n.String())
	}
	return filepath.Join(a.config.OutputDir, n.String())
}

// open opens a file for this process alone, if it has a revision.
func (a *Archive) open(n name) (*file, error) {
	path := a.path(n)
	if err := a.checkOutput(n); err != nil {
		return nil, err
	}
	if err := makeFolders(filepath.Dir(path)); err != nil {
		return nil, err
	}
	a.logf(log.Info, "opening %s", path)
	flags := os.O_RDWR | os.O_APPEND | os.O_CREATE
	if a.config.exclusive() {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, fileMode)
	if errors.Is(err, fs.ErrExist) {
		a.logf(log.Warn, "working file already exists: %s", path)
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	opened := &file{name: n, path: path, f: f, encoder: a.encoder}
	if err := a.take(opened); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened, nil
}

// checkOutput refuses a name that is in the output folder already.
func (a *Archive) checkOutput(n name) error {
	if a.config.Mover == nil {
		return nil
	}
	output := filepath.Join(a.config.OutputDir, n.String())
	there, err := exists(output)
	if there {
		a.logf(log.Warn, "output file already exists: %s", output)
		return errTaken
	}
	return err
}

// take makes sure that a file that was just opened can be written to.
func (a *Archive) take(f *file) error {
	if a.config.revised() {
		if err := claim(f.f, f.path); err != nil {
			return err
		}
	}
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	f.count = f.size
	f.own = a.config.revised() && f.size == 0
	if a.config.RotateSize > 0 && f.size > a.config.RotateSize {
		return errTaken
	}
	if ended, err := f.endLine(); err != nil {
		return err
	} else if ended {
		a.logf(log.Warn, "%s ends with half a line, beginning a new one", f.path)
	}
	return syncFolder(filepath.Dir(f.path))
}

// claim locks a file against other archives, and movers, on systems that can. The error is errTaken if
// somebody has the lock, or has moved the file away.
func claim(f *os.File, path string) error {
	if err := statefile.TryLock(f); errors.Is(err, statefile.ErrLocked) {
		return errTaken
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errTaken
	}
	if err != nil {
		return err
	}
	if there.Mode()&fs.ModeSymlink == 0 && !os.SameFile(mine, there) {
		return errTaken
	}
	return nil
}

// Write adds a record to the open file. It may not be there before Flush, or Sync if it is compressed.
func (a *Archive) Write(body []byte) error {
	if err := a.file.add(body); err != nil {
		return err
	}
	if a.file.pending.Len() < flushSize {
		return nil
	}
	return a.file.flush()
}

// Flush lets others see the records in the file, where that is possible.
func (a *Archive) Flush() error {
	if a.file == nil {
		return nil
	}
	return a.file.flush()
}

// Sync has all records on the disk when it returns nil, and the compressed file complete so far.
func (a *Archive) Sync() error {
	if a.file == nil {
		return nil
	}
	return a.file.sync()
}

// Close finishes the open file, which then moves if it was written in a work folder. If it fails the
// file is still open.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	if err := a.file.sync(); err != nil {
		return err
	}
	return a.release()
}

func (a *Archive) release() error {
	f := a.file
	a.file = nil
	if err := f.f.Close(); err != nil {
		return fmt.Errorf("close file: %w", err)
	}
	if a.config.Mover != nil {
		a.config.Mover.add(f.name, a.logf)
	}
	return nil
}

// Abandon closes the open file without what was not synced. A file with nothing in it is removed.
func (a *Archive) Abandon() error {
	f := a.file
	if f == nil {
		return nil
	}
	if !f.own || f.size > 0 {
		return a.release()
	}
	a.file = nil
	a.next = f.name.revision
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.f.Close())
}
