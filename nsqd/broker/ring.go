package broker

// ring is a FIFO of messages in segments of memory. It begins with nothing and grows and shrinks
// with what it holds. It is not safe for concurrent use.
type ring struct {
	head, tail *segment
	n          int
}

// segment holds items[first:last].
type segment struct {
	items       []Message
	first, last int
	next        *segment
}

const (
	leastSegment = 8
	maxSegment   = 256
)

func (r *ring) len() int { return r.n }

// front is the message that pop would take first, nil if there is none.
func (r *ring) front() *Message {
	if r.n == 0 {
		return nil
	}
	return &r.head.items[r.head.first]
}

// push appends a batch.
func (r *ring) push(batch []Message) {
	r.n += len(batch)
	for len(batch) > 0 {
		if r.tail == nil || r.tail.last == len(r.tail.items) {
			r.grow(len(batch))
		}
		copied := copy(r.tail.items[r.tail.last:], batch)
		r.tail.last += copied
		batch = batch[copied:]
	}
}

// grow appends an empty segment, larger than the one before and large enough for a small batch.
func (r *ring) grow(batch int) {
	size := max(leastSegment, batch)
	if r.tail != nil {
		size = max(size, 2*len(r.tail.items))
	}
	s := &segment{items: make([]Message, min(size, maxSegment))}
	if r.tail == nil {
		r.head = s
	} else {
		r.tail.next = s
	}
	r.tail = s
}

// pop moves up to limit messages from the front to the end of dst.
func (r *ring) pop(dst []Message, limit int) []Message {
	for limit > 0 && r.n > 0 {
		s := r.head
		taken := min(limit, s.last-s.first)
		part := s.items[s.first : s.first+taken]
		dst = append(dst, part...)
		clear(part) // let go of their chunks
		s.first += taken
		limit -= taken
		r.n -= taken
		if s.first == s.last {
			r.shrink()
		}
	}
	return dst
}

// shrink drops the segment at the front, which is used up. The last one is kept for what comes.
func (r *ring) shrink() {
	if r.head.next == nil {
		r.head.first, r.head.last = 0, 0
		return
	}
	r.head = r.head.next
}

// reset forgets all messages and all memory.
func (r *ring) reset() { *r = ring{} }
