package metrics

import (
	"errors"
	"net"
	"sync/atomic"
)

// Gate is a listener that counts the connections which come, and hands them out as they are.
type Gate struct {
	net.Listener
	limit int
	open  func() int

	accepted, refused atomic.Uint64
}

// NewGate returns a gate for a server that says how many connections it has open, and refuses what
// comes while there are limit of them; 0 is no limit.
func NewGate(listener net.Listener, limit int, open func() int) *Gate {
	return &Gate{Listener: listener, limit: limit, open: open}
}

// Accept implements net.Listener.
func (g *Gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.accepted.Add(1)
	if g.limit > 0 && g.open() >= g.limit {
		g.refused.Add(1)
	}
	return conn, nil
}

// Open is how many connections the server has open.
func (g *Gate) Open() int { return g.open() }

// Accepted is how many connections have come, those that were refused included.
func (g *Gate) Accepted() uint64 { return g.accepted.Load() }

// Refused is how many connections have come while the server was full.
func (g *Gate) Refused() uint64 { return g.refused.Load() }

// Listener counts connections from their coming until they are closed. The connections that it
// hands out are wrapped: it is for servers that do not mind.
type Listener struct {
	net.Listener
	name string

	accepted atomic.Uint64
	open     atomic.Int64
}

// NewListener returns a listener that counts, under a name that tells it from others.
func NewListener(listener net.Listener, name string) *Listener {
	return &Listener{Listener: listener, name: name}
}

// Name is the name that it was given.
func (l *Listener) Name() string { return l.name }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	l.open.Add(1)
	return &countedConn{Conn: conn, open: &l.open}, nil
}

// Accepted is how many connections have come.
func (l *Listener) Accepted() uint64 { return l.accepted.Load() }

// Open is how many connections are open.
func (l *Listener) Open() int64 { return l.open.Load() }

type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// CloseWrite lets a server end its answer where the connection has that.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
