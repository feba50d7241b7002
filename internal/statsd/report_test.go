package statsd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nsq/internal/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func latency(values ...float64) api.E2eProcessingLatency {
	l := api.E2eProcessingLatency{Count: 1}
	for i, value := range values {
		l.Percentiles = append(l.Percentiles, api.LatencyPercentile{Quantile: []float64{1, 0.99}[i], Value: value})
	}
	return l
}

// full is a snapshot with every figure set to a value of its own.
func full() api.Stats {
	return api.Stats{
		Topics: []api.TopicStats{
			{TopicName: "eph#ephemeral", MessageCount: 1, Channels: []api.ChannelStats{{ChannelName: "c"}}},
			{
				TopicName: "orders", MessageCount: 12, MessageBytes: 31, Depth: 7, BackendDepth: 3,
				E2eProcessingLatency: latency(5421387, 5421386.9),
				Channels: []api.ChannelStats{
					{
						ChannelName: "billing", MessageCount: 11, Depth: 6, BackendDepth: 5, InFlightCount: 4,
						DeferredCount: 2, RequeueCount: 8, TimeoutCount: 9, ClientCount: 10,
						E2eProcessingLatency: latency(1e9, 0),
					},
					{ChannelName: "tail#ephemeral"},
				},
			},
		},
		Memory: &api.Memory{
			HeapObjects: 1, HeapIdleBytes: 2, HeapInUseBytes: 3, HeapReleasedBytes: 4, GCPauseUsec100: 5,
			GCPauseUsec99: 6, GCPauseUsec95: 7, NextGCBytes: 8, GCTotalRuns: 9,
		},
	}
}

const ephemeralTopic = `p.topic.eph#ephemeral.message_count:1|c
p.topic.eph#ephemeral.message_bytes:0|c
p.topic.eph#ephemeral.depth:0|g
p.topic.eph#ephemeral.backend_depth:0|g
p.topic.eph#ephemeral.channel.c.message_count:0|c
p.topic.eph#ephemeral.channel.c.depth:0|g
p.topic.eph#ephemeral.channel.c.backend_depth:0|g
p.topic.eph#ephemeral.channel.c.in_flight_count:0|g
p.topic.eph#ephemeral.channel.c.deferred_count:0|g
p.topic.eph#ephemeral.channel.c.requeue_count:0|c
p.topic.eph#ephemeral.channel.c.timeout_count:0|c
p.topic.eph#ephemeral.channel.c.clients:0|g
`

const lastingTopic = `p.topic.orders.message_count:12|c
p.topic.orders.message_bytes:31|c
p.topic.orders.depth:7|g
p.topic.orders.backend_depth:3|g
p.topic.orders.e2e_processing_latency_100:5421387|g
p.topic.orders.e2e_processing_latency_99:5421386|g
p.topic.orders.channel.billing.message_count:11|c
p.topic.orders.channel.billing.depth:6|g
p.topic.orders.channel.billing.backend_depth:5|g
p.topic.orders.channel.billing.in_flight_count:4|g
p.topic.orders.channel.billing.deferred_count:2|g
p.topic.orders.channel.billing.requeue_count:8|c
p.topic.orders.channel.billing.timeout_count:9|c
p.topic.orders.channel.billing.clients:10|g
p.topic.orders.channel.billing.e2e_processing_latency_100:1000000000|g
p.topic.orders.channel.billing.e2e_processing_latency_99:0|g
`

const ephemeralChannel = `p.topic.orders.channel.tail#ephemeral.message_count:0|c
p.topic.orders.channel.tail#ephemeral.depth:0|g
p.topic.orders.channel.tail#ephemeral.backend_depth:0|g
p.topic.orders.channel.tail#ephemeral.in_flight_count:0|g
p.topic.orders.channel.tail#ephemeral.deferred_count:0|g
p.topic.orders.channel.tail#ephemeral.requeue_count:0|c
p.topic.orders.channel.tail#ephemeral.timeout_count:0|c
p.topic.orders.channel.tail#ephemeral.clients:0|g
`

const memory = `p.mem.heap_objects:1|g
p.mem.heap_idle_bytes:2|g
p.mem.heap_in_use_bytes:3|g
p.mem.heap_released_bytes:4|g
p.mem.gc_pause_usec_100:5|g
p.mem.gc_pause_usec_99:6|g
p.mem.gc_pause_usec_95:7|g
p.mem.next_gc_bytes:8|g
p.mem.gc_runs:9|c
`

