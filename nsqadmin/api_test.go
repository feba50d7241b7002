package nsqadmin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/testnode"
	"nsq/internal/testutil"
)

const (
	fakeStats = `{"version":"1.4.0","health":"OK","topics":[{"topic_name":"orders","depth":7,"backend_depth":2,"message_count":85,` +
		`"e2e_processing_latency":{"count":4,"percentiles":[{"quantile":0.99,"value":250}]},` +
		`"channels":[{"channel_name":"archive","depth":3,"backend_depth":1,"in_flight_count":4,"deferred_count":5,"requeue_count":6,` +
		`"timeout_count":7,"message_count":47,"global_msg_count":47,"client_count":1,"paused":true,"clients":[` +
		`{"client_id":"id","hostname":"h","version":"V2","remote_address":"1.2.3.4:5","ready_count":1,"in_flight_count":2,"message_count":3,` +
		`"finish_count":4,"requeue_count":5,"connect_ts":5000000000,"sample_rate":6,"deflate":true,"user_agent":"ua",` +
		`"topology_zone":"z"}]}]},{"topic_name":"bare"}]}`
	latencySum  = `{"count":4,"percentiles":[{"quantile":0.99,"average":250,"max":250,"min":250,"count":4}],"topic":"orders","channel":"","host":"*"}`
	latencyPart = `{"count":4,"percentiles":[{"quantile":0.99,"value":250,"average":250,"max":250,"min":250,"count":4}],"topic":"","channel":"","host":""}`
	noLatency   = `{"count":0,"percentiles":null,"topic":"","channel":"","host":""}`
	noLatencyOf = `{"count":0,"percentiles":null,"topic":"orders","channel":"archive","host":"*"}`

	channelNumbers = `"topic_name":"orders","channel_name":"archive","depth":3,"memory_depth":2,"backend_depth":1,"in_flight_count":4,` +
		`"deferred_count":5,"requeue_count":6,"timeout_count":7,"message_count":47,"delivery_msg_count":47,"global_msg_count":47,"client_count":1,`
	channelPart = `{"node":"NSQD","hostname":"vm",` + channelNumbers + `"nodes":null,"clients":CLIENTS,"paused":true,"e2e_processing_latency":` + noLatency + `}`
	channelSum  = `{"node":"*","hostname":"",` + channelNumbers + `"nodes":[` + channelPart + `],"clients":CLIENTS,"paused":true,"e2e_processing_latency":` + noLatencyOf
	topicCounts = `"topic_name":"orders","depth":7,"memory_depth":5,"backend_depth":2,"message_count":85,"delivery_msg_count":0,`
	topicPart   = `{"node":"NSQD","hostname":"vm",` + topicCounts + `"nodes":null,"channels":[` + channelPart + `],"paused":false,"e2e_processing_latency":` + latencyPart + `}`
	barePart    = `{"node":"NSQD","hostname":"vm","topic_name":"bare","depth":0,"memory_depth":0,"backend_depth":0,"message_count":0,` +
		`"delivery_msg_count":0,"nodes":null,"channels":[],"paused":false,"e2e_processing_latency":` + noLatency + `}`
	fakeClient = `{"node":"NSQD","remote_address":"1.2.3.4:5","version":"V2","client_id":"id","hostname":"h","user_agent":"ua",` +
		`"connect_ts":5000000000,"connected":CONNECTED,"in_flight_count":2,"ready_count":1,"finish_count":4,"requeue_count":5,"message_count":3,` +
		`"sample_rate":6,"deflate":true,"snappy":false,"authed":false,"auth_identity":"","auth_identity_url":"","tls":false,` +
		`"tls_cipher_suite":"","tls_version":"","tls_negotiated_protocol":"","tls_negotiated_protocol_is_mutual":false,` +
		`"node_topology_zone":"us-b","topology_zone":"z"}`
	emptyTopic = `{"node":"","hostname":"","topic_name":"idle","depth":0,"memory_depth":0,"backend_depth":0,"message_count":0,` +
		`"delivery_msg_count":0,"nodes":null,"channels":null,"paused":false,"e2e_processing_latency":null,"message":""}`
)

