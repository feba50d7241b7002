package main

import (
	"fmt"
	"strings"
	"time"

	"nsq/internal/api"
)

// row is a line of the table: rates between two samples, and the figures of the second one.
type row struct {
	Time     time.Time `json:"time"`
	Ingress  int64     `json:"ingress"` // messages a second
	Egress   int64     `json:"egress"`  // messages a second
	Depth    int64     `json:"depth"`
	Memory   int64     `json:"depth_memory"`
	Disk     int64     `json:"depth_disk"`
	InFlight int64     `json:"in_flight"`
	Deferred int64     `json:"deferred"`
	Requeued uint64    `json:"requeued"`
	TimedOut uint64    `json:"timed_out"`
	Messages uint64    `json:"messages"`
	Clients  int       `json:"clients"`
	Paused   int       `json:"paused_nodes"` // nsqd on which the channel is paused
	Nodes    int       `json:"nodes"`        // nsqd that were asked
	Failed   []failure `json:"failed"`       // those of them without an answer
	Error    string    `json:"error,omitempty"`
}

// newRow adds up the channels of all nsqd. Rates are those of the nsqd that are in both samples: one
// that was away would seem to have had all its messages at once.
func newRow(before, now sample, interval time.Duration) row {
	r := row{Time: now.taken, Nodes: now.nodes, Failed: now.failed}
	if r.Failed == nil {
		r.Failed = []failure{} // [] in JSON
	}
	if now.err != nil {
		r.Error = now.err.Error()
	}
	var in, out int64
	for address, c := range now.channels {
		r.add(c)
		if earlier, ok := before.channels[address]; ok {
			published, consumed := change(earlier, c)
			in, out = in+published, out+consumed
		}
	}
	seconds := between(before.taken, now.taken, interval).Seconds()
	r.Ingress, r.Egress = int64(float64(in)/seconds), int64(float64(out)/seconds)
	return r
}

func (r *row) add(c api.ChannelStats) {
	r.Depth += c.Depth
	r.Memory += c.Depth - c.BackendDepth
	r.Disk += c.BackendDepth
	r.InFlight += c.InFlightCount
	r.Deferred += c.DeferredCount
	r.Requeued += c.RequeueCount
	r.TimedOut += c.TimeoutCount
	r.Messages += c.MessageCount
	r.Clients += c.ClientCount
	if c.Paused {
		r.Paused++
	}
}

// change is how many messages came to a channel and how many left its queue. Counters that went down
// are those of a nsqd that was started again: it counts from zero, and its queue says nothing of what
// was consumed.
func change(before, now api.ChannelStats) (published, consumed int64) {
	if now.MessageCount < before.MessageCount {
		return int64(now.MessageCount), 0
	}
	published = int64(now.MessageCount - before.MessageCount)
	return published, published - (now.Depth - before.Depth)
}

// between is the time between two samples. One that is off by a little, as timers are, counts as the
// interval: otherwise 10 messages in a second would be 9.99, and print as 9.
func between(before, now time.Time, interval time.Duration) time.Duration {
	elapsed := now.Sub(before)
	if off := (elapsed - interval).Abs(); off <= interval/20 || elapsed <= 0 {
		return interval
	}
	return elapsed
}

// remarks is what a row has to say besides figures; empty: nothing.
func (r *row) remarks() string {
	var remarks []string
	if len(r.Failed) > 0 {
		remarks = append(remarks, fmt.Sprintf("%d of %d nsqd failed", len(r.Failed), r.Nodes))
	}
	if r.Paused > 0 {
		remarks = append(remarks, "paused")
	}
	if r.Error != "" {
		remarks = append(remarks, strings.ReplaceAll(r.Error, "\n", "; "))
	}
	return strings.Join(remarks, ", ")
}
