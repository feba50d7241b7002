package nsqd

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/protocol"
)

// finishAll subscribes, finishes so many messages and leaves.
func (d *daemon) finishAll(topic, channel string, count int) {
	d.t.Helper()
	conn := d.dial("SUB " + topic + " " + channel + "\nRDY 1\n")
	if got := d.hear(conn); got != "OK" {
		d.t.Fatalf("SUB is answered by %q", got)
	}
	for range count {
		kind, data, err := protocol.ReadFrame(conn, 1<<20)
		if err != nil || kind != protocol.FrameMessage {
			d.t.Fatalf("got %v %q, %v", kind, data, err)
		}
		d.say(conn, "FIN "+string(data[10:26])+"\n")
	}
	d.say(conn, "CLS\n")
	for d.hear(conn) != "CLOSE_WAIT" { // the next message may come before it
	}
	conn.Close()
}

// Without percentiles nothing is measured, and the statistics say so in their form.
func TestLatencyOff(t *testing.T) {
	d := launch(t)
	d.http("POST", "/pub?topic=t", "x")
	d.finishAll("t", "ch", 1)
	const nothing = `"e2e_processing_latency":{"count":0,"percentiles":null}`
	if got := d.http("GET", "/stats?format=json", "").body; strings.Count(got, nothing) != 2 {
		t.Errorf("want %s twice in %s", nothing, got)
	}
}

// The time from the publishing of messages to their FIN, by channel and for the topic.
func TestLatency(t *testing.T) {
	d := launch(t, func(o *Options) { o.E2EProcessingLatencyPercentiles = []float64{1, 0.99, 0.5} })
	d.http("POST", "/topic/create?topic=t", "")
	const none = `"e2e_processing_latency":{"count":0,"percentiles":null}`
	if got := d.http("GET", "/stats?format=json", "").body; strings.Count(got, none) != 1 {
		t.Errorf("topic without channels: want %s in %s", none, got)
	}
	const zero = `"e2e_processing_latency":{"count":0,"percentiles":[{"quantile":1,"value":0},{"quantile":0.99,"value":0},{"quantile":0.5,"value":0}]}`
	d.http("POST", "/channel/create?topic=t&channel=a", "")
	d.http("POST", "/channel/create?topic=t&channel=b", "")
	if got := d.http("GET", "/stats?format=json", "").body; strings.Count(got, zero) != 3 {
		t.Errorf("channels without samples: want %s three times in %s", zero, got)
	}

	// Between the publishing of the last message and the first FIN pass 10 ms at least.
	began := time.Now()
	for range 20 {
		d.http("POST", "/pub?topic=t", "x")
	}
	const wait = 10 * time.Millisecond
	time.Sleep(wait)
	d.finishAll("t", "a", 20)
	d.finishAll("t", "b", 10)
	longest := time.Since(began)

	topic := d.stats().Topics[0]
	check := func(name string, l api.E2eProcessingLatency, count int) {
		t.Helper()
		if l.Count != count || len(l.Percentiles) != 3 {
			t.Errorf("%s: %+v, want %d messages", name, l, count)
			return
		}
		last := float64(longest)
		for i, quantile := range []float64{1, 0.99, 0.5} {
			p := l.Percentiles[i]
			if p.Quantile != quantile || p.Value > last || p.Value < float64(wait)*0.99 {
				t.Errorf("%s: percentile %d is %+v, want quantile %v, between %v and %v", name, i, p, quantile, wait, time.Duration(last))
			}
			last = p.Value
		}
	}
	check("channel a", topic.Channels[0].E2eProcessingLatency, 20)
	check("topic", topic.E2eProcessingLatency, 30)
	check("channel b", topic.Channels[1].E2eProcessingLatency, 10)
}

// collector is a statsd server.
type collector struct {
	t    *testing.T
	conn net.PacketConn
	sums map[string]int64 // of counters
	last map[string]int64 // of gauges
}