// cluster of one fake nsqd behind one fake nsqlookupd.
func fakeCluster(t *testing.T) (directory, node *fake) {
	node = startFake(t, map[string]string{"/stats": fakeStats, "/info": `{}`})
	host, port, _ := strings.Cut(node.address, ":")
	producer := fmt.Sprintf(`"remote_address":"127.0.0.1:9","hostname":"vm","broadcast_address":%q,"tcp_port":4150,"http_port":%s,`+
		`"version":"1.3.0","topology_zone":"us-b"`, host, port)
	directory = startFake(t, map[string]string{
		"/topics":   `{"topics":["orders","bare"]}`,
		"/channels": `{"channels":[]}`,
		"/nodes":    `{"producers":[{` + producer + `,"topics":["orders","bare"],"tombstones":[false,true]}]}`,
		"/lookup":   `{"channels":["archive"],"producers":[{` + producer + `}]}`,
	})
	return directory, node
}

// golden puts what varies into an expected answer.
func golden(want string, directory, node *fake, clients string) string {
	return strings.NewReplacer("NSQD", node.address, "LOOKUPD", directory.address, "CLIENTS", clients).Replace(want)
}

// All routes for reading answer with the bytes of the contract.
func TestReads(t *testing.T) {
	directory, node := fakeCluster(t)
	a := startAdmin(t, func(o *Options) { o.NSQLookupdHTTPAddresses = []string{directory.address} })
	_, port, _ := strings.Cut(node.address, ":")
	tests := []struct {
		path, want string
		clients    bool
	}{
		{"/api/topics", `{"topics":["bare","orders"],"message":""}`, false},
		{"/api/topics?inactive=true", `{"topics":{"bare":null},"message":""}`, false},
		{"/api/topics?inactive=1", `{"topics":["bare","orders"],"message":""}`, false},
		{"/api/topics/orders", `{"node":"*","hostname":"",` + topicCounts + `"nodes":[` + topicPart + `],"channels":[` + channelSum +
			`}],"paused":false,"e2e_processing_latency":` + latencySum + `,"message":""}`, true},
		{"/api/topics/idle", emptyTopic, false},
		{"/api/topics/orders/archive", channelSum + `,"message":""}`, true},
		{"/api/nodes", `{"nodes":[{"remote_addresses":["LOOKUPD/127.0.0.1:9"],"remote_address":"127.0.0.1:9","hostname":"vm",` +
			`"broadcast_address":"127.0.0.1","tcp_port":4150,"http_port":` + port + `,"version":"1.3.0","topology_zone":"us-b",` +
			`"topics":[{"topic":"bare","tombstoned":true},{"topic":"orders","tombstoned":false}],"out_of_date":false}],"message":""}`, false},
		{"/api/nodes/" + node.address, `{"node":"NSQD","topics":[` + topicPart + `,` + barePart + `],"total_messages":85,"total_clients":1,"message":""}`, true},
		{"/api/counter", `{"stats":{"orders:archive:NSQD":{"node":"NSQD","topic_name":"orders","channel_name":"archive","message_count":47}},"message":""}`, false},
		{"/ping", "OK", false},
		{"/info", `{"version":"1.4.0"}`, false},
	}
	for _, test := range tests {
		resp, got := a.exchange("GET", test.path, "")
		clients := "null"
		if test.clients {
			clients = "[" + fakeClient + "]"
		}
		want := golden(golden(test.want, directory, node, clients), directory, node, "")
		// How long a client is there depends on the clock.
		if _, after, ok := strings.Cut(got, `"connected":`); ok {
			value, _, _ := strings.Cut(after, ",")
			if !strings.HasPrefix(value, "-") || !strings.HasSuffix(value, "000000000") {
				t.Errorf("%s: connected %s", test.path, value)
			}
			got = strings.ReplaceAll(got, `"connected":`+value, `"connected":CONNECTED`)
		}
		if resp.StatusCode != 200 || got != want {
			t.Errorf("%s: %d\n%s\nwant\n%s", test.path, resp.StatusCode, got, want)
		}
		if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(test.path, "/api") && kind != "application/json; charset=utf-8" {
			t.Errorf("%s: type %s", test.path, kind)
		}
	}
}

