// Package histogram counts durations in fixed buckets, without a lock and for next to nothing: many
// goroutines add, a batch at a time, while others read.
//
// It knows neither what the durations mean nor how they are shown.
package histogram

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// maxBounds is the most bounds that a Durations has; it bounds a Tally, which lives on the stack.
const maxBounds = 31

// Durations is a histogram. Its methods may be called from any goroutine; a nil one counts nothing.
type Durations struct {
	bounds []int64         // nanoseconds, ascending; read only
	counts []atomic.Uint64 // by bucket: one for each bound, and one for what is longer
	sum    atomic.Uint64   // bits of a float64, seconds: nanoseconds overflow with a backlog of days
}

// New returns a histogram whose buckets end at the bounds, each included in its bucket: 31 at most,
// in ascending order. Anything else is an error of the program, and panics.
func New(bounds ...time.Duration) *Durations {
	if len(bounds) > maxBounds || !slices.IsSorted(bounds) {
		panic("histogram: too many bounds, or out of order")
	}
	d := &Durations{counts: make([]atomic.Uint64, len(bounds)+1)}
	for _, bound := range bounds {
		d.bounds = append(d.bounds, int64(bound))
	}
	return d
}

// Observe counts one duration.
func (d *Durations) Observe(took time.Duration) {
	if d == nil {
		return
	}
	tally := d.Tally()
	tally.Add(int64(took))
	tally.Flush()
}

// Tally returns an empty tally of d, which must not be nil.
func (d *Durations) Tally() Tally { return Tally{durations: d, above: math.MaxInt64} }

// Tally counts a batch before it is added to a histogram. It belongs to one goroutine.
type Tally struct {
	durations *Durations
	counts    [maxBounds + 1]uint32 // by bucket
	sum       float64               // nanoseconds

	// The bucket of the last duration, where the next one is likely to belong as well: those that
	// are above the one and at most the other.
	bucket       int
	above, limit int64
}

// Add counts a duration in nanoseconds; a negative one, of a clock that was set back, is 0.
func (t *Tally) Add(took int64) {
	took = max(took, 0)
	if took <= t.above || took > t.limit {
		t.find(took)
	}
	t.counts[t.bucket]++
	t.sum += float64(took)
}

func (t *Tally) find(took int64) {
	bounds := t.durations.bounds
	t.bucket, _ = slices.BinarySearch(bounds, took)
	t.above, t.limit = -1, math.MaxInt64
	if t.bucket > 0 {
		t.above = bounds[t.bucket-1]
	}
	if t.bucket < len(bounds) {
		t.limit = bounds[t.bucket]
	}
}

// Flush adds the counts to the histogram. The tally must not be used after it.
func (t *Tally) Flush() {
	added := false
	for bucket := range t.durations.counts {
		if n := t.counts[bucket]; n > 0 {
			t.durations.counts[bucket].Add(uint64(n))
			added = true
		}
	}
	for added {
		old := t.durations.sum.Load()
		if t.durations.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+t.sum/1e9)) {
			return
		}
	}
}

// Snapshot is a histogram at one moment.
type Snapshot struct {
	Bounds []float64 // seconds, ascending
	Counts []uint64  // of durations up to each bound, those of the bounds before included
	Count  uint64    // of all durations
	Sum    float64   // seconds
}

// Snapshot reads the histogram; what is added meanwhile may be in it or not.
func (d *Durations) Snapshot() Snapshot {
	if d == nil {
		return Snapshot{}
	}
	s := Snapshot{Sum: math.Float64frombits(d.sum.Load())}
	for bucket := range d.counts {
		s.Count += d.counts[bucket].Load()
		if bucket < len(d.bounds) {
			s.Bounds = append(s.Bounds, time.Duration(d.bounds[bucket]).Seconds())
			s.Counts = append(s.Counts, s.Count)
		}
	}
	return s
}
