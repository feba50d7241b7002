package diskq

import (
	"sync"
	"sync/atomic"
)

// cause is what can be wrong with a queue.
type cause int

const (
	writing cause = iota
	syncing
	causes
)

// health tells the owner of a queue when its state changes between well and failing.
type health struct {
	queue  string
	report func(queue string, err error) // may be nil
	meter  *Meter                        // may be nil

	failing atomic.Bool // some errs is not nil; saves a healthy queue the lock

	mu   sync.Mutex // held while reporting too: reports must arrive in the order of what they say
	errs [causes]error
}

// set notes the outcome of the latest operation of that kind. Every error is reported, and once
// that nothing is wrong any more.
func (h *health) set(c cause, err error) {
	if err != nil {
		h.meter.failed(c)
	}
	if h.report == nil || err == nil && !h.failing.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs[c] = err
	if err != nil {
		h.failing.Store(true)
		h.report(h.queue, err)
		return
	}
	if h.errs == [causes]error{} && h.failing.Swap(false) {
		h.report(h.queue, nil)
	}
}
