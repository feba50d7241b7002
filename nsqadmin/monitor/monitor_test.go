package monitor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/cluster"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a fake nsqd or nsqlookupd: paths with their answers.
type daemon struct {
	address string
	answers map[string]string
	asked   atomic.Int64 // for /stats
}

func start(t *testing.T, answers map[string]string) *daemon {
	d := &daemon{answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/stats" {
			d.asked.Add(1)
		}
		answer, ok := d.answers[req.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	d.address = strings.TrimPrefix(server.URL, "http://")
	return d
}

func clusterOf(t *testing.T, lookupds, nsqds []string) *cluster.Cluster {
	client := httpx.NewClient(httpx.ClientConfig{RequestTimeout: testutil.Patience})
	t.Cleanup(client.Close)
	return cluster.New(cluster.Config{HTTP: client, Lookupds: func() []string { return lookupds }, NSQDs: nsqds, Log: log.Discard()})
}

const stats = `{"version":"1.4.0","health":"NOK - disk","start_time":1796095899,"topics":[{"topic_name":"t","depth":3,"message_count":5,` +
	`"channels":[{"channel_name":"c","depth":2,"in_flight_count":4,"deferred_count":5,"message_count":5,"client_count":1,"clients":[{"client_id":"x"}]}]}]}`

// A snapshot through nsqlookupds: a node that fails and a nsqlookupd that fails have their own rows
// and errors, topics that only the directory knows are there with their channels, totals add up.
func TestLookThroughLookupds(t *testing.T) {
	well, unwell := start(t, map[string]string{"/stats": stats}), start(t, nil)
	node := func(d *daemon, host, topic string) string {
		name, port, _ := strings.Cut(d.address, ":")
		return fmt.Sprintf(`{"hostname":%q,"broadcast_address":%q,"tcp_port":%s,"http_port":%s,"version":"1.4.0","topics":[%q],"tombstones":[false]}`,
			host, name, port, port, topic)
	}
	directory := start(t, map[string]string{
		"/nodes":    `{"producers":[` + node(unwell, "b", "elsewhere") + "," + node(well, "a", "t") + `]}`,
		"/topics":   `{"topics":["t","elsewhere","idle"]}`,
		"/channels": `{"channels":["kept"]}`,
	})
	broken := start(t, nil)
	s := look(t.Context(), clusterOf(t, []string{directory.address, broken.address}, nil))
	if len(s.Nodes) != 2 || s.Nodes[0].Address != well.address || s.Nodes[1].Address != unwell.address {
		t.Fatalf("nodes: %+v", s.Nodes)
	}
	if n := s.Nodes[0]; n.Err != "" || n.Health != "NOK - disk" || !n.Unwell() || n.Started.Unix() != 1796095899 || n.Totals.Depth != 5 {
		t.Errorf("node that answers: %+v", n)
	}
	if n := s.Nodes[1]; !strings.Contains(n.Err, "500") || !n.Unwell() || n.Totals != (Totals{}) {
		t.Errorf("node that does not: %+v", n)
	}
	if len(s.Lookupds) != 2 || s.Lookupds[0].Err != "" || !strings.Contains(s.Lookupds[1].Err, "500") {
		t.Errorf("nsqlookupds: %+v", s.Lookupds)
	}
	var names []string
	for _, topic := range s.Topics {
		names = append(names, fmt.Sprintf("%s inactive=%v channels=%d depth=%d", topic.TopicName, topic.Inactive, len(topic.Channels), topic.Totals.Depth))
	}
	if got, want := strings.Join(names, ", "), "elsewhere inactive=false channels=0 depth=0, idle inactive=true channels=1 depth=0, t inactive=false channels=1 depth=5"; got != want {
		t.Errorf("topics: %s\nwant    %s", got, want)
	}
	if want := (Totals{Depth: 5, InFlight: 4, Deferred: 5, Clients: 1}); s.Totals != want {
		t.Errorf("totals %+v, want %+v", s.Totals, want)
	}
	if c := s.Topic("t").Channel("c"); c == nil || len(c.Clients) != 1 || c.Clients[0].Node != well.address {
		t.Errorf("channel: %+v", c)
	}
	if len(s.Failures) != 3 { // the nsqlookupd for /nodes and /topics, the node for /stats
		t.Errorf("failures: %v", s.Failures)
	}
}

// In direct mode a node that is down has a row, too.
func TestLookDirect(t *testing.T) {
	down := start(t, nil)
	up := start(t, map[string]string{"/stats": stats, "/info": `{"version":"1.2.0","hostname":"h","broadcast_address":""}`})
	s := look(t.Context(), clusterOf(t, nil, []string{down.address, up.address}))
	if !s.Direct || s.Lookupds != nil || len(s.Nodes) != 2 {
		t.Fatalf("snapshot: %+v", s)
	}
	n := s.Node(up.address)
	if n == nil || n.Err != "" || n.Version != "1.2.0" || len(n.AdminNode.Topics) != 1 || n.AdminNode.Topics[0].Topic != "t" {
		t.Errorf("node that answers: %+v", n)
	}
	if n := s.Node(down.address); n == nil || !strings.Contains(n.Err, "500") || n.BroadcastAddress != "127.0.0.1" || cluster.Address(n.AdminNode) != n.Address {
		t.Errorf("node that does not: %+v", n)
	}
	if s.Node("else") != nil || s.Topic("else") != nil || s.Topic("t").Channel("else") != nil {
		t.Error("found what is not there")
	}
}

// Two registrations with one HTTP address, as after a restart on another TCP port, count once.
func TestSameAddressCountsOnce(t *testing.T) {
	node := start(t, map[string]string{"/stats": stats})
	host, port, _ := strings.Cut(node.address, ":")
	row := func(tcp int) string {
		return fmt.Sprintf(`{"hostname":"h","broadcast_address":%q,"tcp_port":%d,"http_port":%s}`, host, tcp, port)
	}
	directory := start(t, map[string]string{"/nodes": `{"producers":[` + row(1) + "," + row(2) + `]}`, "/topics": `{}`})
	s := look(t.Context(), clusterOf(t, []string{directory.address}, nil))
	if len(s.Nodes) != 2 || s.Nodes[0].Err != "" || s.Nodes[1].Err == "" || s.Nodes[1].Stats != nil || s.Totals.Depth != 5 {
		t.Errorf("nodes %+v, %+v, totals %+v", s.Nodes[0], s.Nodes[1], s.Totals)
	}
}

// The cluster is asked once however many wait for a refresh, which shows what came before it.
func TestRefreshIsShared(t *testing.T) {
	node := start(t, map[string]string{"/stats": stats, "/info": `{"broadcast_address":""}`})
	m := New(Config{Cluster: clusterOf(t, nil, []string{node.address}), Interval: time.Hour, Window: time.Hour, Log: log.Discard()})
	if s := m.Snapshot(); s == nil || s.Seq != 0 || !s.Direct {
		t.Fatalf("before the first collection: %+v", s)
	}
	changed := m.Changed()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-changed
	before := m.Snapshot().Seq
	const waiting = 20
	done := make(chan uint64, waiting)
	for range waiting {
		go func() {
			m.Refresh(t.Context())
			done <- m.Snapshot().Seq
		}()
	}
	for range waiting {
		if seq := <-done; seq <= before {
			t.Errorf("refresh shows collection %d, the one before", seq)
		}
	}
	if asked := node.asked.Load(); asked >= waiting {
		t.Errorf("node was asked %d times for %d refreshes", asked, waiting)
	}
	if len(m.History().Samples(Key{})) != 1 {
		t.Error("a refresh is in the history")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	m.Refresh(context.Background()) // of a monitor that has ended: returns
}
