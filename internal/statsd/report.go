package statsd

import (
	"strconv"

	"nsq/internal/api"
	"nsq/internal/protocol"
)

// reporter turns statistics into the lines of a push. It remembers the counters of the last one:
// lines carry what they have grown by. It is used by one goroutine.
type reporter struct {
	prefix           string
	excludeEphemeral bool

	last  map[name]counters // of what the last push described, and of nothing else
	names percentileNames
	lines []byte // of the push that is being written
}

// name is that of a topic or, with a channel, of a channel. Without both it stands for the process.
type name struct{ topic, channel string }

// counters are the values that only grow while the thing they belong to lives.
type counters struct{ messages, bytes, requeues, timeouts, gcRuns uint64 }

// since is how much the counters have grown from earlier ones. If any of them is lower, the thing is
// not the same any more but a new one of that name, which began at zero.
func (c counters) since(earlier counters) counters {
	if c.messages < earlier.messages || c.bytes < earlier.bytes || c.requeues < earlier.requeues ||
		c.timeouts < earlier.timeouts || c.gcRuns < earlier.gcRuns {
		return c
	}
	return counters{
		messages: c.messages - earlier.messages,
		bytes:    c.bytes - earlier.bytes,
		requeues: c.requeues - earlier.requeues,
		timeouts: c.timeouts - earlier.timeouts,
		gcRuns:   c.gcRuns - earlier.gcRuns,
	}
}

// report returns the lines for the statistics, each with its line end. The first report has the
// totals; without memory statistics there are no lines for them.
func (r *reporter) report(stats api.Stats) []byte {
	last := r.last
	r.last = make(map[name]counters, len(last))
	r.lines = nil // the last ones belong to who asked for them
	for i := range stats.Topics {
		if t := &stats.Topics[i]; !r.excluded(t.TopicName) {
			r.topic(t, last)
		}
	}
	if stats.Memory != nil {
		r.memory(stats.Memory, last)
	}
	return r.lines
}

func (r *reporter) excluded(name string) bool {
	return r.excludeEphemeral && protocol.IsEphemeral(name)
}

// grown remembers the counters and returns what they have grown by.
func (r *reporter) grown(of name, now counters, last map[name]counters) counters {
	r.last[of] = now
	return now.since(last[of])
}

func (r *reporter) topic(t *api.TopicStats, last map[name]counters) {
	grown := r.grown(name{topic: t.TopicName}, counters{messages: t.MessageCount, bytes: t.MessageBytes}, last)
	stem := "topic." + t.TopicName + "."
	r.counter(stem+"message_count", grown.messages)
	r.counter(stem+"message_bytes", grown.bytes)
	r.gauge(stem+"depth", t.Depth)
	r.gauge(stem+"backend_depth", t.BackendDepth)
	r.latency(stem, t.E2eProcessingLatency)
	for i := range t.Channels {
		if c := &t.Channels[i]; !r.excluded(c.ChannelName) {
			r.channel(t.TopicName, c, last)
		}
	}
}

func (r *reporter) channel(topic string, c *api.ChannelStats, last map[name]counters) {
	grown := r.grown(name{topic, c.ChannelName},
		counters{messages: c.MessageCount, requeues: c.RequeueCount, timeouts: c.TimeoutCount}, last)
	stem := "topic." + topic + ".channel." + c.ChannelName + "."
	r.counter(stem+"message_count", grown.messages)
	r.gauge(stem+"depth", c.Depth)
	r.gauge(stem+"backend_depth", c.BackendDepth)
	r.gauge(stem+"in_flight_count", c.InFlightCount)
	r.gauge(stem+"deferred_count", c.DeferredCount)
	r.counter(stem+"requeue_count", grown.requeues)
	r.counter(stem+"timeout_count", grown.timeouts)
	r.gauge(stem+"clients", int64(c.ClientCount))
	r.latency(stem, c.E2eProcessingLatency)
}

func (r *reporter) latency(stem string, l api.E2eProcessingLatency) {
	r.names.learn(l.Percentiles)
	for i, p := range l.Percentiles {
		r.gauge(stem+"e2e_processing_latency_"+r.names.names[i], int64(p.Value))
	}
}

func (r *reporter) memory(m *api.Memory, last map[name]counters) {
	grown := r.grown(name{}, counters{gcRuns: uint64(m.GCTotalRuns)}, last)
	for _, figure := range m.Gauges() {
		r.gauge("mem."+figure.Name, int64(figure.Value))
	}
	r.counter("mem.gc_runs", grown.gcRuns)
}

func (r *reporter) counter(name string, grown uint64) {
	r.begin(name)
	r.lines = append(strconv.AppendUint(r.lines, grown, 10), "|c\n"...)
}

func (r *reporter) gauge(name string, value int64) {
	r.begin(name)
	r.lines = append(strconv.AppendInt(r.lines, value, 10), "|g\n"...)
}

func (r *reporter) begin(name string) {
	r.lines = append(r.lines, r.prefix...)
	r.lines = append(r.lines, name...)
	r.lines = append(r.lines, ':')
}
