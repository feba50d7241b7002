package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"nsq/internal/log"
	"nsq/internal/statefile"
)

// Pauses before a move that has failed is tried again; they double.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

// Mover moves finished files from the work folder to the same path below the output folder, which may
// be in another file system. One goroutine calls Run; whoever finishes files may be any other.
type Mover struct {
	from, to string

	// link is os.Link, but in tests.
	link func(from, to string) error

	wake chan struct{} // has room for one

	mu   sync.Mutex
	jobs []job // guarded by mu
}

// job is a file to move, or all those of a topic that are found.
type job struct {
	file   name
	all    *names // nil: the file
	orphan bool   // the process that wrote the file has ended, if nobody has the lock
	target string // where it is in the output folder, if it only has to go from the work folder
	logf   Logf
}

// NewMover returns a mover, or nil if the two folders are the same one.
func NewMover(workDir, outputDir string) *Mover {
	from, to := filepath.Clean(workDir), filepath.Clean(outputDir)
	if workDir == "" || from == to || sameFile(from, to) {
		return nil
	}
	return &Mover{from: from, to: to, link: os.Link, wake: make(chan struct{}, 1)}
}

// sameFile says whether both paths exist and lead to the same thing.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

func (m *Mover) add(n name, logf Logf) { m.enqueue(job{file: n, logf: logf}) }

func (m *Mover) adopt(n *names, logf Logf) { m.enqueue(job{all: n, logf: logf}) }

func (m *Mover) enqueue(jobs ...job) {
	m.mu.Lock()
	m.jobs = append(m.jobs, jobs...)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Mover) takeAll() []job {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.jobs
	m.jobs = nil
	return jobs
}

// Run moves files as they are finished, until ctx is cancelled. What cannot be moved it tries again.
func (m *Mover) Run(ctx context.Context) {
	pause := firstPause
	for {
		var retry <-chan time.Time
		if err := m.Drain(); err == nil {
			pause = firstPause
		} else {
			retry = time.After(pause)
			pause = min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-retry:
		}
	}
}

// Drain tries once to move everything that waits for it; what fails is logged, and waits again. It must
// not be called while Run is at work.
func (m *Mover) Drain() error {
	var failures []error
	var failed []job
	for jobs := m.takeAll(); len(jobs) > 0; {
		j := jobs[0]
		more, err := m.do(&j)
		jobs = append(jobs[1:], more...)
		if err != nil {
			j.logf(log.Error, "%v", err)
			failures = append(failures, err)
			failed = append(failed, j)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs = append(failed, m.jobs...)
	return errors.Join(failures...)
}

// do does a job, or finds more to do.
func (m *Mover) do(j *job) (more []job, err error) {
	if j.all == nil {
		return nil, m.move(j)
	}
	found, err := m.find(j.all)
	for _, n := range found {
		more = append(more, job{file: n, orphan: true, logf: j.logf})
	}
	return more, err
}

// find returns what is in the work folder under one of the names.
func (m *Mover) find(all *names) ([]name, error) {
	var found []name
	err := filepath.WalkDir(m.from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(m.from, path)
		if err != nil {
			return err
		}
		if n, ok := all.parse(below); ok {
			found = append(found, n)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("look for finished files: %w", err)
	}
	return found, err
}

// move moves one file, unless somebody still writes to it, or moves it. Where nobody can know, only a
// file that is known to be finished is moved; an orphan is not.
func (m *Mover) move(j *job) error {
	source := filepath.Join(m.from, j.file.String())
	f, err := os.Open(source)
	if errors.Is(err, fs.ErrNotExist) {
		if !j.orphan && j.target == "" { // else somebody was faster
			j.logf(log.Error, "finished file %s is gone", source)
		}
		return nil
	}
	if err == nil {
		defer f.Close()
		err = statefile.TryLock(f)
		if errors.Is(err, statefile.ErrLocked) || j.orphan && err != nil {
			return nil
		}
		err = m.moveOpen(f, j)
	}
	if err != nil {
		return fmt.Errorf("unable to move file from %s to %s: %w", source, filepath.Join(m.to, j.file.String()), err)
	}
	return nil
}

func (m *Mover) moveOpen(f *os.File, j *job) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// What was opened and never written to is worth nothing without its process.
	if worthless := j.orphan && info.Size() == 0; !worthless {
		if j.target == "" {
			j.logf(log.Info, "moving finished file %s to %s", f.Name(), filepath.Join(m.to, j.file.String()))
			if j.target, err = m.place(f, j.file, j.logf); err != nil {
				return err
			}
		}
		if err := syncFolder(filepath.Dir(j.target)); err != nil {
			return fmt.Errorf("sync folder: %w", err)
		}
	}
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(f.Name()))
}

// place gives the file its name in the output folder, of the first revision that is free.
func (m *Mover) place(f *os.File, n name, logf Logf) (target string, err error) {
	first := filepath.Join(m.to, n.String())
	from, give := f.Name(), m.link
	for {
		target = filepath.Join(m.to, n.String())
		folder := filepath.Dir(target)
		if err := makeFolders(folder); err != nil {
			return "", err
		}
		if sameFile(folder, filepath.Dir(f.Name())) {
			return "", errors.New("both are the same folder")
		}
		err := give(from, target)
		switch {
		case err == nil:
			if target != first {
				logf(log.Warn, "renamed finished file %s to %s to avoid overwrite", f.Name(), target)
			}
			if err := removeCopy(from, f); err != nil {
				logf(log.Warn, "remove copy: %v", err) // the file is in its place, that is what counts
			}
			return target, nil
		case errors.Is(err, fs.ErrExist):
			if sameFile(f.Name(), target) {
				return target, nil // a move that was interrupted
			}
			logf(log.Warn, "destination file already exists: %s", target)
			n.revision++
		case from == f.Name():
			// Another file system, or one without hard links.
			if from, err = copyTo(folder, f); err != nil {
				return "", err
			}
		default:
			give = rename
		}
	}
}

// rename is for file systems without hard links: what it replaces is its own empty file.
func rename(from, to string) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Rename(from, to)); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// copyTo makes a copy in the folder, down to the disk, under a name that is no archive's. A copy that
// was interrupted has the same name, so that the next one takes its place.
func copyTo(folder string, f *os.File) (path string, err error) {
	path = filepath.Join(folder, "."+filepath.Base(f.Name())+".partial")
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, f)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("copy: %w", errors.Join(err, os.Remove(path)))
	}
	return path, nil
}

// removeCopy removes what the file was copied to, if it was and still has that name.
func removeCopy(path string, f *os.File) error {
	if path == f.Name() {
		return nil
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
