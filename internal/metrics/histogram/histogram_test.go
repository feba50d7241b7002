package histogram

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A duration belongs to the first bucket whose bound is not less; the counts of a snapshot add up.
func TestBuckets(t *testing.T) {
	d := New(time.Millisecond, time.Second, time.Minute)
	for _, took := range []time.Duration{
		-time.Hour, 0, time.Millisecond, // the bound is included
		time.Millisecond + 1, time.Second,
		time.Hour, time.Minute + 1, // beyond the last bound
		time.Millisecond,
	} {
		d.Observe(took)
	}
	want := Snapshot{
		Bounds: []float64{0.001, 1, 60},
		Counts: []uint64{4, 6, 6},
		Count:  8,
		Sum:    0.002 + 0.001000001 + 1 + 3600 + 60.000000001,
	}
	got := d.Snapshot()
	if diff := got.Sum - want.Sum; diff < -1e-6 || diff > 1e-6 {
		t.Errorf("sum %v, want %v", got.Sum, want.Sum)
	}
	got.Sum = want.Sum
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// A tally counts in any order as single observations do, and nothing before it is flushed.
func TestTally(t *testing.T) {
	bounds := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}
	single, batched := New(bounds...), New(bounds...)
	tally := batched.Tally()
	for i := range 1000 {
		took := time.Duration(i*7919%2000) * time.Millisecond / 2
		single.Observe(took)
		tally.Add(int64(took))
	}
	if n := batched.Snapshot().Count; n != 0 {
		t.Errorf("%d counted before the flush", n)
	}
	tally.Flush()
	want, got := single.Snapshot(), batched.Snapshot()
	if diff := got.Sum - want.Sum; diff < -1e-6 || diff > 1e-6 {
		t.Errorf("sum %v, want %v", got.Sum, want.Sum)
	}
	got.Sum = want.Sum
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// What many goroutines add at a time is all there, and an empty tally adds nothing.
func TestConcurrentTallies(t *testing.T) {
	d := New(time.Second)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				tally := d.Tally()
				tally.Add(int64(time.Second))
				tally.Add(int64(2 * time.Second))
				tally.Flush()
				empty := d.Tally()
				empty.Flush()
			}
		})
	}
	all.Wait()
	want := Snapshot{Bounds: []float64{1}, Counts: []uint64{8000}, Count: 16000, Sum: 24000}
	if diff := cmp.Diff(want, d.Snapshot()); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// A sum of long times does not overflow.
func TestHugeSum(t *testing.T) {
	d := New(time.Second)
	const year = 365 * 24 * time.Hour
	for range 1000 {
		d.Observe(year)
	}
	if got, want := d.Snapshot().Sum, 1000*year.Seconds(); got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
}

// A histogram that is not there counts nothing.
func TestNil(t *testing.T) {
	var d *Durations
	d.Observe(time.Second)
	if got := d.Snapshot(); got.Count != 0 {
		t.Errorf("counted %+v", got)
	}
}

// Bounds that make no histogram are refused.
func TestBadBounds(t *testing.T) {
	for name, bounds := range map[string][]time.Duration{
		"out of order": {time.Second, time.Millisecond},
		"too many":     make([]time.Duration, maxBounds+1),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			New(bounds...)
		}()
	}
	New(make([]time.Duration, maxBounds)...).Observe(time.Second) // the most there may be
}
