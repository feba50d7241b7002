package netserver

import (
	"errors"
	"syscall"
	"time"
)

const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = time.Second
)

// isTemporary says whether accepting may work again later: the process or the system is out of
// descriptors or memory, or a connection died before it was accepted.
func isTemporary(err error) bool {
	var told interface{ Temporary() bool }
	if errors.As(err, &told) && told.Temporary() {
		return true
	}
	for _, passing := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPROTO,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// backoff is a pause that doubles each time it is waited for.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait pauses, or returns early when stop is closed.
func (b *backoff) wait(stop <-chan struct{}) {
	b.next = min(max(2*b.next, minBackoff), maxBackoff)
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}

// throttle lets one event pass per interval. It is used by one goroutine.
type throttle struct {
	interval time.Duration
	last     time.Time
}

func (t *throttle) allow() bool {
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < t.interval {
		return false
	}
	t.last = now
	return true
}
