// Package latency prints how long the last messages took, in a line of the log for every so many of
// them: for all destinations together and, where there are several, for each.
//
// It knows durations only.
//
// Source: apps spec, section 6.
package latency

import (
	"log"
	"math"
	"slices"
	"sync"
	"time"
)

// enough is the number of values from which percentiles mean something.
const enough = 100

// Board has the timers of a program. It is safe for concurrent use.
type Board struct {
	all  *timer
	each []*timer // by address; nil if there is but one
}

// NewBoard returns the timers for the addresses, which print a line for every so many values; every of
// 0 or less prints nothing, one that is small is warned of.
func NewBoard(addresses []string, every int, logger *log.Logger) *Board {
	b := &Board{all: newTimer("[aggregate]:", every, logger)}
	if len(addresses) > 1 {
		for _, address := range addresses {
			b.each = append(b.each, newTimer("["+address+"]:", every, logger))
		}
	}
	return b
}

// Record adds how long a message took on its way to the address with this place in the list.
func (b *Board) Record(index int, took time.Duration) {
	b.RecordAll(took)
	if b.each != nil {
		b.each[index].record(took)
	}
}

// RecordAll adds how long a message took that went to all addresses.
func (b *Board) RecordAll(took time.Duration) { b.all.record(took) }

// RecordOne adds how long one address took for its part of such a message.
func (b *Board) RecordOne(index int, took time.Duration) {
	if b.each != nil {
		b.each[index].record(took)
	}
}

// timer has the last values of one kind.
type timer struct {
	prefix string
	every  int
	log    *log.Logger

	mu    sync.Mutex // guards all below
	ring  []time.Duration
	count int // values so far
}

func newTimer(prefix string, every int, logger *log.Logger) *timer {
	if 0 < every && every < enough {
		logger.Printf("Warning: use more than %d status values for accurate percentiles (configured with %d)", enough, every)
	}
	return &timer{prefix: prefix, every: every, log: logger}
}

// record adds a value, and prints with the first one after a full ring and then once a round.
func (t *timer) record(took time.Duration) {
	if t.every <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ring) < t.every {
		t.ring = append(t.ring, took) // not at once: every may be huge
	} else {
		t.ring[t.count%t.every] = took
	}
	t.count++
	if t.count > t.every && t.count%t.every == 1%t.every {
		t.print()
	}
}

func (t *timer) print() {
	sorted := slices.Sorted(slices.Values(t.ring))
	total := 0.0
	for _, took := range sorted {
		total += milliseconds(took)
	}
	t.log.Printf("%s finished %d - 99th: %.02fms - 95th: %.02fms - avg: %.02fms", t.prefix, len(sorted),
		milliseconds(percentile(99, sorted)), milliseconds(percentile(95, sorted)), total/float64(len(sorted)))
}

// percentile of values that are sorted.
func percentile(p float64, sorted []time.Duration) time.Duration {
	i := int(math.Ceil(p/100*float64(len(sorted)) + 0.5))
	return sorted[min(i, len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
