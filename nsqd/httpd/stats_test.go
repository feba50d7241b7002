package httpd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
	"nsq/internal/version"
	"nsq/nsqd/broker"
)

// clients are a consumer, a producer of three topics, one that is both, and one that is neither.
func clients() []api.ClientStats {
	now := time.Now().Unix()
	return []api.ClientStats{
		{Topic: "orders", Channel: "billing", ClientID: "cid", Hostname: "host1", Version: "V2", RemoteAddress: "127.0.0.1:54700", State: 3,
			ReadyCount: 3, InFlightCount: 3, MessageCount: 5, FinishCount: 1, RequeueCount: 1, ConnectTS: now, UserAgent: "ua/1.0"},
		{ClientID: "pid", Hostname: "host2", Version: "V2", RemoteAddress: "127.0.0.1:54706", ConnectTS: now, UserAgent: "pua/2.0",
			PubCounts: []api.PubCount{{Topic: "zoo", Count: 1}, {Topic: "orders", Count: 20}, {Topic: "Alpha", Count: 300}}},
		{Topic: "orders", Channel: "billing", ClientID: "both", Hostname: "a-long-host-name.example", Version: "V2", RemoteAddress: "@",
			State: 3, ConnectTS: now, UserAgent: "x\ny", PubCounts: []api.PubCount{{Topic: "zoo", Count: 4}}},
		{ClientID: "idle", Hostname: "host4", Version: "V2", RemoteAddress: "[::1]:5", ConnectTS: now},
	}
}

// startWithStats serves what the golden answers show.
func startWithStats(t *testing.T) *node {
	n := start(t, 2, func(c *Config) { c.Clients = clients })
	n.setUp("/topic/create?topic=orders", "/channel/create?topic=orders&channel=billing", "/channel/create?topic=orders&channel=archive",
		"/channel/pause?topic=orders&channel=archive", "/topic/create?topic=empty", "/topic/pause?topic=empty")
	n.subscribe("orders", "billing", 0)
	n.post("/mpub?topic=orders", "a\nbb\nccc").expect(t, 200, "OK")
	n.post("/pub?topic=orders&defer=60000", "dddd").expect(t, 200, "OK")
	eventually(t, "the channels have all messages", func() bool {
		return !slices.ContainsFunc(n.topicStats("orders").Channels, func(c broker.ChannelStats) bool { return c.MessageCount < 4 })
	})
	return n
}

var (
	connectTS = regexp.MustCompile(`"connect_ts":\d+`)
	numbersOf = regexp.MustCompile(`("memory":\{)[^}]*`)
)

const goldenJSON = `{"version":"VERSION","health":"OK","start_time":1796095899,"topics":[` +
	`{"topic_name":"empty","channels":[],"depth":0,"backend_depth":0,"message_count":0,"message_bytes":0,"paused":true,` +
	`"e2e_processing_latency":{"count":0,"percentiles":null}},` +
	`{"topic_name":"orders","channels":[` +
	`{"channel_name":"archive","depth":3,"backend_depth":1,"in_flight_count":0,"deferred_count":1,"message_count":4,` +
	`"requeue_count":0,"timeout_count":0,"client_count":0,"clients":[],"paused":true,` +
	`"e2e_processing_latency":{"count":0,"percentiles":null}},` +
	`{"channel_name":"billing","depth":3,"backend_depth":1,"in_flight_count":0,"deferred_count":1,"message_count":4,` +
	`"requeue_count":0,"timeout_count":0,"client_count":1,"clients":[` +
	`{"client_id":"cid","hostname":"host1","version":"V2","remote_address":"127.0.0.1:54700","state":3,"ready_count":3,` +
	`"in_flight_count":3,"message_count":5,"finish_count":1,"requeue_count":1,"connect_ts":0,"sample_rate":0,"deflate":false,` +
	`"snappy":false,"user_agent":"ua/1.0","topology_zone":"","topology_region":"","tls":false,"tls_cipher_suite":"",` +
	`"tls_version":"","tls_negotiated_protocol":"","tls_negotiated_protocol_is_mutual":false},` + both + `],"paused":false,` +
	`"e2e_processing_latency":{"count":0,"percentiles":null}}],` +
	`"depth":0,"backend_depth":0,"message_count":4,"message_bytes":10,"paused":false,` +
	`"e2e_processing_latency":{"count":0,"percentiles":null}}],"memory":{},"producers":[` +
	`{"client_id":"pid","hostname":"host2","version":"V2","remote_address":"127.0.0.1:54706","state":0,"ready_count":0,` +
	`"in_flight_count":0,"message_count":0,"finish_count":0,"requeue_count":0,"connect_ts":0,"sample_rate":0,"deflate":false,` +
	`"snappy":false,"user_agent":"pua/2.0","topology_zone":"","topology_region":"",` +
	`"pub_counts":[{"topic":"Alpha","count":300},{"topic":"orders","count":20},{"topic":"zoo","count":1}],` +
	`"tls":false,"tls_cipher_suite":"","tls_version":"","tls_negotiated_protocol":"","tls_negotiated_protocol_is_mutual":false},` +
	both + `]}`

