package httpd

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/protocol"
	"nsq/internal/testutil"
	"nsq/nsqd/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The limits of the nodes in tests, far enough above 64 KiB to see what is special there.
const (
	maxMsgSize  = 100_000
	maxBodySize = 250_000
)

var startTime = time.Unix(1796095899, 0)

// node is an API that listens, on a broker of its own.
type node struct {
	t      testing.TB
	broker *broker.Broker
	path   string // the data folder
	server *httptest.Server
	log    *testutil.Buffer
}

// start serves an API until the end of the test.
func start(t testing.TB, memQueueSize int, changes ...func(*Config)) *node {
	t.Helper()
	n := &node{t: t, path: filepath.Join(t.TempDir(), "data"), log: new(testutil.Buffer)}
	if err := os.Mkdir(n.path, 0o700); err != nil {
		t.Fatal(err)
	}
	logger := log.New(n.log, "", log.Info)
	n.broker = newBroker(t, n.path, memQueueSize, logger)
	config := Config{
		Broker:        n.broker,
		Logger:        logger,
		Clients:       func() []api.ClientStats { return nil },
		Info:          func() (api.Info, error) { return api.Info{Version: "1.4.0", TCPPort: 4150}, nil },
		ConfigGet:     func(string) (any, bool) { return nil, false },
		ConfigPut:     func(string, []byte) (any, error) { return nil, ErrNotChangeable },
		MaxMsgSize:    maxMsgSize,
		MaxBodySize:   maxBodySize,
		MaxReqTimeout: time.Hour,
		StartTime:     startTime,
	}
	for _, change := range changes {
		change(&config)
	}
	n.server = httptest.NewServer(New(config).Handler())
	t.Cleanup(n.server.Close)
	return n
}

func newBroker(t testing.TB, path string, memQueueSize int, logger *log.Logger) *broker.Broker {
	t.Helper()
	health := new(broker.Health)
	b, err := broker.New(broker.Config{
		MemQueueSize: memQueueSize, MaxMsgTimeout: 15 * time.Minute,
		QueueScanSelectionCount: 20, QueueScanWorkerPoolMax: 4,
		Health: health,
		Logger: logger,
		Store: &broker.ClassicStore{Path: path, Queues: diskq.Config{
			Path: path, MaxBytesPerFile: 1 << 20, MinRecord: protocol.MessageHeaderSize, MaxRecord: 1 << 20,
			SyncEvery: 2500, SyncTimeout: 2 * time.Second, Health: health.Set, Logger: logger,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() }) // it fails where the test has broken the disk
	return b
}

// breakDisk makes all writes of queues and metadata fail that have not opened their file yet.
func (n *node) breakDisk() {
	n.t.Helper()
	if err := os.RemoveAll(n.path); err != nil {
		n.t.Fatal(err)
	}
}

// reply is an answer as far as the tests look at it.
type reply struct {
	status int
	header http.Header
	body   string
}

// unsized hides the length of a body, so that it is sent in chunks.
type unsized struct{ io.Reader }

func (n *node) send(method, target string, body io.Reader) reply {
	n.t.Helper()
	req, err := http.NewRequest(method, n.server.URL+target, body)
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := n.server.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

func (n *node) get(target string) reply { return n.send(http.MethodGet, target, nil) }

func (n *node) post(target, body string) reply {
	return n.send(http.MethodPost, target, strings.NewReader(body))
}

// expect wants a status and a body.
func (r reply) expect(t testing.TB, status int, body string) {
	t.Helper()
	if r.status != status || r.body != body {
		t.Errorf("answer %d %q, want %d %q", r.status, r.body, status, body)
	}
}

// expectCode wants an error of the API.
func (r reply) expectCode(t testing.TB, status int, code string) {
	t.Helper()
	r.expect(t, status, `{"message":"`+code+`"}`)
	if got := r.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
}

// setUp makes requests that must be answered with an empty 200.
func (n *node) setUp(targets ...string) {
	n.t.Helper()
	for _, target := range targets {
		n.post(target, "").expect(n.t, http.StatusOK, "")
	}
}

func (n *node) topicNames() []string {
	names := []string{}
	for _, topic := range n.broker.Topics() {
		names = append(names, topic.Name())
	}
	return names
}

func (n *node) topicStats(name string) broker.TopicStats {
	n.t.Helper()
	all := n.broker.Stats(name, "")
	if len(all) != 1 {
		n.t.Fatalf("no topic %s", name)
	}
	return all[0]
}

// inbox is a consumer that keeps the bodies that it gets.
type inbox struct {
	mu     sync.Mutex
	bodies []string
}

func (i *inbox) Deliver(batch []broker.Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range batch {
		i.bodies = append(i.bodies, string(m.Body()))
	}
	return nil
}

func (i *inbox) Flush() error { return nil }

func (i *inbox) Close(error) {}

// subscribe makes an inbox a consumer until the end of the test.
func (n *node) subscribe(topic, channel string, ready int64) *inbox {
	n.t.Helper()
	in := new(inbox)
	s, err := n.broker.Subscribe(topic, channel, in, broker.SubscriptionConfig{MsgTimeout: time.Minute})
	if err != nil {
		n.t.Fatal(err)
	}
	s.SetReady(ready)
	n.t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, broker.ErrNotFound) {
			n.t.Error(err)
		}
	})
	return in
}

// expect waits for just these bodies, in any order.
func (i *inbox) expect(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, "all messages arrive", func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return len(i.bodies) >= len(want)
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	got := slices.Sorted(slices.Values(i.bodies))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %d messages %.200q, want %d %.200q", len(got), got, len(want), want)
	}
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

// mpubBody is the body of a MPUB of these messages.
func mpubBody(messages ...string) string {
	var all [][]byte
	for _, m := range messages {
		all = append(all, []byte(m))
	}
	return string(protocol.AppendMPub(nil, all))
}

// numbers are 32-bit numbers in the order of the wire.
func numbers(all ...int32) string {
	var b []byte
	for _, n := range all {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return string(b)
}
