package quantile

import "sync"

// Window holds the last numbers that were inserted: those of the half window that runs and of the
// one before, so of half the plan's window at least and of all of it at most.
//
// Its methods may be called from any goroutine. A nil Window ignores what is inserted and has the
// zero Result.
type Window struct {
	plan *Plan

	mu      sync.Mutex         // guards what follows
	start   int64              // of the half that runs, nanoseconds of the caller's clock
	running *histogram[uint32] // nil until its half's first number
	before  *histogram[uint32] // nil as long as there is nothing to remember
}

// Insert adds numbers, taking the lock once. Negative ones count as 0. now is the time in
// nanoseconds of a clock of the caller's choice, the same for all calls; when it is set back nothing
// is lost, the half window begins anew.
func (w *Window) Insert(now int64, numbers []int64) {
	if w == nil || len(numbers) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	if w.running == nil {
		w.running = new(histogram[uint32])
	}
	for _, number := range numbers {
		w.running.add(number)
	}
}

// turn makes the half window that now is in the running one. The window is locked.
func (w *Window) turn(now int64) {
	half := w.plan.half
	switch age := now - w.start; {
	case age < 0:
		w.start = now
	case age < half:
	case age-half < half:
		w.running, w.before = w.before, w.running
		if w.running != nil {
			w.running.clear()
		}
		w.start += half
	default: // both have passed: an idle window gives its memory back
		w.running, w.before = nil, nil
		w.start = now
	}
}

// addTo adds the numbers of the window at the time now to a sum.
func (w *Window) addTo(sum *histogram[uint64], now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	for _, half := range []*histogram[uint32]{w.before, w.running} {
		if half != nil {
			half.addTo(sum)
		}
	}
}
