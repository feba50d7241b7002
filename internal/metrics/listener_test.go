package metrics_test

import (
	"io"
	"net"
	"testing"

	"nsq/internal/metrics"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// accept makes a connection and returns both ends.
func accept(t *testing.T, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

func isPlain(conn net.Conn) bool { _, ok := conn.(*net.TCPConn); return ok }

// A gate counts what comes and what comes while the server is full, and leaves connections as they are.
func TestGate(t *testing.T) {
	for _, test := range []struct {
		limit   int
		refused uint64
	}{{0, 0}, {1, 2}, {2, 1}, {3, 0}} {
		open := 0
		gate := metrics.NewGate(listen(t), test.limit, func() int { return open })
		for ; open < 3; open++ {
			if _, server := accept(t, gate); !isPlain(server) {
				t.Error("the connection is wrapped")
			}
		}
		if gate.Accepted() != 3 || gate.Refused() != test.refused || gate.Open() != 3 {
			t.Errorf("limit %d: %d accepted, %d refused, %d open; want 3, %d, 3", test.limit, gate.Accepted(), gate.Refused(), gate.Open(), test.refused)
		}
		gate.Close()
		if _, err := gate.Accept(); err == nil || gate.Accepted() != 3 {
			t.Errorf("after the end: %v, %d accepted", err, gate.Accepted())
		}
	}
}

// A listener counts connections until they are closed, once each.
func TestListener(t *testing.T) {
	l := metrics.NewListener(listen(t), "http")
	if l.Name() != "http" {
		t.Errorf("name %q", l.Name())
	}
	_, first := accept(t, l)
	client, second := accept(t, l)
	if l.Accepted() != 2 || l.Open() != 2 {
		t.Errorf("%d accepted, %d open, want 2 and 2", l.Accepted(), l.Open())
	}
	first.Close()
	first.Close()
	if l.Accepted() != 2 || l.Open() != 1 {
		t.Errorf("%d accepted, %d open, want 2 and 1", l.Accepted(), l.Open())
	}
	if err := second.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the end of the answer is %v", err)
	}
	if l.Open() != 1 {
		t.Error("half closed counts as closed")
	}
	l.Close()
	if _, err := l.Accept(); err == nil || l.Accepted() != 2 {
		t.Errorf("after the end: %v, %d accepted", err, l.Accepted())
	}
}
