package broker

import "sync"

// A message id is a 64-bit number of three parts:
//
//	63..22   time in units of 1,048,576 ns since 2012-10-28 16:23:42 UTC
//	21..12   node
//	11..0    sequence within the unit
//
// Source: nsqd-tcp spec, section 21.1.
const (
	idUnitShift     = 20 // nanoseconds to units
	idEpoch         = 1288834974288
	idSequenceBits  = 12
	idNodeBits      = 10
	idTimeShift     = idNodeBits + idSequenceBits
	idSequenceLimit = 1 << idSequenceBits
)

// idSource makes the ids of all messages of an nsqd, so that two topics never share one. Its time
// runs ahead of the clock when a unit's sequence is used up or the clock is set back: it never
// waits and never goes back.
type idSource struct {
	node uint64

	mu       sync.Mutex
	unit     uint64 // of the last id given out
	sequence uint64 // the next one in it
}

// take reserves the next n ids at the wall-clock time of now nanoseconds since the Unix epoch.
func (s *idSource) take(now int64, n int) idRun {
	unit := uint64(max(now>>idUnitShift-idEpoch, 0))
	s.mu.Lock()
	if unit > s.unit {
		s.unit, s.sequence = unit, 0
	}
	run := idRun{node: s.node, unit: s.unit, sequence: s.sequence}
	s.sequence += uint64(n)
	s.unit += s.sequence / idSequenceLimit
	s.sequence %= idSequenceLimit
	s.mu.Unlock()
	return run
}

// idRun gives out ids that were reserved together.
type idRun struct{ node, unit, sequence uint64 }

func (r *idRun) next() uint64 {
	id := r.unit<<idTimeShift | r.node<<idSequenceBits | r.sequence
	r.sequence++
	if r.sequence == idSequenceLimit {
		r.unit, r.sequence = r.unit+1, 0
	}
	return id
}
