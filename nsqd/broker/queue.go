package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"nsq/internal/diskq"
)

// errClosed is returned by a queue that is closed or deleted.
var errClosed = errors.New("exiting")

// queue is where messages wait, of a topic as of a channel: a bounded ring in memory over an
// overflow queue. Messages enter at the tail, in memory while there is room; those who take get
// from memory and from the overflow in turn, so neither waits for the other to run dry.
//
// No lock is held while the overflow reads or writes.
type queue struct {
	capacity int // messages in memory; fixed
	over     diskq.Queue
	// onlyToWaiters makes a queue without memory accept what those who wait can take at once:
	// with --mem-queue-size=0 that is all an ephemeral channel keeps.
	onlyToWaiters bool

	// moving is how many messages are on their way from here to their next place, or back. They
	// count as waiting: nobody may find that there is nothing left while there is.
	moving atomic.Int64

	mu       sync.Mutex // guards the following
	ring     ring
	reserved int                    // room in the ring that a put has been promised while it writes its rest
	turn     bool                   // the overflow's turn to be taken from
	waiters  [proximities][]*waiter // by proximity, longest waiting first
	woken    [proximities]int       // how many have been woken and have not taken yet
	closed   bool
}

// Proximity says how near a consumer is to this nsqd. What is put on a queue is offered to the
// nearest of those who wait.
type Proximity uint8

// The proximities, farthest first.
const (
	Anywhere Proximity = iota
	SameRegion
	SameZone

	proximities = iota
)

// waiter is one that takes from a queue and can be woken: a topic's pump or a subscription's.
type waiter struct {
	wake      chan struct{} // one slot
	proximity Proximity

	// guarded by the queue's lock
	waiting bool
	woken   bool  // and has not taken since
	window  int64 // how many it could take when it began to wait
}

func newWaiter(proximity Proximity) waiter {
	return waiter{wake: make(chan struct{}, 1), proximity: proximity}
}

// signal wakes the waiter; it never blocks, and a signal is kept until it is looked at.
func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// put appends a batch at the tail: all of it or, with an error, nothing. When the overflow fails
// in the middle of a batch, memory takes the rest beyond its capacity; until that is on disk,
// further batches are refused.
func (q *queue) put(batch []Message) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosed
	}
	fit := min(q.roomLocked(), len(batch))
	if fit == len(batch) {
		q.pushLocked(batch)
		q.mu.Unlock()
		return nil
	}
	q.reserved += fit
	q.mu.Unlock()

	stored, err := 0, q.spill()
	if err == nil {
		stored, err = q.over.Put(records(batch[fit:]))
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved -= fit
	if err != nil && stored == 0 {
		return fmt.Errorf("write message to backend: %w", err)
	}
	q.pushLocked(batch[:fit])
	q.pushLocked(batch[fit+stored:])
	return nil
}

// spill moves what memory holds beyond its capacity to the overflow, which had failed and may work again.
func (q *queue) spill() error {
	q.mu.Lock()
	excess := q.ring.len() - q.capacity
	if excess <= 0 || q.onlyToWaiters || q.closed {
		q.mu.Unlock()
		return nil
	}
	held := q.ring.pop(nil, excess)
	q.mu.Unlock()

	stored, err := q.over.Put(records(held))

	q.mu.Lock()
	defer q.mu.Unlock()
	q.pushLocked(held[stored:])
	if err != nil {
		return fmt.Errorf("move %d messages that memory has no room for: %w", len(held)-stored, err)
	}
	return nil
}

// putBack appends messages that were here before: requeued, timed out or due. It is put, but where
// the overflow fails memory takes them beyond its capacity, as it had them until now.
func (q *queue) putBack(batch []Message) error {
	if len(batch) == 0 {
		return nil
	}
	err := q.put(batch)
	if err == nil || errors.Is(err, errClosed) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errClosed
	}
	q.pushLocked(batch)
	return nil
}

// roomLocked is how many messages memory has room for.
func (q *queue) roomLocked() int {
	room := q.capacity
	if q.onlyToWaiters {
		for _, w := range slices.Concat(q.waiters[:]...) {
			room += int(w.window)
		}
	}
	return max(room-q.ring.len()-q.reserved, 0)
}

// room is how many messages memory has room for at the moment.
func (q *queue) room() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.roomLocked()
}

// pushLocked appends to the ring and wakes the one who waits longest; each who takes passes the
// wake-up on while something is left.
func (q *queue) pushLocked(batch []Message) {
	q.ring.push(batch)
	q.wakeLocked()
}

func (q *queue) wakeLocked() {
	for p, waiters := range slices.Backward(q.waiters[:]) {
		if len(waiters) == 0 {
			continue
		}
		w := waiters[0]
		q.waiters[p] = waiters[1:]
		w.waiting, w.woken = false, true
		q.woken[p]++
		w.signal()
		return
	}
}