// What cannot be answered has the status and the words of the contract.
func TestReadErrors(t *testing.T) {
	directory, _ := fakeCluster(t)
	unknowing := startFake(t, map[string]string{"/nodes": `{}`, "/topics": `{}`})
	through := func(addresses ...string) func(*Options) {
		return func(o *Options) { o.NSQLookupdHTTPAddresses = addresses }
	}
	direct := func(addresses ...string) func(*Options) {
		return func(o *Options) { o.NSQDHTTPAddresses = addresses }
	}
	down := gone(t)
	tests := []struct {
		name   string
		setup  func(*Options)
		path   string
		status int
		want   string // a part
	}{
		{"unknown path", through(directory.address), "/api/nope", 404, `{"message":"NOT_FOUND"}`},
		{"bad query", through(directory.address), "/api/topics?%zz", 400, `invalid URL escape`},
		{"unknown channel", through(directory.address), "/api/topics/orders/nope", 404, `{"message":"CHANNEL_NOT_FOUND"}`},
		{"unknown node", through(directory.address), "/api/nodes/127.0.0.1:1", 404, `{"message":"NODE_NOT_FOUND"}`},
		{"unknown topic", through(unknowing.address), "/api/topics/t", 404, `{"message":"TOPIC_NOT_FOUND"}`},
		{"topic of the dead", through(down), "/api/topics/t", 502, `{"message":"UPSTREAM_ERROR: failed to query any nsqlookupd: Get \"http://` + down},
		{"topics of the dead", through(down), "/api/topics", 502, `UPSTREAM_ERROR: failed to query any nsqlookupd: `},
		{"inactive of the dead", through(down), "/api/topics?inactive=true", 502, `UPSTREAM_ERROR: failed to query any nsqlookupd: `},
		{"nodes of the dead", through(down), "/api/nodes", 502, `UPSTREAM_ERROR: failed to query any nsqlookupd: `},
		{"counter of the dead", direct(down), "/api/counter", 502, `UPSTREAM_ERROR: failed to query any nsqd: `},
		{"no nodes", through(unknowing.address), "/api/nodes", 200, `{"nodes":null,"message":""}`},
		{"no topics", through(unknowing.address), "/api/topics", 200, `{"topics":null,"message":""}`},
		{"nothing to count", through(unknowing.address), "/api/counter", 200, `{"stats":{},"message":""}`},
		{"inactive in direct mode", direct(down), "/api/topics?inactive=true", 200, `{"topics":{},"message":""}`},
		{"graphite of what", direct(down), "/api/graphite?metric=x&target=y", 400, `{"message":"INVALID_ARG_METRIC"}`},
		{"graphite for what", direct(down), "/api/graphite?metric=rate", 400, `{"message":"INVALID_ARG_TARGET"}`},
		{"graphite query", direct(down), "/api/graphite?%zz", 400, `{"message":"INVALID_REQUEST"}`},
		{"no graphite", direct(down), "/api/graphite?metric=rate&target=y", 500, `{"message":"INTERNAL_ERROR"}`},
		{"no proxy", direct(down), "/render", 404, `{"message":"NOT_FOUND"}`},
		{"partly dead", through(directory.address, down), "/api/topics", 200, `{"topics":["bare","orders"],"message":"WARNING: Get \"http://` + down},
		{"partly dead, by target", through(directory.address, down), "/api/topics", 200, `"errors":[{"target":"` + down + `","stage":"/topics","error":"Get `},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := startAdmin(t, test.setup)
			status, got := a.do("GET", test.path, "")
			if status != test.status || !strings.Contains(got, test.want) {
				t.Errorf("%s: %d %s\nwant %d %s", test.path, status, got, test.status, test.want)
			}
		})
	}
}

