// Package netserver runs the accept loop of a TCP or unix socket: it reads the magic of each new
// connection within a deadline, hands the connection to the protocol of that name, keeps count of
// all of them, and ends them all when it is closed. It knows no protocol, only their magics.
//
// Source: nsqd-tcp spec, sections 1 and 5; nsqlookupd spec, section 3.1; nsqd-http spec, section 1.1.
package netserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"nsq/internal/log"
)

// magicSize is the length of the bytes by which a client chooses its protocol.
const magicSize = 4

const (
	defaultHandshakeTimeout = 10 * time.Second
	rejectTimeout           = time.Second
	warnInterval            = 10 * time.Second
)

// Config says what a Server does with its connections.
type Config struct {
	// Protocols has the handler for each 4-byte magic. A handler is called in the connection's own
	// goroutine, with the magic already read and no deadline set. It may close the connection; the
	// server does so when it returns. When the server is closed, so is the connection, and the
	// handler is expected to return soon after.
	Protocols map[string]func(net.Conn)

	// Reject is sent to a client with any other magic.
	Reject []byte

	// HandshakeTimeout is how long a client may take to send its magic; 0 means 10 s.
	HandshakeTimeout time.Duration

	// MaxConns limits how many connections are open at a time; 0 means no limit.
	MaxConns int

	Log *log.Logger
}

// Server serves one listener. Its methods may be called from any goroutine.
type Server struct {
	config   Config // read only
	listener net.Listener
	stopping chan struct{} // closed, under mu, when Close begins
	handlers sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // every open connection, those in handshake too; guarded by mu
}

// New returns a server for the listener, which belongs to it from now on.
func New(listener net.Listener, config Config) *Server {
	if config.HandshakeTimeout <= 0 {
		config.HandshakeTimeout = defaultHandshakeTimeout
	}
	if config.Log == nil {
		config.Log = log.Discard()
	}
	return &Server{
		config:   config,
		listener: listener,
		stopping: make(chan struct{}),
		conns:    make(map[net.Conn]struct{}),
	}
}

// Addr is the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Conns is how many connections are open, those in handshake included.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Serve accepts connections until the server is closed, then it returns nil, or until accepting
// fails for good, then it returns that error. Errors that may pass are retried.
func (s *Server) Serve() error {
	s.config.Log.Infof("TCP: listening on %s", s.listener.Addr())
	var (
		delay     backoff
		failing   = throttle{interval: warnInterval}
		overLimit = throttle{interval: warnInterval}
	)
	for {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
			delay.reset()
			s.admit(conn, &overLimit)
		case s.isStopping():
			return nil
		case !isTemporary(err):
			return fmt.Errorf("listener.Accept() error - %w", err)
		default:
			if failing.allow() {
				s.config.Log.Warnf("temporary Accept() failure - %s", err)
			}
			delay.wait(s.stopping)
		}
	}
}

// Close stops accepting, closes every connection and waits until their handlers have returned or
// ctx is done, whose error it then returns. Calling it again only waits.
func (s *Server) Close(ctx context.Context) error {
	err := s.stop()
	done := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("wait for %d connections to end: %w", s.Conns(), ctx.Err()))
	}
}

// stop makes sure that no connection is open and that none will be.
func (s *Server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStopping() {
		return nil
	}
	close(s.stopping)
	s.config.Log.Infof("TCP: closing %s", s.listener.Addr())
	err := s.listener.Close()
	for conn := range s.conns {
		s.closeConn(conn)
	}
	if err != nil {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// admit starts serving a new connection, unless there are too many or the server stops.
func (s *Server) admit(conn net.Conn, overLimit *throttle) {
	s.mu.Lock()
	full := s.config.MaxConns > 0 && len(s.conns) >= s.config.MaxConns
	admitted := !full && !s.isStopping()
	if admitted {
		s.conns[conn] = struct{}{}
		s.handlers.Go(func() { s.serve(conn) })
	}
	s.mu.Unlock()
	if admitted {
		return
	}
	s.closeConn(conn)
	if full && overLimit.allow() {
		s.config.Log.Warnf("TCP: refusing client(%s), limit of %d connections reached", RemoteAddr(conn), s.config.MaxConns)
	}
}

// serve is the life of one connection.
func (s *Server) serve(conn net.Conn) {
	defer s.forget(conn)
	addr := RemoteAddr(conn)
	defer s.confinePanic(addr)

	s.config.Log.Infof("TCP: new client(%s)", addr)
	magic, err := s.readMagic(conn)
	if err != nil {
		if !s.isStopping() {
			s.config.Log.Errorf("failed to read protocol version - %s", err)
		}
		return
	}
	s.config.Log.Infof("CLIENT(%s): desired protocol magic '%s'", addr, printable(magic))
	handle, known := s.config.Protocols[magic]
	if !known {
		s.config.Log.Errorf("client(%s) bad protocol magic '%s'", addr, printable(magic))
		if err := s.reject(conn); err != nil {
			s.config.Log.Debugf("client(%s) failed to reject - %s", addr, err)
		}
		return
	}
	handle(conn)
}

func (s *Server) readMagic(conn net.Conn) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(s.config.HandshakeTimeout)); err != nil {
		return "", fmt.Errorf("set handshake deadline: %w", err)
	}
	var magic [magicSize]byte
	if _, err := io.ReadFull(conn, magic[:]); err != nil {
		return "", err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return "", fmt.Errorf("clear handshake deadline: %w", err)
	}
	return string(magic[:]), nil
}

func (s *Server) reject(conn net.Conn) error {
	if err := conn.SetWriteDeadline(time.Now().Add(rejectTimeout)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	if _, err := conn.Write(s.config.Reject); err != nil {
		return fmt.Errorf("write rejection: %w", err)
	}
	return HangUp(conn)
}

// confinePanic is deferred: a broken handler costs its own client the connection, nobody else.
func (s *Server) confinePanic(addr string) {
	if value := recover(); value != nil {
		s.config.Log.Errorf("client(%s) panic - %v\n%s", addr, value, debug.Stack())
	}
}

func (s *Server) forget(conn net.Conn) {
	s.closeConn(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// closeConn closes a connection that its handler may have closed already.
func (s *Server) closeConn(conn net.Conn) {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.config.Log.Debugf("client(%s) failed to close - %s", RemoteAddr(conn), err)
	}
}

// printable keeps a peer's control bytes out of the log.
func printable(magic string) string {
	var text []byte
	for _, c := range []byte(magic) {
		if c < ' ' || c > '~' {
			text = fmt.Appendf(text, `\x%02x`, c)
		} else {
			text = append(text, c)
		}
	}
	return string(text)
}