func newCollector(t *testing.T) *collector {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &collector{t: t, conn: conn, sums: map[string]int64{}, last: map[string]int64{}}
}

var metric = regexp.MustCompile(`^([^:]+):(-?\d+)\|([cg])$`)

// collect takes datagrams until what has come is as wanted. None may be larger than limit, and no
// counter may be set back.
func (c *collector) collect(limit int, what string, wanted func() bool) {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	datagram := make([]byte, 64<<10)
	for !wanted() {
		n, _, err := c.conn.ReadFrom(datagram)
		if err != nil {
			c.t.Fatalf("waiting for %s: %v; have %v %v", what, err, c.sums, c.last)
		}
		if n > limit {
			c.t.Errorf("datagram of %d bytes", n)
		}
		text, whole := strings.CutSuffix(string(datagram[:n]), "\n")
		if !whole {
			c.t.Errorf("datagram does not end with a line: %q", text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			c.take(line)
		}
	}
}

func (c *collector) take(line string) {
	c.t.Helper()
	parts := metric.FindStringSubmatch(line)
	if parts == nil {
		c.t.Fatalf("line %q", line)
	}
	value, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || value < 0 {
		c.t.Errorf("line %q, %v", line, err)
	}
	if parts[3] == "c" {
		c.sums[parts[1]] += value
	} else {
		c.last[parts[1]] = value
	}
}

// What statsd is told adds up to what has happened, also when a topic is deleted and made anew.
func TestStatsd(t *testing.T) {
	c := newCollector(t)
	const size = 200
	d := launch(t, func(o *Options) {
		o.StatsdAddress, o.StatsdPrefix, o.StatsdUDPPacketSize = c.conn.LocalAddr().String(), "test.%s", size
		o.StatsdInterval = 20 * time.Millisecond
		o.E2EProcessingLatencyPercentiles = []float64{0.99}
		o.StatsdExcludeEphemeral = true
	})
	_, port, err := net.SplitHostPort(d.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	prefix := "test.127_0_0_1_" + port + "."
	if got := d.http("GET", "/config/statsd_prefix", "").body; got != prefix {
		t.Errorf("/config/statsd_prefix is %q, want %q", got, prefix)
	}

	topic, channel := prefix+"topic.t.", prefix+"topic.t.channel.ch."
	d.http("POST", "/topic/create?topic=t", "")
	d.http("POST", "/channel/create?topic=t&channel=ch", "")
	d.http("POST", "/pub?topic=e%23ephemeral", "x")
	for i := range 7 {
		d.http("POST", "/pub?topic=t", fmt.Sprint(i))
	}
	d.finishAll("t", "ch", 5)
	c.collect(size, "7 messages, 2 of them waiting", func() bool {
		return c.sums[topic+"message_count"] == 7 && c.sums[channel+"message_count"] == 7 && c.last[channel+"depth"]+c.last[channel+"in_flight_count"] == 2 &&
			c.last[channel+"e2e_processing_latency_99"] > 0 && c.last[topic+"e2e_processing_latency_99"] > 0 && c.last[prefix+"mem.heap_objects"] > 0
	})
	if got := c.sums[topic+"message_bytes"]; got != 7 {
		t.Errorf("%d bytes", got)
	}

	d.http("POST", "/topic/delete?topic=t", "")
	for range 3 {
		d.http("POST", "/pub?topic=t", "x")
	}
	c.collect(size, "3 more", func() bool { return c.sums[topic+"message_count"] >= 10 })
	pushed := 0
	c.collect(size, "another push", func() bool { pushed++; return pushed > 50 })
	if got := c.sums[topic+"message_count"]; got != 10 {
		t.Errorf("%d messages in all", got)
	}
	for name := range c.sums {
		if strings.Contains(name, "ephemeral") {
			t.Errorf("%s is pushed", name)
		}
	}
}
