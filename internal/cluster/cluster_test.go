package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/httpx"
	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake runs a daemon that answers with the texts by path, with 404 to everything else, and returns
// its address.
func fake(t *testing.T, answers map[string]string) string {
	return serve(t, func(w http.ResponseWriter, req *http.Request) {
		answer, ok := answers[req.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message":"TOPIC_NOT_FOUND"}`)
			return
		}
		fmt.Fprint(w, answer)
	})
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// gone is an address at which nobody listens.
func gone(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func newCluster(t *testing.T, lookupds, nsqds []string, change func(*Config, *httpx.ClientConfig)) *Cluster {
	http := httpx.ClientConfig{ConnectTimeout: 5 * time.Second, RequestTimeout: 10 * time.Second}
	config := Config{Lookupds: func() []string { return lookupds }, NSQDs: nsqds, Log: log.Discard()}
	if change != nil {
		change(&config, &http)
	}
	config.HTTP = httpx.NewClient(http)
	t.Cleanup(config.HTTP.Close)
	return New(config)
}

const wellStats = `{"version":"1.4.0","health":"OK","topics":[{"topic_name":"t","depth":3,"backend_depth":1,"message_count":5,` +
	`"channels":[{"channel_name":"c","depth":2,"message_count":5}]}]}`

// Whatever a node answers, the others' part is there, and the failure is told of that node alone.
func TestHostileNodeCostsItsOwnPart(t *testing.T) {
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		failure string // a part of it; empty: none
	}{
		"hangs": {func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, "Client.Timeout"},
		"drips": {func(w http.ResponseWriter, req *http.Request) {
			for {
				if _, err := fmt.Fprint(w, " "); err != nil {
					return
				}
				http.NewResponseController(w).Flush()
				select {
				case <-time.After(20 * time.Millisecond):
				case <-req.Context().Done():
					return
				}
			}
		}, "read answer"},
		"is broken":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, `got response 500 Internal Server Error ""`},
		"is no nsqd":          {text("<html>"), "decode answer"},
		"stops in the middle": {text(wellStats[:40]), "decode answer"},
		"has wrong types":     {text(`{"topics":[{"topic_name":5}]}`), "decode answer"},
		"has numbers too big": {text(`{"topics":[{"topic_name":"t","depth":99999999999999999999}]}`), "decode answer"},
		"answers too much":    {text(`{"health":"` + strings.Repeat("x", 1<<20) + `"}`), "is longer than"},
		"has too many":        {text(`{"topics":[` + strings.Repeat("0,", maxElements) + `0]}`), "elements, more than"},
		"breaks off":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"has nothing":         {text(`{}`), ""},
		"has null":            {text(`null`), ""},
		"has bad names":       {text(`{"topics":[{"topic_name":"<script>"},{"topic_name":"","channels":null},{"topic_name":"x/y"}]}`), ""},
		"has null fields":     {text(`{"topics":[{"topic_name":null,"channels":[null],"e2e_processing_latency":null}]}`), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			well, evil := fake(t, map[string]string{"/stats": wellStats}), serve(t, test.handler)
			c := newCluster(t, nil, nil, func(_ *Config, h *httpx.ClientConfig) {
				h.RequestTimeout, h.MaxResponse = 300*time.Millisecond, 1<<20
				if name != "hangs" && name != "drips" {
					h.RequestTimeout = 20 * time.Second
				}
			})
			stats, failures := c.Stats(t.Context(), []Producer{{Address: evil}, {Address: well}}, Selection{}.Query())
			last := stats[len(stats)-1]
			if last.Producer.Address != well || len(last.Topics) != 1 || last.Topics[0].Depth != 3 {
				t.Errorf("the well node's part: %+v", last)
			}
			if test.failure == "" {
				if len(failures) != 0 || len(stats) != 2 || len(stats[0].Topics) != 0 {
					t.Errorf("failures %v, first part %+v", failures, stats[0])
				}
				return
			}
			if len(failures) != 1 || failures[0].Target != evil || failures[0].Stage != "/stats" ||
				!strings.Contains(failures.Error(), test.failure) {
				t.Errorf("failures %v, want one of %s with %q", failures, evil, test.failure)
			}
		})
	}
}

