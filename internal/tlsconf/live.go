package tlsconf

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nsq/internal/log"
)

// checkInterval is how long the files are taken to be as they were.
const checkInterval = time.Second

// live is a configuration that follows its files: whoever asks for it looks after them.
type live struct {
	paths   []string
	logger  *log.Logger
	build   func() (*tls.Config, error)
	trouble string           // what errors of build begin with
	now     func() time.Time // a field for tests

	current atomic.Pointer[tls.Config] // never nil; what it points to is never modified

	mu      sync.Mutex    // held while the files are looked at and read
	checked time.Time     // when they were looked at last
	seen    []fs.FileInfo // what was found when they were read last, well or not; by path, nil: nothing
}

func newLive(files files, logger *log.Logger, trouble string, build func() (*tls.Config, error)) (*live, error) {
	l := &live{paths: files.paths(), logger: logger, build: build, trouble: trouble, now: time.Now}
	if err := l.reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// latest is the configuration after a look at the files, if one is due. While somebody else is
// looking it is the one before: no handshake waits for another's disk.
func (l *live) latest() *tls.Config {
	if l.mu.TryLock() {
		defer l.mu.Unlock()
		l.follow()
	}
	return l.current.Load()
}

// reload reads the files whatever they look like.
func (l *live) reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load(l.look())
}

// follow reads the files if they have changed. What is wrong with them is logged once: they are
// left alone until they change again.
func (l *live) follow() {
	now := l.now()
	if now.Sub(l.checked) < checkInterval {
		return
	}
	l.checked = now
	found := l.look()
	if slices.EqualFunc(l.seen, found, same) {
		return
	}
	if err := l.load(found); err != nil {
		l.logger.Errorf("TLS: changed files are of no use, keeping what was read before - %s", err)
		return
	}
	l.logger.Infof("TLS: read changed files %q", l.paths)
}

// load reads the files. They were looked at before, so that what changes meanwhile is noticed at
// the next look.
func (l *live) load(found []fs.FileInfo) error {
	l.seen = found
	built, err := l.build()
	if err != nil {
		return fmt.Errorf("%s - %w", l.trouble, err)
	}
	l.current.Store(built)
	return nil
}

// look takes the files' looks. Why one cannot be looked at comes to light when it is read.
func (l *live) look() []fs.FileInfo {
	found := make([]fs.FileInfo, len(l.paths))
	for i, path := range l.paths {
		if info, err := os.Stat(path); err == nil {
			found[i] = info
		}
	}
	return found
}

// same says whether two looks are at the same content, as far as looks can tell.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
