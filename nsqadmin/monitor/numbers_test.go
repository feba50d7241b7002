package monitor

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"nsq/internal/api"
)

// seen is a snapshot of one topic with one channel on each node, second seconds after the start.
func seen(second int, nodes ...*Node) *Snapshot {
	s := &Snapshot{At: time.Unix(int64(1000+second), 0), Nodes: nodes}
	for _, n := range nodes {
		n.at = s.At
	}
	s.Topics = []*Topic{{AdminTopic: &api.AdminTopic{TopicName: "t", Nodes: make([]*api.AdminTopic, 1)}, Channels: []*Channel{
		{AdminChannel: &api.AdminChannel{TopicName: "t", ChannelName: "c", Nodes: make([]*api.AdminChannel, 1)}},
	}}}
	return s
}

func nodeWith(address string, published uint64, channel api.AdminChannel) *Node {
	channel.ChannelName = "c"
	return &Node{AdminNode: &api.AdminNode{}, Address: address, Stats: []*api.AdminTopic{
		{TopicName: "t", MessageCount: published, Channels: []*api.AdminChannel{&channel}},
	}}
}

// Rates are differences over time, summed over nodes; a counter that began again does not make them
// negative or huge, a new node adds nothing until its second answer.
func TestRates(t *testing.T) {
	r := rates{interval: 10 * time.Second}
	step := func(second int, nodes ...*Node) *Snapshot {
		s := seen(second, nodes...)
		r.apply(s)
		return s
	}
	if got := step(0, nodeWith("a", 1000, api.AdminChannel{MessageCount: 1000})).Totals.Rates; got.Known {
		t.Errorf("rates after one look: %+v", got)
	}
	s := step(10, nodeWith("a", 1100, api.AdminChannel{MessageCount: 1100, DeliveryMsgCount: 50, RequeueCount: 20, TimeoutCount: 10}), nodeWith("b", 1e6, api.AdminChannel{}))
	want := Rates{Known: true, Publish: 10, Deliver: 5, Requeue: 2, Timeout: 1}
	for name, got := range map[string]Rates{"cluster": s.Totals.Rates, "topic": s.Topics[0].Totals.Rates, "channel": s.Topics[0].Channels[0].Totals.Rates, "node": s.Node("a").Totals.Rates} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := s.Node("b").Totals.Rates; got.Known {
		t.Errorf("rates of a new node: %+v", got)
	}
	// Too soon: what was known stays.
	if got := step(11, nodeWith("a", 9999, api.AdminChannel{})).Totals.Rates; got != want {
		t.Errorf("rates after a second: %+v", got)
	}
	// a started again, b did not answer.
	silent := nodeWith("b", 0, api.AdminChannel{})
	silent.Err, silent.Stats = "down", nil
	if got := step(20, nodeWith("a", 30, api.AdminChannel{}), silent).Totals.Rates; got != (Rates{Known: true, Publish: 3}) {
		t.Errorf("rates after a restart: %+v", got)
	}
}

// A nsqd that does not count deliveries is judged by what has left the channel.
func TestDeliveryRateWithoutCounter(t *testing.T) {
	before := channelCounters(&api.AdminChannel{MessageCount: 100, Depth: 90, InFlightCount: 5, DeferredCount: 5})
	now := channelCounters(&api.AdminChannel{MessageCount: 200, Depth: 150, InFlightCount: 10})
	if got := rate(before, now, 4); got.Deliver != 10 || got.Publish != 25 {
		t.Errorf("rates: %+v", got)
	}
	if got := rate(now, before, 4); got.Deliver != 0 {
		t.Errorf("delivery rate of a channel that fills: %v", got.Deliver)
	}
}

// The ring keeps the latest samples, in order, and what they were.
func TestHistoryKeepsTheLatest(t *testing.T) {
	h := NewHistory(time.Second, 5*time.Second, 1<<20)
	for i := range 12 {
		s := seen(i)
		s.Totals = Totals{Depth: int64(i), InFlight: -1, Clients: 1 << 40, Rates: Rates{Known: i%2 == 0, Publish: float64(i)}}
		h.record(s)
	}
	got := h.Samples(Key{})
	var want []Sample
	for i := 7; i < 12; i++ {
		sample := Sample{At: time.Unix(int64(1000+i), 0), Depth: int64(i), Clients: 1<<32 - 1}
		if i%2 == 0 {
			sample.Rates = Rates{Known: true, Publish: float64(i)}
		}
		want = append(want, sample)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if len(h.Samples(Key{Topic: "t", Channel: "c"})) != 5 || len(h.Samples(Key{Topic: "else"})) != 0 {
		t.Error("series of channel and of nothing")
	}
}

// Looks that follow each other sooner than the interval are not all kept.
func TestHistoryHasItsOwnPace(t *testing.T) {
	h := NewHistory(time.Second, time.Hour, 1<<20)
	if h.Interval() != 10*time.Second {
		t.Fatalf("interval %v", h.Interval())
	}
	for i := range 100 {
		h.record(seen(i))
	}
	if n := len(h.Samples(Key{})); n < 10 || n > 13 {
		t.Errorf("%d samples of 100 s", n)
	}
}

// Memory is bounded: by the number of series, and by the room of each. Those that are gone make room.
func TestHistoryIsBounded(t *testing.T) {
	const limit = 64 << 10
	h := NewHistory(time.Second, 10*time.Second, limit)
	for i := range 40 {
		s := seen(i)
		for n := range 1000 {
			name := fmt.Sprintf("t%d-%d", i/20, n)
			s.Topics = append(s.Topics, &Topic{AdminTopic: &api.AdminTopic{TopicName: name, Nodes: make([]*api.AdminTopic, 1)}})
		}
		h.record(s)
	}
	used := 0
	for _, r := range h.rings {
		used += cap(r.entries) * int(unsafe.Sizeof(entry{}))
	}
	if used > limit || used < limit/2 {
		t.Errorf("%d bytes of samples, want at most %d, and not much less", used, limit)
	}
	if len(h.Samples(Key{})) == 0 || len(h.Samples(Key{Topic: "t1-0"})) == 0 || len(h.Samples(Key{Topic: "t0-0"})) != 0 {
		t.Error("the series of topics that are gone have not made room")
	}
}
