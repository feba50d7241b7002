// Package diskq keeps the overflow of a topic or channel: records that found no room in memory, in
// files that NSQ 1.3 reads and writes.
//
// It is the one place that knows go-diskqueue, and it closes from outside the holes of that library
// that can be closed there: metadata exists before the first record, damaged metadata is rebuilt
// from the records, the depth is right after a crash, a clean close is durable, consumed files go
// away, and failures reach whoever answers for the health of the daemon.
//
// It does not know brokers, topics or messages: a record is opaque bytes.
//
// What stays open is the library's: no checksums, the rest of a file behind a damaged record is
// lost, a record counts as consumed once it is taken, and the last SyncEvery operations may not
// survive a power failure.
//
// Source: nsqd-storage spec, sections 4 to 11, 13 and 16.
package diskq

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"nsq/internal/log"
)

// ErrClosed is the answer of a queue after Close or Delete.
var ErrClosed = errors.New("queue is closed")

// Queue is a first-in first-out store of records. All methods are safe for concurrent use. Put,
// Take, Empty, Close and Delete may wait for the disk; Depth never waits.
type Queue interface {
	// Put appends the records in order and without another Put's records between them. It returns
	// how many were stored, which is all of them exactly when err is nil. The records belong to the
	// caller again when Put returns.
	Put(records [][]byte) (n int, err error)

	// Take appends up to max records to dst, oldest first, and returns it; the records belong to the
	// caller. It takes what is there and never waits for a Put; it may return fewer than Depth
	// promised where the disk is slow or records are damaged. Concurrent calls share the records
	// between them; each gets its own in order.
	Take(dst [][]byte, max int) ([][]byte, error)

	// Depth is the number of records stored and not yet taken.
	Depth() int64

	// Empty drops all records.
	Empty() error

	// Close makes everything that was put and not taken durable and ends the queue. A second Close
	// does nothing.
	Close() error

	// Delete ends the queue and removes all its files. After an error it may be called again; it
	// may follow a Close.
	Delete() error
}

// Config says how the queues of one data path are kept. Its fields must not change, nor may it be
// copied, after the first Open. No other process may change the queue files meanwhile.
type Config struct {
	Path            string // folder of all queue files; must exist
	MaxBytesPerFile int64
	MinRecord       int32         // bytes; a shorter record is refused, and damage when read
	MaxRecord       int32         // bytes; a longer record is refused, but read if it is on disk already
	SyncEvery       int64         // operations between two syncs
	SyncTimeout     time.Duration // longest time between an operation and its sync
	Logger          *log.Logger

	// Health, if not nil, learns when a write or sync of a queue fails, and with a nil error when
	// all is well with it again. It must return soon and must not call the queue.
	Health func(queue string, err error)

	// Meter, if not nil, measures what the queues do.
	Meter *Meter

	mu    sync.Mutex
	index map[string]*files // what lay in Path at the first Open and was not claimed since
	stale map[string]bool   // queues closed since, for which index cannot speak
}

// Open returns the queue of that name with the records that its files hold, after repairing its
// files where a crash or worse left them damaged; each repair is a WARNING in the log. A queue
// without records costs no goroutine and no open file before its first Put. A queue must not be
// open twice at a time.
func (c *Config) Open(name string) (Queue, error) {
	if err := c.check(name); err != nil {
		return nil, err
	}
	found, err := c.claim(name)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", name, err)
	}
	q := newDisk(c, name)
	if err := q.load(found); err != nil {
		return nil, fmt.Errorf("open queue %s: %w", name, err)
	}
	return q, nil
}

// check refuses what would make the library panic or leave the data path.
func (c *Config) check(name string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "/"+string(filepath.Separator)):
		return fmt.Errorf("open queue: invalid name %q", name)
	case c.SyncEvery < 1 || c.SyncTimeout <= 0 || c.MaxBytesPerFile < 1:
		return fmt.Errorf("open queue %s: sync-every, sync-timeout and max-bytes-per-file must be positive", name)
	case c.MinRecord < 0 || c.MaxRecord < c.MinRecord:
		return fmt.Errorf("open queue %s: invalid record sizes %d to %d", name, c.MinRecord, c.MaxRecord)
	}
	return nil
}

// TopicName is the name of the queue of a topic.
func TopicName(topic string) string { return topic }

// ChannelName is the name of the queue of a channel.
func ChannelName(topic, channel string) string {
	if runtime.GOOS == "windows" {
		return topic + ";" + channel // a colon is no part of a file name there
	}
	return topic + ":" + channel
}