// comeLocked notes that a waiter has come for what it was woken for.
func (q *queue) comeLocked(w *waiter) {
	if w.woken {
		w.woken = false
		q.woken[w.proximity]--
	}
}

// sharersLocked is how many there are to share with for one of that proximity, itself included:
// those who wait or have just been woken, and are as near.
func (q *queue) sharersLocked(proximity Proximity) int {
	sharers := 1
	for p := proximity; p < proximities; p++ {
		sharers += len(q.waiters[p]) + q.woken[p]
	}
	return sharers
}

// take moves up to limit messages from the front to the end of dst, but no more than w's fair share
// among those who wait. A record that can not be decoded is dropped and reported.
func (q *queue) take(dst *Batch, limit int, w *waiter) error {
	q.mu.Lock()
	q.comeLocked(w)
	backlog := q.over.Depth()
	share := (int64(q.ring.len())+backlog)/int64(q.sharersLocked(w.proximity)) + 1
	limit = int(min(int64(limit), share))
	fromDisk := backlog > 0 && (q.turn || q.ring.len() == 0)
	q.turn = backlog > 0 && !fromDisk
	if !fromDisk {
		dst.messages = q.ring.pop(dst.messages, limit)
		q.moving.Add(int64(len(dst.messages)))
		dst.taken = len(dst.messages)
		if q.ring.len() > 0 || backlog > 0 {
			q.wakeLocked()
		}
		q.mu.Unlock()
		return nil
	}
	if q.ring.len() > 0 || backlog > int64(limit) {
		q.wakeLocked()
	}
	dst.taken = int(min(int64(limit), backlog))
	q.moving.Add(int64(dst.taken)) // before they leave the overflow's depth
	q.mu.Unlock()

	dst.onDisk = true
	taken, err := q.over.Take(nil, limit)
	for _, record := range taken {
		if bad := dst.decodeRecord(record); bad != nil {
			err = errors.Join(err, fmt.Errorf("decode message: %w", bad))
		}
	}
	return err
}

// arrived notes that a batch which take has filled is in its next place.
func (q *queue) arrived(batch *Batch) {
	q.moving.Add(int64(-batch.taken))
	batch.taken = 0
}

// await enters w among those who wait, to be woken by the next put; window is how many messages it
// could take. It returns false where there is something to take already.
func (q *queue) await(w *waiter, window int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.comeLocked(w)
	if q.ring.len() > 0 || q.over.Depth() > 0 {
		return false
	}
	w.window = window
	if !w.waiting {
		w.waiting = true
		q.waiters[w.proximity] = append(q.waiters[w.proximity], w)
	}
	return true
}

// leave takes w from those who wait. If it had been woken for something that is still here,
// another one is woken in its place.
func (q *queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.comeLocked(w)
	if w.waiting {
		w.waiting = false
		waiters := &q.waiters[w.proximity]
		*waiters = slices.DeleteFunc(*waiters, func(other *waiter) bool { return other == w })
	}
	if q.ring.len() > 0 || q.over.Depth() > 0 {
		q.wakeLocked()
	}
}

// depth is how many messages wait or are on their way, and how many of them are in the overflow.
func (q *queue) depth() (all, overflow int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	overflow = q.over.Depth()
	return int64(q.ring.len()) + q.moving.Load() + overflow, overflow
}

// frontTime is when the message at the front of memory was published, in nanoseconds since the Unix
// epoch; 0 if memory holds none.
func (q *queue) frontTime() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m := q.ring.front(); m != nil {
		return m.timestamp()
	}
	return 0
}

// empty drops everything that waits. It returns ErrExiting when the queue is closed or deleted.
func (q *queue) empty() error {
	q.mu.Lock()
	q.ring.reset()
	q.mu.Unlock()
	err := q.over.Empty()
	if errors.Is(err, diskq.ErrClosed) {
		return ErrExiting
	}
	return err
}

// close refuses further puts, moves what memory holds to the overflow, behind it more that the
// caller has, and closes the overflow. It returns how many messages could not be stored.
func (q *queue) close(more []Message) (lost int, err error) {
	q.mu.Lock()
	q.closed = true
	left := q.ring.pop(nil, q.ring.len())
	q.ring.reset()
	q.mu.Unlock()

	left = append(left, more...)
	if len(left) > 0 {
		var stored int
		stored, err = q.over.Put(records(left))
		lost = len(left) - stored
	}
	return lost, errors.Join(err, q.over.Close())
}

// delete drops everything and leaves no file.
func (q *queue) delete() error {
	q.mu.Lock()
	q.closed = true
	q.ring.reset()
	q.mu.Unlock()
	return q.over.Delete()
}

// records are the messages as a disk queue holds them. A frame's own bytes serve while its
// attempts are those of the message.
func records(batch []Message) [][]byte {
	all := make([][]byte, len(batch))
	for i := range batch {
		m := &batch[i]
		if m.attempts == 0 {
			all[i] = m.record()
		} else {
			all[i] = m.appendRecord(make([]byte, 0, m.size))
		}
	}
	return all
}
