package cluster

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
)

// topicsOf are the parts of two nodes: the first in the order of answers comes last by name.
func topicsOf(t *testing.T) []*api.AdminTopic {
	t.Helper()
	answers := []struct{ host, text string }{
		{"b", `{"topics":[{"topic_name":"t","depth":10,"backend_depth":4,"message_count":100,
			"e2e_processing_latency":{"count":30,"percentiles":[{"quantile":0.99,"value":300},{"quantile":0.5,"value":10}]},
			"channels":[{"channel_name":"c","depth":1,"in_flight_count":2,"deferred_count":3,"message_count":50,"requeue_count":4,
			"timeout_count":5,"client_count":1,"zone_local_msg_count":6,"region_local_msg_count":7,"global_msg_count":8}]}]}`},
		{"a", `{"topics":[{"topic_name":"t","depth":1,"backend_depth":0,"message_count":11,"paused":true,
			"e2e_processing_latency":{"count":10,"percentiles":[{"quantile":0.99,"value":100}]},
			"channels":[{"channel_name":"other"},{"channel_name":"c","depth":100,"backend_depth":60,"client_count":2,"paused":true}]}]}`},
		{"z", `{"topics":[{"topic_name":"t","e2e_processing_latency":{"count":0,"percentiles":[{"quantile":0.99,"value":0}]}}]}`},
	}
	var all []*api.AdminTopic
	for _, a := range answers {
		var stats timed
		if err := json.Unmarshal([]byte(a.text), &stats); err != nil {
			t.Fatal(err)
		}
		all = append(all, parts(Producer{Address: a.host + ":1", Hostname: a.host}, &stats, "t").Topics...)
	}
	return all
}

// Sums are sums, flags are ORed, the parts come by host name, keep their own values and are not shared
// with the sums.
func TestSumOfTopic(t *testing.T) {
	parts := topicsOf(t)
	before, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	sum := SumTopic("t", parts)
	if after, _ := json.Marshal(parts); string(after) != string(before) {
		t.Errorf("parts were changed:\n%s\nbefore\n%s", after, before)
	}
	var hosts []string
	for _, n := range sum.Nodes {
		hosts = append(hosts, n.Hostname)
	}
	if !slices.Equal(hosts, []string{"a", "b", "z"}) {
		t.Errorf("order of nodes: %v", hosts)
	}
	flat := *sum
	flat.Nodes, flat.Channels, flat.Latency = nil, nil, nil
	want := api.AdminTopic{Node: "*", TopicName: "t", Depth: 11, MemoryDepth: 7, BackendDepth: 4, MessageCount: 111, Paused: true}
	if diff := cmp.Diff(want, flat); diff != "" {
		t.Errorf("topic (-want +got):\n%s", diff)
	}
	if len(sum.Channels) != 2 || sum.Channels[0].ChannelName != "other" {
		t.Fatalf("channels: %+v", sum.Channels)
	}
	channel := *sum.Channels[1]
	if len(channel.Nodes) != 2 || channel.Nodes[0].Depth != 100 || channel.Nodes[1].Depth != 1 {
		t.Errorf("parts of the channel: %+v", channel.Nodes)
	}
	channel.Nodes, channel.Latency = nil, nil
	wantChannel := api.AdminChannel{Node: "*", TopicName: "t", ChannelName: "c", Depth: 101, MemoryDepth: 41, BackendDepth: 60,
		InFlightCount: 2, DeferredCount: 3, MessageCount: 50, RequeueCount: 4, TimeoutCount: 5, ClientCount: 3, Paused: true,
		DeliveryMsgCount: 21, ZoneLocalMsgCount: 6, RegionLocalMsgCount: 7, GlobalMsgCount: 8}
	if diff := cmp.Diff(wantChannel, channel); diff != "" {
		t.Errorf("channel (-want +got):\n%s", diff)
	}
}

