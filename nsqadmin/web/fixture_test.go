package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/cluster"
	"nsq/internal/log"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a cluster that a test writes itself. It stands for collector, history and actions.
type fake struct {
	mu       sync.Mutex
	snapshot *monitor.Snapshot // guarded by mu
	changed  chan struct{}     // guarded by mu; closed at the next snapshot
	done     []action.Action   // guarded by mu
	fresh    int               // how often Refresh was called; guarded by mu

	outcome func(action.Action) (*action.Outcome, error)
	admin   bool
	config  Config
}

// newFake has an admin in front of a healthy cluster.
func newFake() *fake {
	f := &fake{snapshot: cluster1(), changed: make(chan struct{}), admin: true}
	f.outcome = func(action.Action) (*action.Outcome, error) {
		return &action.Outcome{Results: []api.AdminResult{{Target: "n1:4151", Stage: "/topic/delete"}}}, nil
	}
	f.config = Config{
		BasePath: "/", Snapshot: f.current, Changed: f.next, History: fakeHistory{time.Now()},
		Refresh: func(context.Context) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.fresh++
		},
		Do: func(_ *http.Request, a action.Action) (*action.Outcome, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.done = append(f.done, a)
			return f.outcome(a)
		},
		Admin: func(*http.Request) bool { return f.admin },
		Log:   log.Discard(),
	}
	return f
}

func (f *fake) current() *monitor.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot
}

func (f *fake) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// show makes a snapshot the latest.
func (f *fake) show(s *monitor.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot = s
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) actions() []action.Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// get asks for a page and returns the answer with its body.
func (f *fake) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	return answer(New(f.config), httptest.NewRequest(http.MethodGet, path, nil))
}

func answer(handler http.Handler, req *http.Request) (*http.Response, string) {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, req)
	return recorder.Result(), recorder.Body.String()
}

// post sends a form as a browser does from a page of ours.
func post(handler http.Handler, path, form string) (*http.Response, string) {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return answer(handler, req)
}

// fakeHistory has an hour of a wave, with a gap, for every key whose names are not "new".
type fakeHistory struct{ now time.Time }

func (fakeHistory) Interval() time.Duration { return 5 * time.Second }
func (fakeHistory) Window() time.Duration   { return time.Hour }
func (h fakeHistory) Samples(key monitor.Key) (all []monitor.Sample) {
	if key.Topic == "new" {
		return nil
	}
	for i := range 720 {
		if i > 600 && i < 630 {
			continue
		}
		wave := 1 + math.Sin(float64(i)/40)
		all = append(all, monitor.Sample{
			At: h.now.Add(time.Duration(i-719) * 5 * time.Second), Depth: int64(2000 * wave), InFlight: int64(20 * wave), Clients: 3,
			Rates: monitor.Rates{Known: i > 0, Publish: 150 * wave, Deliver: 140 * wave, Requeue: wave, Timeout: 0},
		})
	}
	return all
}

// part is a channel on one node.
func part(node, topic, channel string, depth int64, clients int) *api.AdminChannel {
	c := &api.AdminChannel{
		Node: node + ":4151", Hostname: node, TopicName: topic, ChannelName: channel, Depth: depth, MemoryDepth: depth / 2, BackendDepth: depth - depth/2,
		InFlightCount: 5, DeferredCount: 2, RequeueCount: 7, TimeoutCount: 1, MessageCount: 12345, ClientCount: clients,
		ZoneLocalMsgCount: 60, RegionLocalMsgCount: 30, GlobalMsgCount: 10,
		Latency: &api.AdminLatency{Count: 9, Percentiles: []*api.AdminPercentile{{Quantile: 0.99, Average: 245.37e6, Min: 1e6, Max: 2e9, Count: 9}, {Quantile: 0.95, Average: 31e6, Min: 1e6, Max: 2e9, Count: 9}}},
	}
	for i := range clients {
		c.Clients = append(c.Clients, &api.AdminClient{
			Node: c.Node, RemoteAddress: fmt.Sprintf("10.0.0.%d:55%03d", i+1, i), Hostname: fmt.Sprintf("worker-%d", i), ClientID: fmt.Sprintf("id%d", i),
			UserAgent: "go-nsq/1.1.0", Connected: int64(time.Hour) * int64(i+1), InFlightCount: 3, ReadyCount: int64(25 * i), FinishCount: 1234567, MessageCount: 1234570,
			TLS: i == 1, TLSVersion: "TLS1.3", Snappy: i == 1, SampleRate: int32(10 * i), TopologyRegion: "eu", TopologyZone: "eu-a", NodeRegion: "eu", NodeZone: "eu-a",
		})
	}
	return c
}

// sum adds the parts of a channel, as far as the pages look.
func sum(parts ...*api.AdminChannel) *monitor.Channel {
	all := *parts[0]
	all.Node, all.Hostname, all.Nodes, all.Clients = "*", "", parts, nil
	all.Depth, all.MemoryDepth, all.BackendDepth, all.ClientCount = 0, 0, 0, 0
	for _, p := range parts {
		all.Depth += p.Depth
		all.MemoryDepth += p.MemoryDepth
		all.BackendDepth += p.BackendDepth
		all.ClientCount += p.ClientCount
		all.Clients = append(all.Clients, p.Clients...)
		all.Paused = all.Paused || p.Paused
	}
	return &monitor.Channel{AdminChannel: &all, Totals: monitor.Totals{
		Depth: all.Depth, InFlight: 10, Deferred: 4, Clients: int64(all.ClientCount),
		Rates: monitor.Rates{Known: true, Publish: 151.25, Deliver: 140},
	}}
}

