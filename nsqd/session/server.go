// Package session is one client connection of nsqd: the table of commands, the states, the
// negotiated settings, and the writer that responses and messages share.
//
// Each connection has one goroutine, its read loop; SUB starts the pump of its subscription, which is
// the broker's. The read loop acts on all complete commands that have arrived before it waits for
// more: consecutive PUBs are one publish, consecutive FINs one pass, their answers one write.
// Before a read that may block nothing that the client waits for is held back.
//
// Source: nsqd-tcp spec, sections 3 to 17.
package session

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"nsq/internal/auth"
	"nsq/internal/log"
	"nsq/internal/netserver"
	"nsq/nsqd/broker"
)

// Config is what the connections of an nsqd have in common.
type Config struct {
	// Context is done when the connections are to end: nothing that they have asked others for is
	// waited for then. nil is never.
	Context     context.Context
	Broker      *broker.Broker
	Limits      Limits
	TLS         *tls.Config  // nil if TLS is not offered
	TLSRequired bool         // nothing but IDENTIFY is accepted without TLS
	Auth        *auth.Client // nil if clients need no AUTH
	Logger      *log.Logger
}

// Server serves connections and knows those that are live. Its methods may be called from any
// goroutine.
type Server struct {
	config Config

	mu      sync.Mutex // guards the following
	clients map[*client]struct{}
}

// NewServer returns a server without connections.
func NewServer(config Config) *Server {
	if config.Context == nil {
		config.Context = context.Background()
	}
	return &Server{config: config, clients: make(map[*client]struct{})}
}

// Serve serves a connection that has sent the magic of V2, until its end. It ends when the
// connection is closed; whatever the client had in flight is back in its channel then.
func (s *Server) Serve(conn net.Conn) {
	c := &client{server: s, conn: conn, addr: netserver.RemoteAddr(conn), started: time.Now()}
	initial := defaultSettings(&s.config.Limits, c.host())
	c.settings.Store(initial)
	c.heard = true
	c.in.source, c.in.beforeRead = conn, c.beforeRead
	c.out.init(conn, initial.heartbeat)
	c.heartbeat = time.AfterFunc(time.Hour, c.beat) // which reads the field,
	c.heartbeat.Reset(initial.heartbeat)            // and so begins after it was set

	s.mu.Lock()
	s.clients[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clients, c)
	}()
	c.run()
}

// host is the client's address without the port.
func (c *client) host() string {
	if host, _, err := net.SplitHostPort(c.addr); err == nil {
		return host
	}
	return c.addr
}