// Percentiles are averaged by weight; least and greatest are those of nodes that have measured.
func TestSumOfLatency(t *testing.T) {
	got := SumTopic("t", topicsOf(t)).Latency
	want := &api.AdminLatency{Count: 40, Topic: "t", Host: "*", Percentiles: []*api.AdminPercentile{
		{Quantile: 0.99, Average: 250, Max: 300, Min: 100, Count: 40},
		{Quantile: 0.5, Average: 10, Max: 10, Min: 10, Count: 30},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("latency (-want +got):\n%s", diff)
	}
	part := topicsOf(t)[0].Latency.Percentiles[0]
	if *part.Value != 300 || part.Min != 300 || part.Max != 300 || part.Average != 300 || part.Count != 30 {
		t.Errorf("part: %+v", part)
	}
}

// A topic that nobody has is one without nodes.
func TestSumOfNothing(t *testing.T) {
	text, err := json.Marshal(SumTopic("t", nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"node":"","hostname":"","topic_name":"t","depth":0,"memory_depth":0,"backend_depth":0,"message_count":0,` +
		`"delivery_msg_count":0,"nodes":null,"channels":null,"paused":false,"e2e_processing_latency":null}`
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// Thousands of percentiles from a node do not cost their square.
func TestPercentilesAreBounded(t *testing.T) {
	l := latencyPart(&api.E2eProcessingLatency{Percentiles: make([]api.LatencyPercentile, 5000)})
	if len(l.Percentiles) != maxPercentiles {
		t.Errorf("%d percentiles", len(l.Percentiles))
	}
}

// Latencies that cannot be are not believed: an average stays a number that JSON can write.
func TestLatenciesAreBounded(t *testing.T) {
	var nodes []*api.AdminTopic
	for _, l := range []api.E2eProcessingLatency{
		{Count: math.MaxInt, Percentiles: []api.LatencyPercentile{{Quantile: 1, Value: math.MaxFloat64}}},
		{Count: math.MaxInt, Percentiles: []api.LatencyPercentile{{Quantile: 1, Value: -math.MaxFloat64}}},
		{Count: math.MinInt, Percentiles: []api.LatencyPercentile{{Quantile: 1, Value: 5}}},
	} {
		nodes = append(nodes, &api.AdminTopic{Latency: latencyPart(&l)})
	}
	sum := SumTopic("t", nodes)
	if p := sum.Latency.Percentiles[0]; p.Average != maxLatency/2 || p.Count != 2*maxCount || p.Min != 0 || p.Max != maxLatency {
		t.Errorf("%+v", p)
	}
	if _, err := json.Marshal(sum); err != nil {
		t.Error(err)
	}
}

// Clients come by node, the near ones first.
func TestOrderOfClients(t *testing.T) {
	client := func(node, id, region, zone string) *api.AdminClient {
		return &api.AdminClient{Node: node, ClientID: id, NodeRegion: "eu", NodeZone: "1", TopologyRegion: region, TopologyZone: zone}
	}
	clients := []*api.AdminClient{
		client("n2", "7", "eu", "1"), client("n1", "6", "us", "2"), client("n1", "5", "us", "1"),
		client("n1", "4", "", ""), client("n1", "3", "eu", "3"), client("n1", "1", "eu", "1"), client("n1", "2", "eu", "1"),
	}
	sortClients(clients)
	var order string
	for _, c := range clients {
		order += c.ClientID
	}
	if order != "1234567" {
		t.Errorf("order %s", order)
	}
}

// A client carries its node, and how long it has been there.
func TestClient(t *testing.T) {
	c := clientOf(Producer{Address: "h:1", Region: "r", Zone: "z"}, &api.ClientStats{ConnectTS: 100, TopologyZone: "y"}, time.Unix(103, 5e8))
	if c.Node != "h:1" || c.NodeRegion != "r" || c.NodeZone != "z" || c.TopologyZone != "y" || c.Connected != 3e9 {
		t.Errorf("%+v", c)
	}
}

// Versions are compared as semantic ones; what is none is the lowest.
func TestReleases(t *testing.T) {
	ordered := []string{"junk", "0.0.1", "0.3.8", "1.3.0-alpha", "1.3.0-alpha.1", "1.3.0-beta", "1.3.0-beta.2", "1.3.0-beta.11", "1.3.0-rc1", "1.3.0", "1.10.0", "2.0.0"}
	for i, low := range ordered {
		for j, high := range ordered {
			got, want := parseRelease(low).compare(parseRelease(high)), i-j
			if (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("%s and %s: %d", low, high, got)
			}
		}
	}
	if parseRelease("1.3.0+build").compare(parseRelease("1.3.0")) != 0 {
		t.Error("the build counts")
	}
}

// FuzzElements proves that no array of an answer has more elements than were counted.
func FuzzElements(f *testing.F) {
	for _, text := range []string{wellStats, `[]`, `[1,[2,3],{"a,[":"],\"[,"}]`, `{"a":[{"b":1,"c":2},{}]}`, `"[,"`, `[[[]]]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var value any
		if json.Unmarshal(text, &value) != nil {
			elements(text) // must not fail either
			return
		}
		if got, least := elements(text), arrayElements(value); got < least {
			t.Errorf("%d elements in %q, counted %d", least, text, got)
		}
	})
}

func arrayElements(value any) (n int) {
	switch value := value.(type) {
	case []any:
		n += len(value)
		for _, v := range value {
			n += arrayElements(v)
		}
	case map[string]any: // of a key given twice the last one counts here, all for us
		for _, v := range value {
			n += arrayElements(v)
		}
	}
	return n
}

// FuzzAnswers proves that no answer of a node, whatever is in it, ends the process: it is refused, or
// becomes parts that can be added up and shown.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		wellStats, `{}`, `null`, `{"topics":[null,{"topic_name":"t","channels":[null,{"channel_name":"c","clients":[null,{}]}]}]}`,
		`{"topics":[{"topic_name":"t","depth":-9223372036854775808,"e2e_processing_latency":{"count":-1,"percentiles":[{},null]}}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var answer bounded[timed]
		if json.Unmarshal(text, &answer) != nil {
			return
		}
		s := parts(Producer{Address: "h:1"}, &answer.value, "")
		for _, topic := range s.Topics {
			sum := SumTopic(topic.TopicName, []*api.AdminTopic{topic, topic})
			if sum.Depth != 2*topic.Depth || len(sum.Nodes) != 2 {
				t.Errorf("sum of %+v: %+v", topic, sum)
			}
			if _, err := json.Marshal(sum); err != nil {
				t.Errorf("show %+v: %v", sum, err)
			}
		}
	})
}