// topicOf is a topic with channels on nodes n1 and n2.
func topicOf(name string, depth int64, channels ...*monitor.Channel) *monitor.Topic {
	t := &monitor.Topic{
		AdminTopic: &api.AdminTopic{Node: "*", TopicName: name, Depth: depth, MemoryDepth: depth, MessageCount: 98765},
		Channels:   channels, Totals: monitor.Totals{Depth: depth, Rates: monitor.Rates{Known: true, Publish: 151.25, Deliver: 140}},
	}
	for _, node := range []string{"n1", "n2"} {
		p := &api.AdminTopic{Node: node + ":4151", Hostname: node, TopicName: name, Depth: depth / 2, MemoryDepth: depth / 2, MessageCount: 49382}
		for _, c := range channels {
			for _, cp := range c.Nodes {
				if cp.Hostname == node {
					p.Channels = append(p.Channels, cp)
				}
			}
		}
		t.Nodes = append(t.Nodes, p)
	}
	for _, c := range channels {
		t.Totals.Depth += c.Totals.Depth
		t.Totals.InFlight += c.Totals.InFlight
		t.Totals.Deferred += c.Totals.Deferred
		t.Totals.Clients += c.Totals.Clients
		t.AdminTopic.Channels = append(t.AdminTopic.Channels, c.AdminChannel)
	}
	return t
}

// nodeOf is a node that has its parts of topics.
func nodeOf(name string, topics []*monitor.Topic) *monitor.Node {
	n := &monitor.Node{
		AdminNode: &api.AdminNode{Hostname: name, BroadcastAddress: name, TCPPort: 4150, HTTPPort: 4151, Version: "1.4.0", TopologyRegion: "eu", TopologyZone: "eu-a", RemoteAddresses: []string{"l1:4161/10.0.0.9:1", "l2:4161/10.0.0.9:2"}},
		Address:   name + ":4151", Health: "OK", Started: time.Now().Add(-time.Hour),
		Totals: monitor.Totals{Depth: 420, InFlight: 7, Clients: 3, Rates: monitor.Rates{Known: true, Publish: 75.5, Deliver: 70}},
	}
	for _, t := range topics {
		for _, p := range t.Nodes {
			if p.Hostname == name {
				n.Stats = append(n.Stats, p)
				n.Topics = append(n.Topics, api.AdminNodeTopic{Topic: t.TopicName})
			}
		}
	}
	return n
}

// cluster1 has two nodes and two nsqlookupds: a busy topic, one that is paused on one node, one without
// channels, an ephemeral one, and one that only the nsqlookupds know.
func cluster1() *monitor.Snapshot {
	paused := topicOf("paused", 6, sum(part("n1", "paused", "archive", 0, 1)))
	paused.Nodes[0].Paused, paused.AdminTopic.Paused = true, true
	idle := &monitor.Topic{
		AdminTopic: &api.AdminTopic{TopicName: "idle"}, Inactive: true,
		Channels: []*monitor.Channel{{AdminChannel: &api.AdminChannel{TopicName: "idle", ChannelName: "late"}}},
	}
	topics := []*monitor.Topic{
		topicOf("clicks#ephemeral", 0, sum(part("n1", "clicks#ephemeral", "tail#ephemeral", 0, 1))),
		idle,
		topicOf("lonely", 12),
		topicOf("orders", 3, sum(part("n1", "orders", "billing", 1200, 2), part("n2", "orders", "billing", 34, 1)), sum(part("n1", "orders", "stuck", 77, 0))),
		paused,
	}
	s := &monitor.Snapshot{
		Seq: 7, At: time.Now(), Took: 30 * time.Millisecond, Topics: topics,
		Lookupds: []monitor.Lookupd{{Address: "l1:4161"}, {Address: "l2:4161"}},
		Totals:   monitor.Totals{Depth: 1334, InFlight: 40, Deferred: 8, Clients: 5, Rates: monitor.Rates{Known: true, Publish: 605.5, Deliver: 420}},
	}
	s.Nodes = []*monitor.Node{nodeOf("n1", topics), nodeOf("n2", topics)}
	return s
}

// ailing is cluster1 with a node and a nsqlookupd that do not answer.
func ailing() *monitor.Snapshot {
	s := cluster1()
	s.Lookupds[1].Err = "connection refused"
	s.Nodes[1].Err, s.Nodes[1].Stats, s.Nodes[1].Health = "i/o timeout", nil, ""
	s.Nodes[0].Health = "NOK - no space left on device"
	s.Failures = cluster.Failures{
		{Target: "l2:4161", Stage: "/nodes", Err: errors.New("connection refused")},
		{Target: "n2:4151", Stage: "/stats", Err: errors.New("i/o timeout")},
	}
	return s
}