// No more requests are under way than there are slots, and all are made.
func TestParallelRequestsAreBounded(t *testing.T) {
	const slots, nodes = 3, 40
	var now, most, all atomic.Int64
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			seen := most.Load()
			if n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		all.Add(1)
		time.Sleep(time.Millisecond) // lets others overlap, if they may
		fmt.Fprint(w, "{}")
	})
	c := newCluster(t, nil, slices.Repeat([]string{address}, nodes), func(c *Config, _ *httpx.ClientConfig) { c.Parallel = slots })
	if _, failures := c.Configured(t.Context()); failures != nil {
		t.Fatal(failures)
	}
	if all.Load() != nodes || most.Load() > slots {
		t.Errorf("%d requests, %d at a time; want %d, at most %d", all.Load(), most.Load(), nodes, slots)
	}
}

// Who waits for a slot gives up with its context.
func TestWaitingEndsWithContext(t *testing.T) {
	c := newCluster(t, nil, []string{gone(t)}, func(c *Config, _ *httpx.ClientConfig) { c.Parallel = 1 })
	if err := c.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, failures := c.Configured(ctx)
	if len(failures) != 1 || !strings.Contains(failures.Error(), "context canceled") {
		t.Errorf("failures: %v", failures)
	}
}

// Names that come from daemons stay host and port.
func TestEndpoint(t *testing.T) {
	tests := []struct{ address, want string }{
		{"h:4151", "http://h:4151/stats?topic=a%23ephemeral"},
		{"[::1]:4151", "http://[::1]:4151/stats?topic=a%23ephemeral"},
		{"", ""},
		{"h/evil?x=:4151", ""},
		{"user@h:4151", ""},
		{"h:41 51", ""},
		{"h#:4151", ""},
	}
	for _, test := range tests {
		got, err := endpoint(test.address, "/stats", url.Values{"topic": {"a#ephemeral"}})
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v; want %q", test.address, got, err, test.want)
		}
	}
}