// Each action tells the right daemons the right thing, in stages.
func TestActionsReachTheirTargets(t *testing.T) {
	directory, node := fakeCluster(t)
	directory.accept("/topic/create", "/topic/delete", "/topic/tombstone", "/channel/create", "/channel/delete")
	node.accept("/topic/create", "/topic/delete", "/topic/pause", "/topic/unpause", "/topic/empty",
		"/channel/create", "/channel/delete", "/channel/pause", "/channel/unpause", "/channel/empty")
	tests := []struct {
		method, path, body    string
		lookupd, nsqd, direct []string
	}{
		{"POST", "/api/topics", `{"topic":"orders"}`, []string{"/topic/create?topic=orders"}, nil, []string{"/topic/create?topic=orders"}},
		{"POST", "/api/topics", `{"topic":"orders","channel":"c#ephemeral"} junk`,
			[]string{"/topic/create?topic=orders", "/channel/create?channel=c%23ephemeral&topic=orders"},
			[]string{"/channel/create?channel=c%23ephemeral&topic=orders"},
			[]string{"/topic/create?topic=orders", "/channel/create?channel=c%23ephemeral&topic=orders"}},
		{"POST", "/api/topics/orders", `{"action":"pause"}`, nil, []string{"/topic/pause?topic=orders"}, []string{"/topic/pause?topic=orders"}},
		{"POST", "/api/topics/orders", `{"action":"unpause"}`, nil, []string{"/topic/unpause?topic=orders"}, []string{"/topic/unpause?topic=orders"}},
		{"POST", "/api/topics/orders", `{"action":"empty"}`, nil, []string{"/topic/empty?topic=orders"}, []string{"/topic/empty?topic=orders"}},
		{"POST", "/api/topics/orders/archive", `{"action":"pause"}`, nil, []string{"/channel/pause?channel=archive&topic=orders"}, []string{"/channel/pause?channel=archive&topic=orders"}},
		{"POST", "/api/topics/orders/archive", `{"action":"unpause"}`, nil, []string{"/channel/unpause?channel=archive&topic=orders"}, []string{"/channel/unpause?channel=archive&topic=orders"}},
		{"POST", "/api/topics/orders/archive", `{"action":"empty"}`, nil, []string{"/channel/empty?channel=archive&topic=orders"}, []string{"/channel/empty?channel=archive&topic=orders"}},
		{"DELETE", "/api/topics/orders", "", []string{"/topic/delete?topic=orders"}, []string{"/topic/delete?topic=orders"}, []string{"/topic/delete?topic=orders"}},
		{"DELETE", "/api/topics/orders/archive", "", []string{"/channel/delete?channel=archive&topic=orders"},
			[]string{"/channel/delete?channel=archive&topic=orders"}, []string{"/channel/delete?channel=archive&topic=orders"}},
		{"DELETE", "/api/nodes/" + node.address, `{"topic":"orders"}`, []string{"/topic/tombstone?node=" + strings.ReplaceAll(node.address, ":", "%3A") + "&topic=orders"},
			[]string{"/topic/delete?topic=orders"}, []string{"/topic/delete?topic=orders"}},
	}
	through := startAdmin(t, func(o *Options) { o.NSQLookupdHTTPAddresses = []string{directory.address} })
	direct := startAdmin(t, func(o *Options) { o.NSQDHTTPAddresses = []string{node.address} })
	for _, test := range tests {
		if status, got := through.do(test.method, test.path, test.body); status != 200 || got != `{"message":""}` {
			t.Errorf("%s %s: %d %s", test.method, test.path, status, got)
		}
		if diff := cmp.Diff([][]string{test.lookupd, test.nsqd}, [][]string{directory.told(), node.told()}); diff != "" {
			t.Errorf("%s %s %s (-want +got):\n%s", test.method, test.path, test.body, diff)
		}
		if status, got := direct.do(test.method, test.path, test.body); status != 200 || got != `{"message":""}` {
			t.Errorf("direct: %s %s: %d %s", test.method, test.path, status, got)
		}
		if diff := cmp.Diff(test.direct, node.told()); diff != "" {
			t.Errorf("direct: %s %s %s (-want +got):\n%s", test.method, test.path, test.body, diff)
		}
	}
}

// What is wrong with a request is told before any daemon is.
func TestRefusedActions(t *testing.T) {
	directory, node := fakeCluster(t)
	a := startAdmin(t, func(o *Options) { o.NSQLookupdHTTPAddresses = []string{directory.address} })
	long := strings.Repeat("x", 65)
	tests := []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/api/topics", "", 400, `{"message":"EOF"}`},
		{"POST", "/api/topics", "{", 400, `{"message":"unexpected EOF"}`},
		{"POST", "/api/topics", "{}", 400, `{"message":"INVALID_TOPIC"}`},
		{"POST", "/api/topics", `{"topic":"` + long + `"}`, 400, `{"message":"INVALID_TOPIC"}`},
		{"POST", "/api/topics", `{"topic":"t","channel":"a*"}`, 400, `{"message":"INVALID_CHANNEL"}`},
		{"POST", "/api/topics/orders", `{"action":"create"}`, 400, `{"message":"INVALID_ACTION"}`},
		{"POST", "/api/topics/orders", `{}`, 400, `{"message":"INVALID_ACTION"}`},
		{"POST", "/api/topics/*", `{"action":"empty"}`, 400, `{"message":"INVALID_TOPIC"}`},
		{"DELETE", "/api/topics/*", "", 400, `{"message":"INVALID_TOPIC"}`},
		{"DELETE", "/api/topics/orders/*", "", 400, `{"message":"INVALID_CHANNEL"}`},
		{"DELETE", "/api/nodes/" + node.address, "", 400, `{"message":"INVALID_BODY"}`},
		{"DELETE", "/api/nodes/" + node.address, `{"topic":"*"}`, 400, `{"message":"INVALID_TOPIC"}`},
		{"DELETE", "/api/nodes/127.0.0.1:1", `{"topic":"orders"}`, 404, `{"message":"NODE_NOT_FOUND"}`},
		{"PUT", "/api/topics", "", 405, `{"message":"METHOD_NOT_ALLOWED"}`},
	}
	for _, test := range tests {
		status, got := a.do(test.method, test.path, test.body)
		if status != test.status || got != test.want {
			t.Errorf("%s %s %.40s: %d %s\nwant %d %s", test.method, test.path, test.body, status, got, test.status, test.want)
		}
	}
	status, got := a.local("POST", "/api/topics", `{"topic":"`+strings.Repeat("x", maxBody)+`"}`)
	if want := `{"message":"request body is too big by its Content-Length"}`; status != 400 || got != want {
		t.Errorf("huge body: %d %s", status, got)
	}
	if told := append(directory.told(), node.told()...); len(told) != 0 {
		t.Errorf("daemons were told %v", told)
	}
}

