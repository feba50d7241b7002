package broker

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Unwell is the error of Health.Err.
type Unwell struct {
	Name string // of the queue, or "metadata"; the first by name if there are several
	Err  error  // why
	More int    // how many others are unwell
}

// Error is the cause, and how many others there are.
func (u *Unwell) Error() string {
	if u.More == 0 {
		return u.Err.Error()
	}
	return fmt.Sprintf("%s (%s, and %d more)", u.Err, u.Name, u.More)
}

// Unwrap returns the cause.
func (u *Unwell) Unwrap() error { return u.Err }

// Health remembers what is unwell and why: a failure stays until the same thing works again. The
// zero Health is well. Its methods may be called from any goroutine.
type Health struct {
	mu     sync.Mutex
	unwell map[string]error
}

// Set notes the outcome of the last operation of what, for example of a queue.
func (h *Health) Set(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.unwell, what)
		return
	}
	if h.unwell == nil {
		h.unwell = make(map[string]error)
	}
	h.unwell[what] = err
}

// Err returns nil, or an *Unwell.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.unwell) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(h.unwell)))
	return &Unwell{Name: first, Err: h.unwell[first], More: len(h.unwell) - 1}
}
