package monitor

import (
	"math"
	"sync"
	"time"
	"unsafe"
)

// maxSamples is how many samples of a series are kept: a chart shows no more.
const maxSamples = 360

// HistoryBytes is how much memory the samples of a History take at most.
const HistoryBytes = 64 << 20

// Key names a series: of the cluster if it is zero, else of a node, a topic, or a channel.
type Key struct{ Node, Topic, Channel string }

// Sample is one look at the numbers of a series.
type Sample struct {
	At       time.Time // to the millisecond
	Depth    int64     // messages that wait; of a topic and of the cluster those in channels included
	InFlight int64
	Clients  int64
	Rates
}

// entry is a Sample in less space.
type entry struct {
	at       int64 // Unix milliseconds
	depth    int64
	inFlight uint32
	clients  uint32
	rates    [4]float32 // the first is NaN where rates are not known
}

// ring holds the latest entries of a series.
type ring struct {
	entries []entry // grows until it is full
	next    int     // where the next goes once it is full
	last    int64   // time of the latest, Unix milliseconds
}

// History keeps the samples of the last hour or so. When there are more series than fit into its
// memory, those that come last in a collection (channels come last) are not kept. It is safe for
// concurrent use.
type History struct {
	interval time.Duration
	window   time.Duration
	length   int // entries a ring
	series   int // most rings

	mu    sync.Mutex
	rings map[Key]*ring // guarded by mu
	last  int64         // time of the last sample, Unix milliseconds; guarded by mu
}

// NewHistory keeps samples for the window, one each interval or as many as a series may have, in at
// most limit bytes.
func NewHistory(interval, window time.Duration, limit int) *History {
	interval = max(interval, window/maxSamples)
	length := max(int(window/interval), 1)
	return &History{
		interval: interval,
		window:   window,
		length:   length,
		series:   max(limit/(length*int(unsafe.Sizeof(entry{}))), 1),
		rings:    make(map[Key]*ring),
	}
}

// Interval is the time between two samples.
func (h *History) Interval() time.Duration { return h.interval }

// Window is how far back samples go.
func (h *History) Window() time.Duration { return h.window }

// Samples are those of a series, the oldest first; none if there is no such series or no room for it.
// Where the series did not exist, or a node did not answer, there is a gap between two of them.
func (h *History) Samples(key Key) []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[key]
	if r == nil {
		return nil
	}
	samples := make([]Sample, 0, len(r.entries))
	for i := range r.entries {
		samples = append(samples, r.entries[(r.next+i)%len(r.entries)].sample())
	}
	return samples
}

// record adds what the snapshot says to every series.
func (h *History) record(s *Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := s.At.UnixMilli()
	if early := h.interval.Milliseconds() * 3 / 4; h.last != 0 && at-h.last < early && at >= h.last {
		return
	}
	h.last = at
	h.forget(at)
	h.add(Key{}, at, &s.Totals)
	for _, n := range s.Nodes {
		if n.Err == "" {
			h.add(Key{Node: n.Address}, at, &n.Totals)
		}
	}
	for _, t := range s.Topics {
		if len(t.Nodes) > 0 {
			h.add(Key{Topic: t.TopicName}, at, &t.Totals)
		}
	}
	for _, t := range s.Topics {
		for _, c := range t.Channels {
			if len(c.Nodes) > 0 {
				h.add(Key{Topic: t.TopicName, Channel: c.ChannelName}, at, &c.Totals)
			}
		}
	}
}

// forget drops the series that have been gone for a whole window, and the gone ones sooner when
// there is no room. The caller holds mu.
func (h *History) forget(now int64) {
	oldest := now - h.window.Milliseconds()
	if len(h.rings) >= h.series {
		oldest = now - 3*h.interval.Milliseconds()
	}
	for key, r := range h.rings {
		if r.last < oldest {
			delete(h.rings, key)
		}
	}
}

// add appends an entry to a series. The caller holds mu.
func (h *History) add(key Key, at int64, t *Totals) {
	r := h.rings[key]
	if r == nil {
		if len(h.rings) >= h.series {
			return
		}
		r = &ring{}
		h.rings[key] = r
	}
	r.last = at
	if e := newEntry(at, t); len(r.entries) < h.length {
		r.entries = append(r.grown(h.length), e)
	} else {
		r.entries[r.next] = e
		r.next = (r.next + 1) % len(r.entries)
	}
}

// grown has room for one more, and never for more than length.
func (r *ring) grown(length int) []entry {
	if len(r.entries) < cap(r.entries) {
		return r.entries
	}
	wider := make([]entry, len(r.entries), min(max(2*len(r.entries), 8), length))
	copy(wider, r.entries)
	return wider
}

func newEntry(at int64, t *Totals) entry {
	e := entry{at: at, depth: t.Depth, inFlight: clamp(t.InFlight), clients: clamp(t.Clients)}
	e.rates = [4]float32{float32(t.Publish), float32(t.Deliver), float32(t.Requeue), float32(t.Timeout)}
	if !t.Known {
		e.rates[0] = float32(math.NaN())
	}
	return e
}

func (e *entry) sample() Sample {
	s := Sample{At: time.UnixMilli(e.at), Depth: e.depth, InFlight: int64(e.inFlight), Clients: int64(e.clients)}
	if first := float64(e.rates[0]); !math.IsNaN(first) {
		s.Rates = Rates{true, first, float64(e.rates[1]), float64(e.rates[2]), float64(e.rates[3])}
	}
	return s
}

// clamp fits what a node says into its place.
func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