const both = `{"client_id":"both","hostname":"a-long-host-name.example","version":"V2","remote_address":"@","state":3,"ready_count":0,` +
	`"in_flight_count":0,"message_count":0,"finish_count":0,"requeue_count":0,"connect_ts":0,"sample_rate":0,"deflate":false,` +
	`"snappy":false,"user_agent":"x\ny","topology_zone":"","topology_region":"","pub_counts":[{"topic":"zoo","count":4}],` +
	`"tls":false,"tls_cipher_suite":"","tls_version":"","tls_negotiated_protocol":"","tls_negotiated_protocol_is_mutual":false}`

func TestStatsJSON(t *testing.T) {
	n := startWithStats(t)
	r := n.get("/stats?format=json")
	got := connectTS.ReplaceAllString(r.body, `"connect_ts":0`)
	got = numbersOf.ReplaceAllString(got, "$1")
	if diff := cmp.Diff(strings.Replace(goldenJSON, "VERSION", version.Version, 1), got); diff != "" {
		t.Errorf("other statistics (-want +got):\n%s", diff)
	}
	if got := r.header.Get("Content-Type"); r.status != 200 || got != "application/json; charset=utf-8" {
		t.Errorf("status %d, content type %q", r.status, got)
	}
}

const goldenText = `nsqd v1.4.0 (built w/GO)
start_time START
uptime U

Health: OK

Topics:
*P [empty          ] depth: 0     be-depth: 0     msgs: 0        e2e%: 

   [orders         ] depth: 0     be-depth: 0     msgs: 4        e2e%: 
   *P [archive                  ] depth: 3     be-depth: 1     inflt: 0    def: 1    re-q: 0     timeout: 0     msgs: 4        e2e%: 
      [billing                  ] depth: 3     be-depth: 1     inflt: 0    def: 1    re-q: 0     timeout: 0     msgs: 4        e2e%: 
        [V2 host1:54700 ua/1.0   ] state: 3 inflt: 3    rdy: 3    fin: 1        re-q: 1        msgs: 5        connected: Ns
        [V2 a-long-host-name.example: x y] state: 3 inflt: 0    rdy: 0    fin: 0        re-q: 0        msgs: 0        connected: Ns

Producers:
   [V2 host2:54706 pua/2.0  ] msgs: 321      topics: Alpha=300,orders=20,zoo=1 connected: Ns
   [V2 a-long-host-name.example: x y] msgs: 4        topics: zoo=4 connected: Ns
`

const goldenEmptyText = `nsqd v1.4.0 (built w/GO)
start_time START
uptime U

Health: OK

Memory:
   heap_objects             	N
   heap_idle_bytes          	N
   heap_in_use_bytes        	N
   heap_released_bytes      	N
   gc_pause_usec_100        	N
   gc_pause_usec_99         	N
   gc_pause_usec_95         	N
   next_gc_bytes            	N
   gc_total_runs            	N

Topics: None

Producers: None
`

