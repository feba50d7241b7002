package diskq

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nsqio/go-diskqueue"
)

// disk is a queue over the library. The library is open while there may be records, and not
// before the first.
//
// Lock order: writer, mu. Both are held to change the fields behind them.
type disk struct {
	cfg  *Config
	name string

	depth  atomic.Int64 // records stored that no Take has claimed
	health health

	missing      atomic.Int64 // records that a Take claimed and did not get, until correct
	syncFailures atomic.Int64
	rechecking   atomic.Bool // a timer will look whether syncs work again

	writer sync.Mutex // held by the one Put, or the one change of state

	mu       sync.RWMutex        // held for reading by whoever uses lib without holding writer
	lib      diskqueue.Interface // nil while not open
	limit    int32               // longest record to read
	fresh    bool                // there is no metadata file
	fileless bool                // the queue never had a file
	lost     bool                // lib is nil because an operation failed: only the files tell what there is
	trusted  bool                // depth comes from metadata and may be too low
	closed   bool
	deleted  bool

	inherited bool // the file to be written to holds records from before Open; guarded by writer
	torn      bool // a write failed and may have left part of a record; guarded by writer
}

func newDisk(c *Config, name string) *disk {
	return &disk{cfg: c, name: name, health: health{queue: name, report: c.Health, meter: c.Meter}}
}

// load recovers the queue from its files, and opens the library if there are records. The caller
// holds the locks, or is the only one to know q.
func (q *disk) load(found *files) error {
	s, err := q.cfg.recover(q.name, found)
	if err != nil {
		return err
	}
	q.lost = false
	q.health.set(syncing, nil) // what failed is over: the files are repaired
	q.limit, q.fresh, q.inherited = s.limit, s.fresh, s.inherited
	q.fileless = s.fresh && len(found.bad) == 0
	q.trusted = !s.counted && s.depth > 0
	q.depth.Store(s.depth)
	if s.depth > 0 {
		q.start()
	}
	return nil
}

// reload is load for a queue that was open before.
func (q *disk) reload() error {
	q.lost = true
	found, err := listQueue(q.cfg.Path, q.name)
	if err == nil {
		err = q.load(found)
	}
	if err != nil {
		return fmt.Errorf("reopen queue: %w", err)
	}
	return nil
}

// restore reloads the queue if it was lost.
func (q *disk) restore() error {
	if !q.lost {
		return nil
	}
	return q.reload()
}

func (q *disk) start() {
	q.lib = q.cfg.openLibrary(q.name, q.limit, q.syncFailed)
}

// Put implements Queue.
func (q *disk) Put(records [][]byte) (int, error) {
	q.writer.Lock()
	defer q.writer.Unlock()
	start := time.Now()
	if err := q.ready(); err != nil {
		if !errors.Is(err, ErrClosed) {
			q.health.set(writing, err)
		}
		return 0, err
	}
	for n, record := range records {
		if len(record) < int(q.cfg.MinRecord) || len(record) > int(q.cfg.MaxRecord) {
			return n, fmt.Errorf("invalid message write size (%d) minMsgSize=%d maxMsgSize=%d",
				len(record), q.cfg.MinRecord, q.cfg.MaxRecord)
		}
		if err := q.lib.Put(record); err != nil {
			err = fmt.Errorf("write record: %w", err)
			q.torn = true
			q.health.set(writing, err)
			return n, err
		}
		q.depth.Add(1)
	}
	q.health.set(writing, nil)
	q.cfg.Meter.took(writing, start)
	return len(records), nil
}

