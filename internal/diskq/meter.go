package diskq

import (
	"sync/atomic"
	"time"

	"nsq/internal/metrics/histogram"
)

// Meter measures what the queues of a data path do to the disk, all of them together. Its methods
// may be called from any goroutine.
//
// The library syncs by itself in the course of its work and tells nobody how long that took: whoever
// writes at that moment waits for it, so it shows in the writes.
type Meter struct {
	writes, syncs *histogram.Durations
	errors        [causes]atomic.Uint64
}

// NewMeter returns a meter for one Config.
func NewMeter() *Meter {
	return &Meter{writes: newTimes(), syncs: newTimes()}
}

// newTimes has room for a write into the cache of the system as for a disk that hangs.
func newTimes() *histogram.Durations {
	const us, ms = time.Microsecond, time.Millisecond
	return histogram.New(10*us, 25*us, 50*us, 100*us, 250*us, 500*us, 1*ms, 2500*us, 5*ms, 10*ms, 25*ms, 50*ms,
		100*ms, 250*ms, 500*ms, time.Second, 2500*ms, 5*time.Second, 10*time.Second)
}

// Writes are the times of the Puts that went well, batches of any size.
func (m *Meter) Writes() histogram.Snapshot { return m.writes.Snapshot() }

// Syncs are the times of the closings that went well, each of which makes a queue durable.
func (m *Meter) Syncs() histogram.Snapshot { return m.syncs.Snapshot() }

// WriteErrors is how many writes the disk has refused.
func (m *Meter) WriteErrors() uint64 { return m.errors[writing].Load() }

// SyncErrors is how many syncs have failed, those of the library included.
func (m *Meter) SyncErrors() uint64 { return m.errors[syncing].Load() }

// took notes how long an operation took that began at start and went well. m may be nil.
func (m *Meter) took(c cause, start time.Time) {
	switch {
	case m == nil:
	case c == writing:
		m.writes.Observe(time.Since(start))
	default:
		m.syncs.Observe(time.Since(start))
	}
}

// failed notes a failure. m may be nil.
func (m *Meter) failed(c cause) {
	if m != nil {
		m.errors[c].Add(1)
	}
}
