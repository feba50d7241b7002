package broker

import "sync"

// deferred holds a channel's messages that are not to be delivered before their time: a heap of
// values with four children a node, the earliest due on top. Nothing looks one up by id. Times are
// nanoseconds of the broker's monotonic clock.
type deferred struct {
	mu   sync.Mutex
	heap []deferredMessage
}

type deferredMessage struct {
	due     int64
	message Message
}

const heapArity = 4

// put adds a message.
func (d *deferred) put(m Message, due int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heap = append(d.heap, deferredMessage{due: due, message: m})
	d.up(len(d.heap) - 1)
}

// expire takes all messages that are due, appends them to dst, and returns the earliest due time
// that is left.
func (d *deferred) expire(dst []Message, now int64) (expired []Message, due int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.heap) > 0 && d.heap[0].due <= now {
		dst = append(dst, d.heap[0].message)
		d.pop()
	}
	if len(d.heap) == 0 {
		d.heap = nil
		return dst, never
	}
	return dst, d.heap[0].due
}

// drain takes everything, in no particular order.
func (d *deferred) drain() []deferredMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.heap
	d.heap = nil
	return all
}

func (d *deferred) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.heap)
}

func (d *deferred) pop() {
	last := len(d.heap) - 1
	d.heap[0] = d.heap[last]
	d.heap[last] = deferredMessage{}
	d.heap = d.heap[:last]
	d.down(0)
}

func (d *deferred) up(i int) {
	item := d.heap[i]
	for i > 0 {
		parent := (i - 1) / heapArity
		if d.heap[parent].due <= item.due {
			break
		}
		d.heap[i] = d.heap[parent]
		i = parent
	}
	d.heap[i] = item
}

func (d *deferred) down(i int) {
	if i >= len(d.heap) {
		return
	}
	item := d.heap[i]
	for {
		first := i*heapArity + 1
		if first >= len(d.heap) {
			break
		}
		least := first
		for child := first + 1; child < min(first+heapArity, len(d.heap)); child++ {
			if d.heap[child].due < d.heap[least].due {
				least = child
			}
		}
		if item.due <= d.heap[least].due {
			break
		}
		d.heap[i] = d.heap[least]
		i = least
	}
	d.heap[i] = item
}
