package session

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"

	"nsq/internal/protocol"
)

// handshakeTimeout is how long a TLS handshake may take.
const handshakeTimeout = 5 * time.Second

// packedBufferSize is how much compressed input is read at a time, in bytes.
const packedBufferSize = 16 << 10

// upgrade puts the layers that were agreed on under the frames, TLS first, and says OK in each.
// Bytes that the client has sent behind its IDENTIFY already belong to the first layer.
//
// Source: nsqd-tcp spec, section 7.
func (c *client) upgrade(agreed *settings) error {
	if !agreed.tls && !agreed.snappy && !agreed.deflate {
		return nil
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	// What reads and writes below the compression.
	transport := net.Conn(&resumedConn{Conn: c.conn, early: bytes.NewReader(c.in.takeBuffered())})
	if agreed.tls {
		secure, err := c.handshake(transport)
		if err != nil {
			return err
		}
		transport = secure
		c.in.source = secure
		c.out.upgrade(secure, nil)
		if err := c.out.send(protocol.FrameResponse, protocol.ResponseOK); err != nil {
			return err
		}
	}
	if !agreed.snappy && !agreed.deflate {
		return nil
	}
	arriving := bufio.NewReaderSize(transport, packedBufferSize)
	c.in.arrived = arriving.Buffered
	if agreed.snappy {
		// Without concurrency it has no goroutine, which nobody would end.
		packed := s2.NewWriter(transport, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
		c.in.source = snappy.NewReader(arriving)
		c.out.upgrade(packed, packed)
	} else {
		packed, err := flate.NewWriter(transport, agreed.deflateLevel)
		if err != nil {
			return err
		}
		c.in.source = flate.NewReader(arriving)
		c.out.upgrade(packed, packed)
	}
	return c.out.send(protocol.FrameResponse, protocol.ResponseOK)
}

// handshake makes the connection a TLS one. The failure is told in clear text, as the client
// expects, without the library's words.
func (c *client) handshake(transport net.Conn) (*tls.Conn, error) {
	// Deadlines and no context: the end of that would close the connection, over which the failure
	// is to be told. They also replace those of the frames before.
	if err := c.conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	secure := tls.Server(transport, c.server.config.TLS)
	if err := secure.Handshake(); err != nil {
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		c.server.config.Logger.Warnf("client(%s) TLS handshake failed - %s", c.addr, err)
		return nil, protocol.FaultUpgrade.With("TLS handshake")
	}
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	state := secure.ConnectionState()
	c.tls.Store(&state)
	return secure, nil
}

// resumedConn is a connection of which some bytes have been read early.
type resumedConn struct {
	net.Conn
	early *bytes.Reader
}

func (r *resumedConn) Read(p []byte) (int, error) {
	if r.early.Len() > 0 {
		return r.early.Read(p)
	}
	return r.Conn.Read(p)
}