// Several nsqlookupds are united: topics from all, hidden where one hides them, short lists of
// tombstones tolerated, each registration named.
func TestNodesOfSeveralLookupds(t *testing.T) {
	const node = `{"remote_address":"10.0.0.1:5","hostname":"b","broadcast_address":"10.0.0.1","tcp_port":4150,"http_port":4151,"version":"1.3.0",`
	first := fake(t, map[string]string{"/nodes": `{"producers":[` + node + `"topics":["z","a"],"tombstones":[true]},` +
		`{"hostname":"a","broadcast_address":"::1","tcp_port":1,"http_port":2,"version":"junk","topics":[],"tombstones":[]},` +
		`{"hostname":"nowhere","broadcast_address":"","tcp_port":1,"http_port":2}]}`})
	second := fake(t, map[string]string{"/nodes": `{"producers":[` + node + `"topics":["a","m","bad name"],"tombstones":[true,false,false]},` +
		`{"hostname":"b","broadcast_address":"10.0.0.0","tcp_port":4150,"http_port":4151,"version":"1.4.0-rc1"}]}`})
	down := gone(t)
	c := newCluster(t, []string{first, second, down}, nil, nil)
	nodes, visible, failures, err := c.Directory(t.Context())
	if err != nil || len(failures) != 1 || failures[0].Target != down {
		t.Fatalf("failures %v, error %v", failures, err)
	}
	want := []*api.AdminNode{
		{RemoteAddresses: []string{first + "/N/A"}, Hostname: "a", BroadcastAddress: "::1", TCPPort: 1, HTTPPort: 2, Version: "junk", OutOfDate: true},
		{RemoteAddresses: []string{second + "/N/A"}, Hostname: "b", BroadcastAddress: "10.0.0.0", TCPPort: 4150, HTTPPort: 4151, Version: "1.4.0-rc1"},
		{RemoteAddresses: []string{first + "/10.0.0.1:5", second + "/10.0.0.1:5"}, RemoteAddress: "10.0.0.1:5",
			Hostname: "b", BroadcastAddress: "10.0.0.1", TCPPort: 4150, HTTPPort: 4151, Version: "1.3.0", OutOfDate: true,
			Topics: []api.AdminNodeTopic{{Topic: "a", Tombstoned: true}, {Topic: "m"}, {Topic: "z", Tombstoned: true}}},
	}
	if diff := cmp.Diff(want, nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	// "a" is hidden by one and shown by the other, so somebody may find it.
	if diff := cmp.Diff(map[string]bool{"a": true, "m": true}, visible); diff != "" {
		t.Errorf("visible topics (-want +got):\n%s", diff)
	}
	if got := Address(nodes[0]); got != "[::1]:2" {
		t.Errorf("IPv6 address: %s", got)
	}
}

// Nobody who answers is an error with the known words, the reasons a line each; nobody to ask is, too.
func TestNobodyAnswers(t *testing.T) {
	a, b := gone(t), gone(t)
	refused := func(address, path string) string {
		return fmt.Sprintf(`Get "http://%s%s": dial tcp %s: connect: connection refused`, address, path, address)
	}
	tests := map[string]struct {
		lookupds, nsqds []string
		want            string
	}{
		"nsqlookupds": {[]string{a, b}, nil, "failed to query any nsqlookupd: " + refused(a, "/topics") + "\n" + refused(b, "/topics")},
		"nsqds":       {nil, []string{a}, "failed to query any nsqd: " + refused(a, "/stats?format=json&include_clients=false")},
		"none":        {nil, nil, "failed to query any nsqd: "},
	}
	for name, test := range tests {
		_, _, err := newCluster(t, test.lookupds, test.nsqds, nil).Topics(t.Context())
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v\nwant %s", name, err, test.want)
		}
	}
}

// A topic is found through every nsqlookupd; its producers are asked once each. An unknown one is told
// from one of which nobody could be asked.
func TestFind(t *testing.T) {
	first := fake(t, map[string]string{"/lookup": `{"channels":["b","a"],"producers":[{"broadcast_address":"h","http_port":1,"hostname":"x","topology_zone":"z"}]}`})
	second := fake(t, map[string]string{"/lookup": `{"channels":["c","a"],"producers":[{"broadcast_address":"h","http_port":1},{"broadcast_address":"i","http_port":1}]}`})
	unknowing := fake(t, nil)
	found, failures, err := newCluster(t, []string{first, unknowing, second}, nil, nil).Find(t.Context(), "t")
	want := Found{Known: true, Channels: []string{"a", "b", "c"}, Producers: []Producer{{Address: "h:1", Hostname: "x", Zone: "z"}, {Address: "i:1"}}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("found (-want +got):\n%s\nerror %v", diff, err)
	}
	if want := `got response 404 Not Found "{\"message\":\"TOPIC_NOT_FOUND\"}"`; failures.Error() != want {
		t.Errorf("failures %s, want %s", failures, want)
	}
	stranger := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	for _, test := range []struct {
		lookupds []string
		notFound bool
	}{{[]string{unknowing}, true}, {[]string{unknowing, gone(t)}, false}, {[]string{stranger}, false}} {
		_, _, err := newCluster(t, test.lookupds, nil, nil).Find(t.Context(), "t")
		if nobody, ok := err.(*Unreachable); !ok || nobody.UnknownTopic() != test.notFound {
			t.Errorf("of %d nsqlookupds: %v", len(test.lookupds), err)
		}
	}
}