// An action that failed at some says where, one that failed everywhere is no success.
func TestFailedActions(t *testing.T) {
	directory, node := fakeCluster(t)
	a := startAdmin(t, func(o *Options) { o.NSQLookupdHTTPAddresses = []string{directory.address} })
	status, got := a.do("POST", "/api/topics/orders", `{"action":"pause"}`)
	want := `{"message":"UPSTREAM_ERROR: got response 404 Not Found \"{\\\"message\\\":\\\"TOPIC_NOT_FOUND\\\"}\""}`
	if status != 502 || got != want {
		t.Errorf("failed everywhere: %d %s\nwant %s", status, got, want)
	}
	directory.accept("/topic/delete")
	status, got = a.do("DELETE", "/api/topics/orders", "")
	var answer struct {
		Message string
		Results []struct{ Target, Stage, Error string }
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil {
		t.Fatal(err)
	}
	if status != 200 || !strings.HasPrefix(answer.Message, "WARNING: got response 404") || len(answer.Results) != 2 ||
		answer.Results[0].Target != directory.address || answer.Results[0].Error != "" ||
		answer.Results[1].Target != node.address || answer.Results[1].Error == "" || answer.Results[1].Stage != "/topic/delete" {
		t.Errorf("failed at one: %d %s", status, got)
	}
}

// Against real daemons: what was done shows in the next answer, and soon in the shared snapshot.
func TestAgainstRealDaemons(t *testing.T) {
	directory := testnode.StartLookupd(t)
	first, second := testnode.StartNSQD(t, directory), testnode.StartNSQD(t, directory)
	for _, node := range []*testnode.Node{first, second} {
		node.Create("t", "c")
		node.Publish("t", "x", "y")
	}
	a := startAdmin(t, func(o *Options) { o.NSQLookupdHTTPAddresses = []string{directory.HTTP} })
	testutil.Eventually(t, func() error {
		if _, got := a.do("GET", "/api/topics/t/c", ""); !strings.Contains(got, `"depth":4,`) {
			return fmt.Errorf("channel: %s", got)
		}
		return nil
	})
	step := func(method, path, body, after, want string) {
		t.Helper()
		if status, got := a.do(method, path, body); status != 200 || got != `{"message":""}` {
			t.Fatalf("%s %s: %d %s", method, path, status, got)
		}
		if _, got := a.do("GET", after, ""); !strings.Contains(got, want) {
			t.Errorf("after %s %s: %s, want %s", method, path, got, want)
		}
	}
	step("POST", "/api/topics", `{"topic":"new"}`, "/api/topics", `{"topics":["new","t"]`)
	step("POST", "/api/topics/t/c", `{"action":"pause"}`, "/api/topics/t/c", `"paused":true`)
	step("POST", "/api/topics/t/c", `{"action":"empty"}`, "/api/topics/t/c", `"channel_name":"c","depth":0`)
	step("DELETE", "/api/nodes/"+first.HTTP, `{"topic":"t"}`, "/api/nodes/"+first.HTTP, `"topics":null`)
	testutil.Eventually(t, func() error {
		topic := a.monitor.Snapshot().Topic("t")
		if topic == nil || len(topic.Nodes) != 1 || topic.Nodes[0].Node != second.HTTP {
			return fmt.Errorf("snapshot: %+v", topic)
		}
		return nil
	})
	step("DELETE", "/api/topics/t", "", "/api/topics", `{"topics":["new"]`)
}
