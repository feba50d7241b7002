// Package pace holds messages back: a Throttle lets so many a second pass, a Sampler a part of them.
//
// It knows no messages, only their number.
//
// Source: apps spec, sections 8.6 and 12.4.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Throttle lets at most so many messages a second pass. After an idle time it makes up for up to one
// second of it. It belongs to one goroutine.
type Throttle struct {
	rate   float64   // messages a second
	tokens float64   // messages that may pass now; negative: promised in advance
	last   time.Time // when tokens were counted
}

// NewThrottle returns a throttle; a rate below 1 is no limit.
func NewThrottle(rate int64) *Throttle {
	t := &Throttle{tokens: 1, last: time.Now()}
	if rate >= 1 {
		t.rate = float64(rate)
	}
	return t
}

// Wait blocks until one more message may pass. If it has to wait and ctx is cancelled it returns the
// error of ctx, and the message may not pass.
func (t *Throttle) Wait(ctx context.Context) error {
	if t.rate == 0 {
		return nil
	}
	now := time.Now()
	t.tokens = min(t.tokens+now.Sub(t.last).Seconds()*t.rate, t.rate)
	t.last = now
	t.tokens--
	if t.tokens >= 0 {
		return nil
	}
	// A very short sleep takes longer than it should; the next one is shorter for that.
	timer := time.NewTimer(time.Duration(-t.tokens / t.rate * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Sampler picks a part of all messages at random. It is safe for concurrent use.
type Sampler struct{ part float64 }

// NewSampler returns a sampler that picks a part from 0, none, to 1, all.
func NewSampler(part float64) Sampler { return Sampler{part: part} }

// Pick says whether the next message is picked.
func (s Sampler) Pick() bool { return s.part >= 1 || rand.Float64() < s.part }
