package netserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	keepAlive    = 15 * time.Second
	probeTimeout = time.Second
)

// Listen opens a listener: TCP if address splits into host and port, otherwise a unix socket at
// that path. The socket file of a process that no longer exists is taken over; a file that is not
// a socket, or a socket that somebody may still answer, is left alone and fails the call.
func Listen(address string) (net.Listener, error) {
	network := "tcp"
	if _, _, err := net.SplitHostPort(address); err != nil {
		network = "unix"
	}
	listener, err := open(network, address)
	if network == "unix" && errors.Is(err, syscall.EADDRINUSE) && removeStale(address) {
		listener, err = open(network, address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen (%s) failed - %w", address, err)
	}
	return listener, nil
}

func open(network, address string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: keepAlive} // TCP_NODELAY is Go's default
	return config.Listen(context.Background(), network, address)
}

// removeStale removes the socket file at path if its owner is gone, and says whether it did.
// Only a refused connection proves that; a full backlog or missing permission does not.
func removeStale(path string) bool {
	before, err := os.Lstat(path)
	if err != nil || before.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	if err == nil {
		conn.Close()
		return false
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	// Another process may have taken the path over while we were asking.
	after, err := os.Lstat(path)
	return err == nil && os.SameFile(before, after) && os.Remove(path) == nil
}

// RemoteAddr is the peer's address as logs and statistics show it: "@" for every client of a unix
// socket, whose own name, if any, is of its choosing.
func RemoteAddr(conn net.Conn) string {
	addr := conn.RemoteAddr()
	if addr == nil || addr.Network() == "unix" {
		return "@"
	}
	return addr.String()
}