// normalText replaces what differs from run to run.
func normalText(text string) string {
	text = strings.Replace(text, "built w/"+runtime.Version(), "built w/GO", 1)
	text = strings.Replace(text, "start_time "+startTime.Format(time.RFC3339)+"\n", "start_time START\n", 1)
	text = regexp.MustCompile(`(?m)^uptime -?[0-9hms.]+$`).ReplaceAllString(text, "uptime U")
	text = regexp.MustCompile(`connected: \d+s`).ReplaceAllString(text, "connected: Ns")
	return regexp.MustCompile(`(?m)\t\d+$`).ReplaceAllString(text, "\tN")
}

func TestStatsText(t *testing.T) {
	tests := []struct {
		name        string
		node        *node
		query, want string
	}{
		{"all", startWithStats(t), "?include_mem=0&format=JSON", goldenText},
		{"nothing", start(t, 1), "", goldenEmptyText},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := test.node.get("/stats" + test.query)
			if diff := cmp.Diff(test.want, normalText(r.body)); diff != "" {
				t.Errorf("other statistics (-want +got):\n%s", diff)
			}
			if got := r.header.Get("Content-Type"); r.status != 200 || got != "text/plain; charset=utf-8" {
				t.Errorf("status %d, content type %q", r.status, got)
			}
			if got := r.header.Get("X-NSQ-Content-Type"); got != "nsq; version=1.0" {
				t.Errorf("X-NSQ-Content-Type %q", got)
			}
		})
	}
}

// What each filter leaves: topics with their channels and clients, producers with their topics.
func TestStatsFilters(t *testing.T) {
	n := startWithStats(t)
	const everyProducer = "[pid[Alpha orders zoo] both[zoo]]"
	tests := []struct{ query, topics, producers string }{
		{"", "[empty[] orders[archive[] billing[cid both]]]", everyProducer},
		{"&topic=orders", "[orders[archive[] billing[cid both]]]", "[pid[orders]]"},
		{"&topic=zoo", "null", "null"},
		{"&topic=a*b", "null", "null"},
		{"&topic=empty", "[empty[]]", "null"},
		{"&topic=", "[empty[] orders[archive[] billing[cid both]]]", everyProducer},
		{"&channel=archive", "[orders[archive[]]]", everyProducer},
		{"&topic=orders&channel=billing", "[orders[billing[cid both]]]", "[pid[orders]]"},
		{"&topic=orders&channel=nope", "[]", "[pid[orders]]"},
		{"&channel=nope", "[]", everyProducer},
		{"&include_clients=false", "[empty[] orders[archive null billing null]]", "null"},
		{"&include_clients=0&topic=orders", "[orders[archive null billing null]]", "null"},
		{"&include_clients=FALSE&topic=empty", "[empty[]]", "null"},
		{"&include_clients=1&topic=orders&channel=billing", "[orders[billing[cid both]]]", "[pid[orders]]"},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			stats := n.stats(test.query)
			if got := outline(stats.Topics, func(topic api.TopicStats) string {
				return topic.TopicName + outline(topic.Channels, func(c api.ChannelStats) string {
					return strings.Replace(c.ChannelName+outline(c.Clients, func(c api.ClientStats) string { return c.ClientID }), "null", " null", 1)
				})
			}); got != test.topics {
				t.Errorf("topics %s, want %s", got, test.topics)
			}
			if got := outline(stats.Producers, func(p api.ProducerStats) string {
				return p.ClientID + outline(p.PubCounts, func(c api.PubCount) string { return c.Topic })
			}); got != test.producers {
				t.Errorf("producers %s, want %s", got, test.producers)
			}
			for _, topic := range stats.Topics {
				for _, c := range topic.Channels {
					if c.ChannelName == "billing" && c.ClientCount != 1 {
						t.Errorf("client count %d", c.ClientCount)
					}
				}
			}
		})
	}
	n.get("/stats?format=json&topic=%zz").expectCode(t, 400, "INVALID_REQUEST")
}

