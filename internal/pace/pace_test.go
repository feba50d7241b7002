package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// How long messages take at a rate: the first one passes at once, and an idle time is made up for by a
// second of it.
func TestThrottle(t *testing.T) {
	for _, test := range []struct {
		name     string
		rate     int64
		idle     time.Duration
		messages int
		want     time.Duration
	}{
		{"steady", 10, 0, 21, 2 * time.Second},
		{"after a short idle time", 10, 500 * time.Millisecond, 16, time.Second},
		{"after a long idle time", 10, time.Hour, 20, time.Second},
		{"one a second", 1, 0, 4, 3 * time.Second},
		{"very fast", 2_000_000_000, 0, 2_001, time.Microsecond},
		{"no limit", 0, 0, 1_000, 0},
		{"negative", -3, 0, 1_000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				throttle := NewThrottle(test.rate)
				time.Sleep(test.idle)
				start := time.Now()
				for range test.messages {
					if err := throttle.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); (took - test.want).Abs() > test.want/100 {
					t.Errorf("took %v, want %v", took, test.want)
				}
			})
		})
	}
}

// A message that has to wait does not pass once ctx is cancelled.
func TestThrottleCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		throttle := NewThrottle(1)
		passed := 0
		for throttle.Wait(ctx) == nil {
			passed++
		}
		if err := throttle.Wait(ctx); passed > 11 || passed < 10 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d passed, then error %v", passed, err)
		}
	})
}

// The part that is picked is the one asked for, all and nothing included.
func TestSampler(t *testing.T) {
	const tries = 20_000
	for _, part := range []float64{0, 0.25, 1} {
		picked := 0
		for range tries {
			if NewSampler(part).Pick() {
				picked++
			}
		}
		got := float64(picked) / tries
		if got < part-0.03 || got > part+0.03 || part == 0 && picked > 0 || part == 1 && picked < tries {
			t.Errorf("part %v: picked %v", part, got)
		}
	}
}
