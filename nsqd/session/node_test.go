package session

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/netserver"
	"nsq/internal/protocol"
	"nsq/internal/testutil"
	"nsq/nsqd/broker"
)

// patience is how long something that must happen may take.
const patience = 10 * time.Second

// setup is what a test can change about its node.
type setup struct {
	limits    Limits
	memory    int // messages
	tls       *tls.Config
	required  bool   // TLS
	auth      string // what the auth server answers at first; empty: no AUTH
	context   context.Context
	handshake time.Duration
	store     func(*broker.ClassicStore) broker.Store
	log       func(line string) // sees each line; may be nil
}

func defaults() setup {
	return setup{
		limits: Limits{
			MaxMsgSize: 1048576, MaxBodySize: 5242880, MaxRdyCount: 2500,
			MsgTimeout: time.Minute, MaxMsgTimeout: 15 * time.Minute, MaxReqTimeout: time.Hour,
			MaxHeartbeatInterval: time.Minute, MaxOutputBufferSize: 65536,
			OutputBufferTimeout: 250 * time.Millisecond, MinOutputBufferTimeout: 25 * time.Millisecond, MaxOutputBufferTimeout: 30 * time.Second,
			Snappy: true, Deflate: true, MaxDeflateLevel: 6,
		},
		memory: 10000,
		store:  func(s *broker.ClassicStore) broker.Store { return s },
	}
}

// node is a session server with a broker behind it and a listener before it, as nsqd wires them.
type node struct {
	t         testing.TB
	transport transport
	broker    *broker.Broker
	sessions  *Server
	server    *netserver.Server
	connect   func() (net.Conn, error)
	journal   *journal
	auth      *authServer // nil without AUTH
	clientTLS *tls.Config // of clients; nil accepts anything and presents nothing
	folder    string
	panics    bool // a connection is going to end in one
}

// with runs a test of a node that is reached by a transport. Behind a pipe the test runs in a
// bubble, where time passes only while everybody waits.
func with(t *testing.T, by transport, test func(*node), changes ...func(*setup)) {
	t.Helper()
	s := defaults()
	for _, change := range changes {
		change(&s)
	}
	var server *authServer // outside of the bubble: time may pass while it waits for questions
	if s.auth != "" {
		server = newAuthServer(t, s.auth)
	}
	if by.network == "pipe" {
		synctest.Test(t, func(t *testing.T) { test(start(t, by, s, server)) })
		return
	}
	test(start(t, by, s, server))
}

// start begins a node. It is stopped at the end of the test, and must be clean then.
func start(t testing.TB, by transport, s setup, server *authServer) *node {
	t.Helper()
	if by.tls && s.tls == nil {
		s.tls = serverTLS()
	}
	n := &node{t: t, transport: by, journal: &journal{see: s.log}, auth: server, folder: t.TempDir()}
	logger := log.New(n.journal, "", log.Debug)
	var err error
	n.broker, err = broker.New(broker.Config{
		MemQueueSize: s.memory, NodeID: 1, MaxMsgTimeout: s.limits.MaxMsgTimeout, MaxChannelConsumers: s.limits.MaxChannelConsumers,
		QueueScanSelectionCount: 20, QueueScanWorkerPoolMax: 4, Logger: logger,
		Store: s.store(&broker.ClassicStore{Path: n.folder, Queues: diskq.Config{
			Path: n.folder, MaxBytesPerFile: 1 << 20, MinRecord: protocol.MessageHeaderSize, MaxRecord: 1 << 21,
			SyncEvery: 2500, SyncTimeout: 2 * time.Second, Logger: logger,
		}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.sessions = NewServer(Config{
		Context: s.context, Broker: n.broker, Limits: s.limits,
		TLS: s.tls, TLSRequired: s.required, Auth: server.client(t, logger), Logger: logger,
	})
	listener := n.listen()
	n.server = netserver.New(listener, netserver.Config{
		Protocols:        map[string]func(net.Conn){protocol.Magic: n.sessions.Serve},
		Reject:           protocol.AppendFrame(nil, protocol.FrameError, protocol.FaultBadProtocol.With().Error()),
		HandshakeTimeout: s.handshake,
		Log:              logger,
	})
	served := make(chan error, 1)
	go func() { served <- n.server.Serve() }()
	t.Cleanup(func() { n.stop(served) })
	return n
}

func (n *node) listen() net.Listener {
	address := "127.0.0.1:0"
	switch n.transport.network {
	case "pipe":
		pipes := newPipes()
		n.connect = pipes.dial
		return pipes
	case "unix":
		short, err := os.MkdirTemp("", "nsq") // a socket's path must be short
		if err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(func() { os.RemoveAll(short) })
		address = filepath.Join(short, "s")
	}
	listener, err := net.Listen(n.transport.network, address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.connect = func() (net.Conn, error) {
		return net.DialTimeout(n.transport.network, listener.Addr().String(), patience)
	}
	return listener
}

func (n *node) stop(served <-chan error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.server.Close(ctx); err != nil {
		n.t.Errorf("close server: %v", err)
	}
	if err := <-served; err != nil {
		n.t.Errorf("serve: %v", err)
	}
	if left := n.sessions.Clients(); len(left) > 0 {
		n.t.Errorf("%d clients are left after the end of all connections", len(left))
	}
	if left := n.consumers(); left != 0 {
		n.t.Errorf("%d consumers are left after the end of all connections", left)
	}
	if err := n.broker.Close(); err != nil {
		n.t.Errorf("close broker: %v", err)
	}
	if n.journal.has(" panic - ") != n.panics {
		n.t.Errorf("a connection ended in a panic: %v\n%s", !n.panics, n.journal)
	}
}

// consumers counts those of all channels.
func (n *node) consumers() (all int) {
	for _, topic := range n.broker.Stats("", "") {
		for _, channel := range topic.Channels {
			all += channel.ClientCount
		}
	}
	return all
}

// publish is done by somebody else than the test's connections.
func (n *node) publish(topic string, bodies ...string) {
	n.t.Helper()
	to, err := n.broker.Topic(topic)
	if err != nil {
		n.t.Fatal(err)
	}
	var batch broker.Batch
	for _, body := range bodies {
		copy(batch.Add(len(body)), body)
	}
	if err := to.Publish(&batch); err != nil {
		n.t.Fatal(err)
	}
}

// channel describes a channel.
func (n *node) channel(topic, channel string) broker.ChannelStats {
	n.t.Helper()
	stats := n.broker.Stats(topic, channel)
	if len(stats) != 1 || len(stats[0].Channels) != 1 {
		n.t.Fatalf("no channel %s:%s", topic, channel)
	}
	return stats[0].Channels[0]
}

// topicMessages is how many messages a topic has accepted, -1 if it does not exist.
func (n *node) topicMessages(topic string) int64 {
	stats := n.broker.Stats(topic, "")
	if len(stats) == 0 {
		return -1
	}
	return int64(stats[0].MessageCount)
}

// settled lets everybody finish what they are about to do, in a bubble.
func settled() { synctest.Wait() }

// eventually waits for something that other goroutines do.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// journal keeps log lines, and shows them to see.
type journal struct {
	testutil.Buffer
	see func(line string)
}

func (j *journal) Write(p []byte) (int, error) {
	if j.see != nil {
		j.see(string(p))
	}
	return j.Buffer.Write(p)
}

func (j *journal) has(text string) bool { return strings.Contains(j.String(), text) }
