package main

import (
	"errors"
	"net"
	"sync"

	"nsq/internal/log"
)

// limit is a listener that closes connections at once which are too many. It is safe for concurrent use.
type limit struct {
	net.Listener
	slots chan struct{} // one element a connection
	log   *log.Logger
}

func newLimit(listener net.Listener, most int, logger *log.Logger) *limit {
	return &limit{Listener: listener, slots: make(chan struct{}, most), log: logger}
}

// Accept implements net.Listener.
func (l *limit) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			l.log.Debugf("refusing client(%s), limit of %d connections reached", conn.RemoteAddr(), cap(l.slots))
			_ = conn.Close() // it was never used
		}
	}
}

// limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.free()
	return c.Conn.Close()
}

// CloseWrite is that of the connection.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
