package destination

import "time"

// How likely epsilon-greedy explores: at first, at last, and by what it shrinks each time.
const (
	firstEpsilon  = 0.3
	lastEpsilon   = 0.01
	epsilonShrink = 0.9
)

// greedy gives the turn to a random host, the more likely the faster it is, or explores.
func (p *Pool) greedy(now time.Time) int {
	if p.random() < p.epsilon {
		p.epsilon = max(p.epsilon*epsilonShrink, lastEpsilon)
		return p.cycle(now, func(*host) bool { return true })
	}
	weights := make([]float64, len(p.hosts))
	sum := 0.0
	for i, h := range p.hosts {
		if !h.eligible(now) || h.dead {
			continue // a dead one is tried when exploring
		}
		took, known := h.speed.mean(now)
		if !known { // nobody may be left out only because another one was measured first
			return p.cycle(now, func(h *host) bool { _, known := h.speed.mean(now); return !known && !h.dead })
		}
		weights[i] = 1 / max(took, time.Nanosecond).Seconds()
		sum += weights[i]
	}
	if sum == 0 {
		return p.cycle(now, func(*host) bool { return true })
	}
	at, last := p.random()*sum, 0
	for i, weight := range weights {
		if weight == 0 {
			continue
		}
		if last = i; at < weight {
			break
		}
		at -= weight
	}
	return last
}

// The memory of a host's response times: buckets, and the time that each is about.
const (
	bucketCount = 120
	bucketTime  = 2500 * time.Millisecond
)

// speed remembers how long a host took, in the last five minutes.
type speed struct {
	buckets [bucketCount]bucket // a ring, the place of a bucket follows from its number
}

// bucket has the responses of one span of time, which its number tells.
type bucket struct {
	number int64
	count  int
	total  time.Duration
}

func bucketNumber(now time.Time) int64 { return now.UnixNano() / int64(bucketTime) }

func (s *speed) add(now time.Time, took time.Duration) {
	number := bucketNumber(now)
	b := &s.buckets[number%bucketCount]
	if b.number != number {
		*b = bucket{number: number}
	}
	b.count++
	b.total += took
}

// mean is the mean response time, in which new buckets weigh more than old ones; a bucket without a
// response repeats the one before it. It is not known if there is no response at all.
func (s *speed) mean(now time.Time) (time.Duration, bool) {
	var weighted, weights, value float64
	known := false
	newest := bucketNumber(now)
	for k := int64(1); k <= bucketCount; k++ {
		number := newest - bucketCount + k
		b := &s.buckets[(number%bucketCount+bucketCount)%bucketCount]
		if b.number == number && b.count > 0 {
			value = float64(b.total) / float64(b.count)
			known = true
		}
		if known {
			weight := float64(k) / bucketCount
			weighted += weight * value
			weights += weight
		}
	}
	if !known {
		return 0, false
	}
	return time.Duration(weighted / weights), true
}