// Names, types, order and values of all metrics. The first report has totals, zeros included.
func TestReport(t *testing.T) {
	noMemory := full()
	noMemory.Memory = nil
	for name, c := range map[string]struct {
		reporter reporter
		stats    api.Stats
		want     string
	}{
		"all":               {reporter{prefix: "p."}, full(), ephemeralTopic + lastingTopic + ephemeralChannel + memory},
		"without memory":    {reporter{prefix: "p."}, noMemory, ephemeralTopic + lastingTopic + ephemeralChannel},
		"without ephemeral": {reporter{prefix: "p.", excludeEphemeral: true}, full(), lastingTopic + memory},
		"without a prefix":  {reporter{excludeEphemeral: true}, noMemory, strings.ReplaceAll(lastingTopic, "p.", "")},
		"of nothing":        {reporter{prefix: "p."}, api.Stats{}, ""},
	} {
		if diff := cmp.Diff(c.want, string(c.reporter.report(c.stats))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// countersOf are the counter lines of a report, without their ends.
func countersOf(lines []byte) []string {
	var counters []string
	for line := range strings.Lines(string(lines)) {
		if text, is := strings.CutSuffix(line, "|c\n"); is {
			counters = append(counters, text)
		}
	}
	return counters
}

// Counters are what the last report did not have yet, and never negative.
func TestDeltas(t *testing.T) {
	stats := func(messages, bytes, channelMessages, requeues, timeouts uint64, gcRuns uint32) api.Stats {
		return api.Stats{
			Topics: []api.TopicStats{{
				TopicName: "t", MessageCount: messages, MessageBytes: bytes,
				Channels: []api.ChannelStats{{
					ChannelName: "c", MessageCount: channelMessages, RequeueCount: requeues, TimeoutCount: timeouts,
				}},
			}},
			Memory: &api.Memory{GCTotalRuns: gcRuns},
		}
	}
	names := []string{"topic.t.message_count:", "topic.t.message_bytes:", "topic.t.channel.c.message_count:",
		"topic.t.channel.c.requeue_count:", "topic.t.channel.c.timeout_count:", "mem.gc_runs:"}
	var r reporter
	for i, c := range []struct {
		stats api.Stats
		want  []string
	}{
		{stats(10, 100, 9, 5, 4, 3), []string{"10", "100", "9", "5", "4", "3"}},
		{stats(10, 100, 9, 5, 4, 3), []string{"0", "0", "0", "0", "0", "0"}},
		{stats(11, 102, 12, 9, 9, 9), []string{"1", "2", "3", "4", "5", "6"}},
		{stats(4, 40, 12, 9, 9, 10), []string{"4", "40", "0", "0", "0", "1"}}, // topic made again
		{stats(5, 30, 3, 2, 1, 11), []string{"5", "30", "3", "2", "1", "1"}},  // both made again, told by few figures
		{stats(6, 31, 20, 1, 2, 11), []string{"1", "1", "20", "1", "2", "0"}}, // channel made again, told by its requeues
		{stats(7, 32, 30, 2, 1, 11), []string{"1", "1", "30", "2", "1", "0"}}, // told by its timeouts
		{api.Stats{}, nil}, // all are gone
		{stats(8, 33, 31, 3, 2, 12), []string{"8", "33", "31", "3", "2", "12"}}, // and come again
		{stats(1<<64-1, 34, 31, 3, 2, 12), []string{"18446744073709551607", "1", "0", "0", "0", "0"}},
	} {
		var want []string
		for k, value := range c.want {
			want = append(want, names[k]+value)
		}
		if diff := cmp.Diff(want, countersOf(r.report(c.stats))); diff != "" {
			t.Errorf("report %d: (-want +got)\n%s", i, diff)
		}
	}
}

// A reporter remembers what exists, not all that ever did, and leaves the lines it has returned alone.
func TestReporterForgets(t *testing.T) {
	r := reporter{prefix: "p."}
	lines := r.report(full())
	defer func() {
		if want := ephemeralTopic + lastingTopic + ephemeralChannel + memory; string(lines) != want {
			t.Errorf("the first report has become %q", lines)
		}
	}()
	r.report(api.Stats{Topics: []api.TopicStats{{TopicName: "t"}}})
	if len(r.last) != 1 {
		t.Errorf("%d names are remembered", len(r.last))
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		pattern, address string
		port             int
		want             string
	}{
		{"nsq.%s", "my.host.example", 4151, "nsq.my_host_example_4151."},
		{"a.%s.b", "10.0.0.1", 4151, "a.10_0_0_1_4151.b."},
		{"nsq.%s", "::1", 80, "nsq.[__1]_80."},
		{"nsq.%s.", "h", 0, "nsq.h_0."},
		{"%s%s", "h", 1, "h_1h_1."},
		{"", "h", 1, ""},
		{".", "h", 1, "."},
		{"plain", "h", 1, "plain."},
		{"100%.%d.%", "h", 1, "100%.%d.%."},
		{"%s", "%s", 1, "%s_1."},
	} {
		if got := Prefix(c.pattern, HostKey(c.address, c.port)); got != c.want {
			t.Errorf("%q on %s port %d: %q, want %q", c.pattern, c.address, c.port, got, c.want)
		}
	}
}

// Names of percentiles are as documented where they do not collide, and never shared.
func TestPercentileNames(t *testing.T) {
	for _, c := range []struct {
		quantiles []float64
		want      []string
	}{
		{[]float64{1, 0.99, 0.95, 0.5, 0.05}, []string{"100", "99", "95", "50", "5"}},
		{[]float64{0.29, 0.57, 0.58}, []string{"29", "57", "58"}}, // not exact as percentages
		{[]float64{0.999}, []string{"100"}},
		{[]float64{0.994, 0.001}, []string{"99", "0"}},
		{[]float64{0.999, 1}, []string{"99_9", "100"}},
		{[]float64{1, 0.999, 0.9999, 0.995}, []string{"100", "99_9", "99_99", "99_5"}},
		{[]float64{0.99, 0.994, 0.986}, []string{"99", "99_4", "98_6"}},
		{[]float64{0.9999, 0.999}, []string{"100", "99_9"}},
		{[]float64{0.001, 0.002}, []string{"0", "0_2"}},
		{[]float64{0.005, 0.015}, []string{"1", "2"}},
		{[]float64{0.25, 0.2475, 0.2525}, []string{"25", "24_75", "25_25"}},
		{[]float64{0.5, 0.5}, []string{"50", "50"}},
		{[]float64{0.29, 0.29000000000000004}, []string{"29", "29_000000000000004"}},
	} {
		var percentiles []api.LatencyPercentile
		for _, q := range c.quantiles {
			percentiles = append(percentiles, api.LatencyPercentile{Quantile: q})
		}
		n := percentileNames{quantiles: []float64{0.5}, names: []string{"of another list"}}
		n.learn(percentiles)
		if diff := cmp.Diff(c.want, n.names); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", c.quantiles, diff)
		}
	}
}
