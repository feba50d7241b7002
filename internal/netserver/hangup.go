package netserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	hangUpTimeout = 250 * time.Millisecond
	hangUpBytes   = 16 << 20
)

// HangUp ends a connection so that the peer can read what was last written to it. Closing a socket
// with unread input makes the kernel reset it, and the reset may overtake the final bytes: HangUp
// closes its own direction, reads and discards what the peer still sends, for at most 250 ms or
// 16 MiB, and then closes. A TLS connection is hung up below the TLS layer. A connection that
// cannot be half-closed is closed at once.
//
// The caller has flushed its own buffers and no other goroutine reads from the connection.
func HangUp(conn net.Conn) error {
	if layered, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = layered.NetConn()
	}
	// A failure on the way means that there is nobody left to be polite to; only closing matters.
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil &&
		conn.SetReadDeadline(time.Now().Add(hangUpTimeout)) == nil {
		_, _ = io.CopyN(io.Discard, conn, hangUpBytes)
	}
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}
