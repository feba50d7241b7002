package broker

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"nsq/internal/protocol"
)

// flight holds the messages that one subscription has in flight: only their holder may finish,
// requeue or touch them. Each method is a whole transition under the flight's own lock, so that a
// message is in exactly one place at any time.
//
// Messages sit in slots. A table with open addressing leads from an id to its slot, and the slots
// in use are linked in order of deadline: with one timeout a subscription, deliveries append and
// only TOUCH moves a slot. All times are nanoseconds of the broker's monotonic clock.
type flight struct {
	mu    sync.Mutex
	slots []slot
	free  int32   // first unused slot, linked by next
	table []int32 // index of a slot plus 1; 0 is empty; its length is a power of two
	first int32   // the earliest deadline
	last  int32   // the latest deadline
	ready int64   // RDY: the most that may be in flight

	count atomic.Int64 // messages in flight; written under mu
}

// slot is one message in flight, a cache line long.
type slot struct {
	message  Message
	id       protocol.ID
	deadline int64
	sent     int64 // when this attempt was delivered
	prev     int32
	next     int32
}

const (
	none       = int32(-1)
	leastTable = 16
	never      = int64(math.MaxInt64)
)

func (f *flight) init() { f.free, f.first, f.last = none, none, none }

// deliver takes as much of the batch as the window allows into flight, each message with one
// attempt more, and returns how much that is and the earliest deadline in flight.
func (f *flight) deliver(batch []Message, now, timeout int64) (taken int, due int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken = int(min(int64(len(batch)), max(f.ready-f.count.Load(), 0)))
	for i := range batch[:taken] {
		m := &batch[i]
		if m.attempts < maxAttempts {
			m.attempts++
		}
		s := f.insert(m)
		f.slots[s].sent = now
		f.slots[s].deadline = now + timeout
		f.link(s)
	}
	f.count.Add(int64(taken))
	return taken, f.dueLocked()
}

// finish takes the messages with these ids out of flight. It returns how many there were, and the
// ids that were not in flight. The timestamps of those that were are appended to stamps unless it is nil.
func (f *flight) finish(ids []protocol.ID, stamps *[]int64) (finished int, missing []protocol.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if m, ok := f.remove(id); ok {
			finished++
			if stamps != nil {
				*stamps = append(*stamps, m.timestamp())
			}
		} else {
			missing = append(missing, id)
		}
	}
	f.count.Add(int64(-finished))
	return finished, missing
}

// requeue takes the message out of flight and returns it.
func (f *flight) requeue(id protocol.ID) (Message, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.remove(id)
	if ok {
		f.count.Add(-1)
	}
	return m, ok
}

// touch gives the message a new deadline: timeout from now, but not beyond limit from its delivery.
func (f *flight) touch(id protocol.ID, now, timeout, limit int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.find(id)
	if !ok {
		return false
	}
	s := f.table[at] - 1
	f.unlink(s)
	f.slots[s].deadline = min(now+timeout, f.slots[s].sent+limit)
	f.link(s)
	return true
}

// holds says whether the message is in flight here.
func (f *flight) holds(id protocol.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.find(id)
	return ok
}

// expire takes all messages whose deadline is over out of flight, appends them to dst, and returns
// the earliest deadline that is left.
func (f *flight) expire(dst []Message, now int64) (expired []Message, due int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(dst)
	for f.first != none && f.slots[f.first].deadline <= now {
		dst = append(dst, f.slots[f.first].message)
		f.removeSlot(f.first)
	}
	f.count.Add(int64(before - len(dst)))
	return dst, f.dueLocked()
}

// drain takes everything out of flight and appends it to dst, earliest deadline first.
func (f *flight) drain(dst []Message) []Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := f.first; s != none; s = f.slots[s].next {
		dst = append(dst, f.slots[s].message)
	}
	f.slots, f.table = nil, nil
	f.init()
	f.count.Store(0)
	return dst
}

// setReady changes the window.
func (f *flight) setReady(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = n
}

// window is how many more messages may go into flight, never negative.
func (f *flight) window() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.ready-f.count.Load(), 0)
}