// Without nsqlookupds the nsqds themselves are asked; what an old one does not tell of itself comes
// from the address at which it was asked, and a topic that was not asked for is left out.
func TestFindDirect(t *testing.T) {
	has := fake(t, map[string]string{"/stats": wellStats, "/info": `{"version":"0.2.1"}`})
	other := fake(t, map[string]string{"/stats": `{"topics":[{"topic_name":"else"}]}`})
	c := newCluster(t, nil, []string{other, has}, nil)
	found, failures, err := c.Find(t.Context(), "t")
	want := Found{Known: true, Producers: []Producer{{Address: has, Hostname: "127.0.0.1"}}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil || failures != nil {
		t.Errorf("found (-want +got):\n%s\nfailures %v, error %v", diff, failures, err)
	}
	if found, _, _ := c.Find(t.Context(), "nowhere"); found.Known {
		t.Error("a topic that nobody has is known")
	}
	stats, _, err := c.StatsOfAll(t.Context(), []Producer{{Address: other}}, Selection{Topic: "t"})
	if err != nil || len(stats[0].Topics) != 0 {
		t.Errorf("topics of a node that ignores the filter: %v, %v", stats[0].Topics, err)
	}
}

// A nsqlookupd that names countless nodes is not followed; the others are.
func TestCountlessNodes(t *testing.T) {
	const node = `{"broadcast_address":"h","http_port":1,"tcp_port":2}`
	countless := strings.Repeat(node+",", maxNodes) + node
	evil := fake(t, map[string]string{"/nodes": `{"producers":[` + countless + `]}`, "/lookup": `{"producers":[` + countless + `]}`})
	well := fake(t, map[string]string{"/nodes": `{"producers":[` + node + `]}`, "/lookup": `{"producers":[` + node + `]}`})
	c := newCluster(t, []string{evil, well}, nil, nil)
	nodes, failures, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || len(failures) != 1 || !strings.Contains(failures.Error(), "answer names 5001 nodes, more than 5000") {
		t.Errorf("nodes %v, failures %v, error %v", nodes, failures, err)
	}
	found, failures, err := c.Find(t.Context(), "t")
	if err != nil || len(found.Producers) != 1 || len(failures) != 1 {
		t.Errorf("found %v, failures %v, error %v", found, failures, err)
	}
}

// The channels of many topics come from those that answer, and one that fails is named once.
func TestChannelsOfManyTopics(t *testing.T) {
	good, bad := fake(t, map[string]string{"/channels": `{"channels":["y","x"]}`}), fake(t, nil)
	c := newCluster(t, []string{good, bad}, nil, func(c *Config, _ *httpx.ClientConfig) { c.Parallel = 2 })
	topics := []string{"a", "b", "c", "d", "e"}
	channels, failures := c.ChannelsOf(t.Context(), c.Lookupds(), topics)
	for _, topic := range topics {
		if diff := cmp.Diff([]string{"x", "y"}, channels[topic]); diff != "" {
			t.Errorf("channels of %s (-want +got):\n%s", topic, diff)
		}
	}
	if len(failures) != 1 || failures[0].Target != bad {
		t.Errorf("failures: %v", failures)
	}
	if left := c.Answering(failures); !slices.Equal(left, []string{good}) {
		t.Errorf("answering: %v", left)
	}
}

// The stages of a report are told apart, each failure is listed.
func TestReport(t *testing.T) {
	var r Report
	r.Add(nil)
	if got := r.Message(); got != "" {
		t.Errorf("message of nothing: %q", got)
	}
	r.Add(Failures{{"a", "/x", fmt.Errorf("one")}, {"b", "/x", fmt.Errorf("two")}})
	r.Add(Failures{{"a", "/y", fmt.Errorf("three")}})
	text, err := json.Marshal(r.Status())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"message":"WARNING: one\ntwo; three","errors":[{"target":"a","stage":"/x","error":"one"},` +
		`{"target":"b","stage":"/x","error":"two"},{"target":"a","stage":"/y","error":"three"}]}`
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}
