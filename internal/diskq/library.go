package diskq

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/nsqio/go-diskqueue"

	"nsq/internal/log"
)

// The library tells some events by its log only; these are the texts that it logs them with.
const (
	logReadFailed   = "DISKQUEUE(%s) reading at %d of %s - %s" // queue, offset, file, error
	logSetAside     = "DISKQUEUE(%s) jump to next file and saving bad file as %s"
	logRenameFailed = "DISKQUEUE(%s) failed to rename bad diskqueue file %s to %s"
	logSyncFailed   = "DISKQUEUE(%s) failed to sync - %s" // queue, error
)

// openLibrary starts the library on the files of a queue.
func (c *Config) openLibrary(name string, limit int32, syncFailed func(error)) diskqueue.Interface {
	l := &listener{logger: c.Logger, syncFailed: syncFailed}
	path := strings.ReplaceAll(c.Path, "%", "%%") // the library makes a format of it
	return diskqueue.New(name, path, c.MaxBytesPerFile, c.MinRecord, limit, c.SyncEvery, c.SyncTimeout, l.logf)
}

// listener hears what the library logs, passes it on and acts on some of it.
type listener struct {
	logger     *log.Logger
	syncFailed func(error)

	// consumed says that the file whose end is being reported was read completely. Only the
	// library's one goroutine logs the lines that touch it.
	consumed bool
}

// logf is called by the library, in its own goroutine for all that happens to files.
func (l *listener) logf(level diskqueue.LogLevel, format string, args ...any) {
	weight := log.Level(level) // the numbers are the same
	switch format {
	case logReadFailed:
		if l.consumed = removeConsumed(args); l.consumed {
			weight = log.Debug
		}
	case logSetAside:
		if l.consumed {
			weight = log.Debug
		}
	case logRenameFailed:
		if l.consumed {
			weight = log.Debug
		}
	case logSyncFailed:
		if err, ok := args[len(args)-1].(error); ok {
			removeUnfinished(err)
			l.syncFailed(err)
		}
	}
	l.logger.Logf(weight, format, args...)
}

// removeConsumed removes the file of a failed read if there is nothing left in it to read. When
// everything in a file was taken before the writer went on to the next, the library looks for one
// more record, takes the end of the file for damage and keeps the file as bad for ever.
func removeConsumed(args []any) bool {
	if len(args) != 4 {
		return false
	}
	offset, ok1 := args[1].(int64)
	path, ok2 := args[2].(string)
	err, ok3 := args[3].(error)
	if !ok1 || !ok2 || !ok3 || !errors.Is(err, io.EOF) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Size() == offset && os.Remove(path) == nil
}

// removeUnfinished removes the metadata that a failed sync left behind under its temporary name;
// a full disk would collect one each time.
func removeUnfinished(err error) {
	var temp string
	var pathError *fs.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &pathError):
		temp = pathError.Path
	case errors.As(err, &linkError):
		temp = linkError.Old
	}
	if strings.HasSuffix(temp, tempSuffix) {
		remove(temp) // what cannot be removed is found at the next start
	}
}