func (f *flight) readyCount() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

func (f *flight) dueLocked() int64 {
	if f.first == none {
		return never
	}
	return f.slots[f.first].deadline
}

// insert puts a message into a slot and the slot into the table, not yet in the order of deadlines.
func (f *flight) insert(m *Message) int32 {
	f.reserve()
	s := f.free
	f.free = f.slots[s].next
	f.slots[s].message, f.slots[s].id = *m, m.id()
	f.place(s)
	return s
}

// reserve makes sure that there is a free slot and that the table is at most half full.
func (f *flight) reserve() {
	if f.free == none {
		f.slots = append(f.slots, slot{next: none})
		f.free = int32(len(f.slots) - 1)
	}
	if 2*len(f.slots) <= len(f.table) {
		return
	}
	f.table = make([]int32, max(leastTable, 2*len(f.table)))
	for s := f.first; s != none; s = f.slots[s].next { // all that are in the table are in the order
		f.place(s)
	}
}

// place enters a slot into the table.
func (f *flight) place(s int32) {
	mask := len(f.table) - 1
	at := home(f.slots[s].id, mask)
	for f.table[at] != 0 {
		at = (at + 1) & mask
	}
	f.table[at] = s + 1
}

// find returns where in the table the message is.
func (f *flight) find(id protocol.ID) (at int, ok bool) {
	mask := len(f.table) - 1
	if mask < 0 {
		return 0, false
	}
	for at = home(id, mask); f.table[at] != 0; at = (at + 1) & mask {
		if f.slots[f.table[at]-1].id == id {
			return at, true
		}
	}
	return 0, false
}

// remove takes a message out of table, order and slot.
func (f *flight) remove(id protocol.ID) (Message, bool) {
	at, ok := f.find(id)
	if !ok {
		return Message{}, false
	}
	s := f.table[at] - 1
	m := f.slots[s].message
	f.clear(at)
	f.release(s)
	return m, true
}

// removeSlot is remove for a slot that is known. Two messages may have one id (a record that was
// read twice after a crash), so the table is searched for this very slot.
func (f *flight) removeSlot(s int32) {
	mask := len(f.table) - 1
	at := home(f.slots[s].id, mask)
	for f.table[at] != s+1 {
		at = (at + 1) & mask
	}
	f.clear(at)
	f.release(s)
}

// release gives back a slot that is no longer in the table.
func (f *flight) release(s int32) {
	f.unlink(s)
	f.slots[s] = slot{next: f.free}
	f.free = s
}

// clear empties a place of the table and moves up what had to go past it.
func (f *flight) clear(at int) {
	mask := len(f.table) - 1
	f.table[at] = 0
	for next := (at + 1) & mask; f.table[next] != 0; next = (next + 1) & mask {
		want := home(f.slots[f.table[next]-1].id, mask)
		if (next-want)&mask >= (next-at)&mask {
			f.table[at], f.table[next] = f.table[next], 0
			at = next
		}
	}
}

// link enters a slot into the order of deadlines, looking for its place from the end.
func (f *flight) link(s int32) {
	after := f.last
	for after != none && f.slots[after].deadline > f.slots[s].deadline {
		after = f.slots[after].prev
	}
	before := f.first
	if after != none {
		before = f.slots[after].next
		f.slots[after].next = s
	} else {
		f.first = s
	}
	if before != none {
		f.slots[before].prev = s
	} else {
		f.last = s
	}
	f.slots[s].prev, f.slots[s].next = after, before
}

func (f *flight) unlink(s int32) {
	prev, next := f.slots[s].prev, f.slots[s].next
	if prev != none {
		f.slots[prev].next = next
	} else {
		f.first = next
	}
	if next != none {
		f.slots[next].prev = prev
	} else {
		f.last = prev
	}
}

// home is where in a table the search for an id begins.
func home(id protocol.ID, mask int) int {
	high := binary.LittleEndian.Uint64(id[:8])
	low := binary.LittleEndian.Uint64(id[8:])
	a, b := bits.Mul64(high^0x9e3779b97f4a7c15, low^0xd6e8feb86659fd93)
	return int(a^b) & mask
}