func (n *node) stats(query string) (stats api.Stats) {
	n.t.Helper()
	r := n.get("/stats?format=json" + query)
	if err := json.Unmarshal([]byte(r.body), &stats); err != nil {
		n.t.Fatalf("answer %d %q: %v", r.status, r.body, err)
	}
	return stats
}

func outline[T any](all []T, describe func(T) string) string {
	if all == nil {
		return "null"
	}
	texts := []string{}
	for _, one := range all {
		texts = append(texts, describe(one))
	}
	return fmt.Sprint(texts)
}

// Without topics, and for a topic that does not exist, the answers are known to the byte.
func TestStatsOfNothing(t *testing.T) {
	n := start(t, 1)
	for query, topics := range map[string]string{"&topic=nope": "null", "&channel=nope": "[]", "": "[]"} {
		n.get("/stats?format=json&include_mem=0"+query).expect(t, 200,
			`{"version":"1.4.0","health":"OK","start_time":1796095899,"topics":`+topics+`,"producers":null}`)
	}
}

func TestStatsMemory(t *testing.T) {
	n := start(t, 1)
	runtime.GC()
	for query, want := range map[string]bool{"": true, "&include_mem=true": true, "&include_mem=x": true, "&include_mem=": true,
		"&include_mem=false": false, "&include_mem=0": false} {
		stats := n.stats(query)
		if got := stats.Memory != nil; got != want {
			t.Errorf("memory with %q: %v", query, got)
		}
		if m := stats.Memory; m != nil && (m.HeapObjects == 0 || m.HeapInUseBytes == 0 || m.NextGCBytes == 0 || m.GCTotalRuns == 0) {
			t.Errorf("memory %+v", *m)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]uint64, 100)
	for i := range hundred {
		hundred[i] = uint64(i)
	}
	tests := []struct {
		p         int
		ascending []uint64
		want      uint64
	}{
		{100, nil, 0},
		{100, []uint64{7}, 7},
		{95, []uint64{7}, 7},
		{95, []uint64{1, 2}, 2},
		{100, hundred, 99},
		{99, hundred, 99},
		{95, hundred, 95},
		{95, hundred[:10], 9},  // at 9.5, which is rounded up and capped
		{95, hundred[:50], 48}, // at 47.5
		{95, hundred[:9], 8},
	}
	for _, test := range tests {
		if got := percentile(test.p, test.ascending); got != test.want {
			t.Errorf("%d%% of %d values: %d, want %d", test.p, len(test.ascending), got, test.want)
		}
	}
}

func TestLatencyText(t *testing.T) {
	tests := map[float64]string{
		0: "0.0ns", 1000: "1000.0ns", 1001: "1.0us", 1e6: "1000.0us", 5421387: "5.4ms", 1e9: "1000.0ms", 1187100000: "1.2s",
	}
	for value, want := range tests {
		if got := nanoseconds(value); got != want {
			t.Errorf("%g: %s, want %s", value, got, want)
		}
	}
	latency := api.E2eProcessingLatency{Percentiles: []api.LatencyPercentile{{Quantile: 1, Value: 2000}, {Quantile: 0.5, Value: 3}}}
	if got := latencyText(latency); got != "2.0us, 3.0ns" {
		t.Errorf("%q", got)
	}
}

// The statistics can be read while everything changes.
func TestStatsDuringChanges(t *testing.T) {
	n := startWithStats(t)
	var changes sync.WaitGroup
	for worker := range 3 {
		changes.Go(func() {
			topic := fmt.Sprint("t", worker)
			for range 20 {
				n.setUp("/topic/create?topic="+topic, "/channel/create?topic="+topic+"&channel=c")
				n.post("/mpub?topic="+topic, "a\nb\nc").expect(t, 200, "OK")
				n.setUp("/topic/delete?topic=" + topic)
			}
		})
	}
	for range 20 {
		if got := n.stats("&topic=orders").Topics[0].MessageCount; got != 4 {
			t.Errorf("message count %d", got)
		}
		if r := n.get("/stats"); !strings.Contains(r.body, "[orders  ") {
			t.Errorf("statistics without orders: %s", r.body)
		}
	}
	changes.Wait()
}