// ready brings the library into a state in which it can write. The caller holds writer.
func (q *disk) ready() error {
	if q.closed {
		return ErrClosed
	}
	if q.lib != nil && !q.torn && !q.inherited {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lib != nil && (q.torn || q.inherited) {
		if err := q.renew(); err != nil {
			return fmt.Errorf("reopen queue: %w", err)
		}
	}
	if err := q.restore(); err != nil {
		return err
	}
	if q.fresh {
		// The library writes metadata at its first sync, and ignores the records of a queue
		// that has none.
		if err := q.cfg.writeMeta(q.name, meta{}); err != nil {
			return fmt.Errorf("write metadata: %w", err)
		}
		q.fresh, q.fileless = false, false
	}
	if q.lib == nil {
		q.start()
	}
	return nil
}

// renew reopens the library before a write that could suffer from what is in the file already.
// After a failed write the reader may have buffered part of the record that the next write
// replaces. And behind records from before Open, which may be damaged, new ones would be given up
// together with them, so these go to a new file.
//
// First it makes sure that the disk takes metadata: without them the library could not be closed
// without forgetting what was taken.
func (q *disk) renew() error {
	if err := q.cfg.probe(q.name); err != nil {
		return err
	}
	inherited := q.inherited
	if err := q.stop(); err != nil {
		return err
	}
	if inherited {
		if err := q.cfg.nextFile(q.name); err != nil {
			q.lost = true
			return err
		}
	}
	q.start()
	return nil
}

// stop closes the library, durably, and cuts off what a failed write left behind. After an error
// only the files can tell what the queue holds.
func (q *disk) stop() error {
	start := time.Now()
	err := q.lib.Close()
	q.lib = nil
	if err == nil {
		err = q.cfg.settle(q.name, q.torn)
	}
	q.torn, q.inherited, q.lost = false, false, err != nil
	if err == nil {
		q.cfg.Meter.took(syncing, start)
	} else {
		err = fmt.Errorf("close queue: %w", err)
	}
	q.health.set(syncing, err)
	return err
}

// Depth implements Queue.
func (q *disk) Depth() int64 { return q.depth.Load() }

// Empty implements Queue.
func (q *disk) Empty() error {
	q.writer.Lock()
	defer q.writer.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := q.restore(); err != nil {
		return err
	}
	if q.lib == nil {
		return nil
	}
	err := q.lib.Empty()
	q.depth.Store(0)
	q.trusted = false
	// The library removed its metadata; closing writes them again, at the position where it goes on.
	return errors.Join(err, q.stop())
}

// Close implements Queue.
func (q *disk) Close() error {
	q.writer.Lock()
	defer q.writer.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	q.cfg.release(q.name, !q.fileless)
	if q.lib == nil {
		return nil
	}
	return q.stop()
}

// Delete implements Queue.
func (q *disk) Delete() error {
	q.writer.Lock()
	defer q.writer.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return nil
	}
	q.closed = true
	q.depth.Store(0)
	if q.lib != nil {
		// In this order a crash on the way leaves no record without metadata. The library logs
		// what it cannot remove, and that is tried once more below.
		q.lib.Empty()
		q.lib.Delete()
		q.lib = nil
	}
	var err error
	if !q.fileless {
		err = q.cfg.removeAll(q.name)
	}
	q.deleted = err == nil
	q.cfg.release(q.name, err != nil)
	if err != nil {
		return fmt.Errorf("delete queue: %w", err)
	}
	for c := range causes {
		q.health.set(c, nil) // a queue that is gone ails no more
	}
	return nil
}

// syncFailed is called in the goroutine of the library, which tries again at its next operation
// and does not tell when that went well.
func (q *disk) syncFailed(err error) {
	q.syncFailures.Add(1)
	q.health.set(syncing, fmt.Errorf("sync queue: %w", err))
	if q.rechecking.CompareAndSwap(false, true) {
		time.AfterFunc(q.cfg.SyncTimeout, q.recheck)
	}
}

// recheck finds out whether syncs work again. A library that owes a sync tries it between any two
// answers.
func (q *disk) recheck() {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.lib != nil {
		before := q.syncFailures.Load()
		q.lib.Depth()
		q.lib.Depth()
		if q.syncFailures.Load() != before {
			time.AfterFunc(q.cfg.SyncTimeout, q.recheck)
			return
		}
		q.health.set(syncing, nil)
	}
	q.rechecking.Store(false)
}
