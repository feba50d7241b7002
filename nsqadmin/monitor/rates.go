package monitor

import (
	"time"

	"nsq/internal/api"
)

// counters are those of a topic or channel on one node. They begin at 0 when the nsqd starts.
type counters struct {
	published, delivered, gone, requeued, timedOut uint64
}

// rates compares counters with those of the collection before. It belongs to one goroutine.
type rates struct {
	interval time.Duration
	before   map[string]nodeCounters // by the address of the node
	known    map[Key]Rates           // what was found last, for collections that follow too soon
}

// nodeCounters are all counters of a node at one time.
type nodeCounters struct {
	at       time.Time
	counters map[Key]counters // by topic, or topic and channel
}

// apply fills in the rates of a snapshot. Two collections within half an interval are too close to
// compare: then the rates stay what they were.
func (r *rates) apply(s *Snapshot) {
	if r.due(s) {
		r.compare(s)
	}
	for _, n := range s.Nodes {
		n.Totals.Rates = r.known[Key{Node: n.Address}]
	}
	for _, t := range s.Topics {
		t.Totals.Rates = r.known[Key{Topic: t.TopicName}]
		for _, c := range t.Channels {
			c.Totals.Rates = r.known[Key{Topic: t.TopicName, Channel: c.ChannelName}]
		}
	}
	s.Totals.Rates = r.known[Key{}]
}

// due says whether no node was looked at too shortly ago.
func (r *rates) due(s *Snapshot) bool {
	for _, n := range s.Nodes {
		if b, ok := r.before[n.Address]; ok && n.Err == "" && n.at.Sub(b.at) < r.interval/2 {
			return false
		}
	}
	return true
}

func (r *rates) compare(s *Snapshot) {
	r.known = make(map[Key]Rates)
	now := make(map[string]nodeCounters, len(s.Nodes))
	for _, n := range s.Nodes {
		if n.Err != "" {
			continue
		}
		current := countersOf(n)
		now[n.Address] = current
		before, ok := r.before[n.Address]
		if elapsed := current.at.Sub(before.at).Seconds(); ok && elapsed > 0 {
			r.addNode(n.Address, before.counters, current.counters, elapsed)
		}
	}
	r.before = now
}

// addNode adds the rates on one node to the sums that they are part of.
func (r *rates) addNode(address string, before, now map[Key]counters, elapsed float64) {
	// Known even where nothing is counted.
	r.add(Key{Node: address}, Rates{Known: true})
	r.add(Key{}, Rates{Known: true})
	for key, current := range now {
		found := rate(before[key], current, elapsed)
		r.add(key, found)
		if key.Channel != "" { // what a channel gets, its topic has got before
			found.Publish = 0
			r.add(Key{Topic: key.Topic}, found)
		}
		r.add(Key{Node: address}, found)
		r.add(Key{}, found)
	}
}

func (r *rates) add(key Key, more Rates) {
	sum := r.known[key]
	sum.add(more)
	r.known[key] = sum
}

// rate compares two looks at the same counters.
func rate(before, now counters, elapsed float64) Rates {
	r := Rates{
		Known:   true,
		Publish: float64(grown(before.published, now.published)) / elapsed,
		Deliver: float64(grown(before.delivered, now.delivered)) / elapsed,
		Requeue: float64(grown(before.requeued, now.requeued)) / elapsed,
		Timeout: float64(grown(before.timedOut, now.timedOut)) / elapsed,
	}
	if now.delivered == 0 && now.gone > before.gone { // a nsqd that does not count deliveries
		r.Deliver = float64(now.gone-before.gone) / elapsed
	}
	return r
}

// grown is by how much a counter has grown; one that is lower has begun again at 0.
func grown(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

func countersOf(n *Node) nodeCounters {
	all := make(map[Key]counters)
	for _, t := range n.Stats {
		all[Key{Topic: t.TopicName}] = counters{published: t.MessageCount}
		for _, c := range t.Channels {
			all[Key{Topic: t.TopicName, Channel: c.ChannelName}] = channelCounters(c)
		}
	}
	return nodeCounters{at: n.at, counters: all}
}

func channelCounters(c *api.AdminChannel) counters {
	of := counters{
		published: c.MessageCount,
		delivered: c.DeliveryMsgCount,
		requeued:  c.RequeueCount,
		timedOut:  c.TimeoutCount,
	}
	waiting := uint64(max(c.Depth, 0)) + uint64(max(c.InFlightCount, 0)) + uint64(max(c.DeferredCount, 0))
	if c.MessageCount > waiting {
		of.gone = c.MessageCount - waiting
	}
	return of
}
