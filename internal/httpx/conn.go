package httpx

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stallTimeout is how long a peer may neither send more of a body nor take more of an answer.
	stallTimeout = 30 * time.Second
	// stopTimeout replaces it while the server stops.
	stopTimeout = time.Second
	// writePiece bounds, in bytes, what has to be taken within one stallTimeout.
	writePiece = 64 << 10
)

// connKey is the context key of a request's *conn.
type connKey struct{}

// connTracker is a listener that knows its connections, so that those which hold up a stop can be
// ended while net/http waits for the others.
type connTracker struct {
	net.Listener

	mu      sync.Mutex
	conns   map[*conn]struct{} // guarded by mu
	stopped bool               // guarded by mu
}

func newConnTracker(listener net.Listener) *connTracker {
	return &connTracker{Listener: listener, conns: make(map[*conn]struct{})}
}

// Accept implements net.Listener. A connection that comes while the server stops is closed.
func (t *connTracker) Accept() (net.Conn, error) {
	for {
		raw, err := t.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, tracker: t}
		if t.add(c) {
			return c, nil
		}
		_ = raw.Close() // it was never used
	}
}

func (t *connTracker) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.conns[c] = struct{}{}
	}
	return !t.stopped
}

// stateChanged is the server's http.Server.ConnState.
func (t *connTracker) stateChanged(c net.Conn, state http.ConnState) {
	if c := trackedConn(c); c != nil && state == http.StateActive {
		c.requested.Store(true)
	}
}

// stop closes the connections that have not sent a whole request header yet, net/http closes the
// idle ones; the others are told to hurry.
func (t *connTracker) stop() {
	t.mu.Lock()
	t.stopped = true
	var silent []*conn
	for c := range t.conns {
		if c.requested.Load() {
			c.hurry()
		} else {
			silent = append(silent, c)
		}
	}
	t.mu.Unlock()
	for _, c := range silent {
		_ = c.Close() // its goroutine reports what is worth reporting
	}
}

func (t *connTracker) forget(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// trackedConn finds our connection under TLS; nil if there is none.
func trackedConn(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	tracked, _ := c.(*conn)
	return tracked
}

// conn gives every write a deadline, and reads while a body is received.
type conn struct {
	net.Conn
	tracker   *connTracker
	requested atomic.Bool // has sent at least one request
	ownWrites atomic.Bool // somebody else has set a write deadline

	mu       sync.Mutex
	reading  bool      // a body is being received; guarded by mu
	hurried  bool      // the server stops; guarded by mu
	extended time.Time // when the read deadline was last moved; guarded by mu
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.tracker.forget(c)
	return c.Conn.Close()
}

// CloseWrite lets net/http half-close the connection after an answer that nobody waited for.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.ownWrites.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.ownWrites.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// Write implements net.Conn: in pieces, so that a slow reader of a large answer has time for each.
func (c *conn) Write(p []byte) (written int, err error) {
	for {
		piece := p[written:min(written+writePiece, len(p))]
		if !c.ownWrites.Load() {
			if err := c.Conn.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
				return written, err
			}
		}
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// extend moves the read deadline of a body that makes progress.
func (c *conn) extend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	window := stallTimeout
	if c.hurried {
		window = stopTimeout
	}
	if c.reading && now.Sub(c.extended) < window/16 {
		return nil
	}
	c.reading, c.extended = true, now
	return c.Conn.SetReadDeadline(now.Add(window))
}

// limit gives the rest of a body one last deadline, or none to come if the server stops.
func (c *conn) limit(timeout time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hurried {
		timeout = min(timeout, stopTimeout)
	}
	c.reading, c.extended = true, time.Time{}
	return c.Conn.SetReadDeadline(time.Now().Add(timeout))
}

// received ends the deadlines of a body: the next read waits for the next request.
func (c *conn) received() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	return c.Conn.SetReadDeadline(time.Time{})
}

// hurry shortens the deadline of a body that is being received.
func (c *conn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurried = true
	if c.reading {
		_ = c.Conn.SetReadDeadline(time.Now().Add(stopTimeout)) // fails on a closed connection only
	}
}
