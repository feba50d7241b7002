// Package monitor looks at the whole cluster once in an interval, however many people watch, and keeps
// what it saw: the latest snapshot, and a history of the numbers.
//
// It changes nothing in the cluster and knows no page.
//
// Source: nsqadmin spec, sections 4, 8 and 14.
package monitor

import (
	"context"
	"sync"
	"time"

	"nsq/internal/cluster"
	"nsq/internal/log"
)

// Config is what a Monitor is made from.
type Config struct {
	Cluster  *cluster.Cluster
	Interval time.Duration // between two collections
	Window   time.Duration // how far back the history goes
	Timeout  time.Duration // of one collection; who has not answered by then is left out; 0: a minute
	Log      *log.Logger
}

// Monitor collects. Its methods may be called from any goroutine.
type Monitor struct {
	config  Config
	history *History
	wake    chan struct{} // one slot: a collection is wanted before its time
	ended   chan struct{} // closed when Run returns
	rates   rates         // of the goroutine in Run

	mu      sync.Mutex
	begun   uint64        // number of the collection that was begun last; guarded by mu
	latest  *Snapshot     // guarded by mu; what it points to never changes
	changed chan struct{} // closed when latest is replaced; guarded by mu
}

// New returns a monitor that has seen nothing yet.
func New(config Config) *Monitor {
	if config.Timeout <= 0 {
		config.Timeout = time.Minute
	}
	return &Monitor{
		config:  config,
		history: NewHistory(config.Interval, config.Window, HistoryBytes),
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
		rates:   rates{interval: config.Interval},
		latest:  &Snapshot{Direct: config.Cluster.Direct()},
		changed: make(chan struct{}),
	}
}

// Snapshot is the latest, never nil.
func (m *Monitor) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

// Changed is closed when there is a newer snapshot than the latest of now.
func (m *Monitor) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// History is that of the snapshots.
func (m *Monitor) History() *History { return m.history }

// Wake has a collection made soon that begins after the call. It does not wait.
func (m *Monitor) Wake() {
	select {
	case m.wake <- struct{}{}:
	default: // somebody else wants one, too
	}
}

// Refresh has a collection made that begins after the call, and waits for its snapshot or for ctx.
func (m *Monitor) Refresh(ctx context.Context) {
	m.mu.Lock()
	wanted := m.begun + 1
	m.mu.Unlock()
	m.Wake()
	for {
		changed := m.Changed()
		if m.Snapshot().Seq >= wanted {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-m.ended:
			return
		}
	}
}

// Run collects until ctx is cancelled. It is called once.
func (m *Monitor) Run(ctx context.Context) error {
	defer close(m.ended)
	ticker := time.NewTicker(m.config.Interval)
	defer ticker.Stop()
	m.collect(ctx, true)
	for {
		select {
		case <-ticker.C:
			m.collect(ctx, true)
		case <-m.wake:
			m.collect(ctx, false)
		case <-ctx.Done():
			return nil
		}
	}
}

// collect takes a snapshot; the regular ones go into the history.
func (m *Monitor) collect(ctx context.Context, regular bool) {
	m.mu.Lock()
	m.begun++
	seq := m.begun
	m.mu.Unlock()

	start := time.Now()
	within, cancel := context.WithTimeout(ctx, m.config.Timeout)
	defer cancel()
	s := look(within, m.config.Cluster)
	if ctx.Err() != nil {
		return // what we break off is no failure of theirs
	}
	m.rates.apply(s)
	s.Seq, s.At, s.Took = seq, time.Now(), time.Since(start)
	if regular {
		m.history.record(s)
	}
	m.complain(s)
	m.publish(s)
}

func (m *Monitor) publish(s *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest = s
	close(m.changed)
	m.changed = make(chan struct{})
}

// complain logs what failed now and not the time before.
func (m *Monitor) complain(s *Snapshot) {
	before := make(map[string]bool)
	for _, f := range m.Snapshot().Failures {
		before[f.Target+f.Stage] = true
	}
	for _, f := range s.Failures {
		if !before[f.Target+f.Stage] {
			m.config.Log.Warnf("MONITOR: %s does not answer %s - %s", f.Target, f.Stage, f.Err)
		}
	}
}
