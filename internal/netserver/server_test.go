package netserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const magic = "  V2"

// start serves config on a new listener until the end of the test.
func start(t *testing.T, address string, config Config) *Server {
	t.Helper()
	listener, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	s := New(listener, config)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // that of t is over
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); string(got) != want {
		t.Fatalf("read %q, want %q: %v", got[:n], want, err)
	}
}

// expectEnd wants the connection closed, and not reset, with nothing more sent.
func expectEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if got, err := io.ReadAll(conn); len(got) != 0 || err != nil {
		t.Fatalf("read %q and %v, want the end", got, err)
	}
}

// echo is a protocol that sends back what it gets.
func echo(conn net.Conn) { io.Copy(conn, conn) }

func TestProtocolByMagic(t *testing.T) {
	logs := new(logBuffer)
	s := start(t, "127.0.0.1:0", Config{
		Log: logs.logger(),
		Protocols: map[string]func(net.Conn){
			magic:  echo,
			"  V1": func(conn net.Conn) { io.WriteString(conn, "one") },
		},
	})
	two, one := dial(t, s), dial(t, s)
	send(t, two, "  V2pipelined")
	expect(t, two, "pipelined")
	for _, piece := range []string{" ", " ", "V", "1"} {
		send(t, one, piece)
	}
	expect(t, one, "one")
	expectEnd(t, one)
	send(t, two, "still here")
	expect(t, two, "still here")

	logs.mustHave(t, "INFO: TCP: listening on "+s.Addr().String())
	logs.mustHave(t, "INFO: TCP: new client("+two.LocalAddr().String()+")")
	logs.mustHave(t, "INFO: CLIENT("+two.LocalAddr().String()+"): desired protocol magic '  V2'")
}

func TestUnknownMagicIsRejected(t *testing.T) {
	logs := new(logBuffer)
	reject := "\x00\x00\x00\x12\x00\x00\x00\x01E_BAD_PROTOCOL"
	s := start(t, "127.0.0.1:0", Config{
		Log:       logs.logger(),
		Protocols: map[string]func(net.Conn){magic: echo},
		Reject:    []byte(reject),
	})
	for sent, logged := range map[string]string{
		"GET ":                              "GET ",
		"  v2":                              "  v2",
		"\x16\x03\x01\n":                    `\x16\x03\x01\x0a`,
		"POST / HTTP/1.1 ":                  "POST",
		"  V3" + strings.Repeat("x", 4<<20): "  V3", // more than the socket buffers take
	} {
		conn := dial(t, s)
		send(t, conn, sent)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
		expect(t, conn, reject)
		expectEnd(t, conn)
		logs.mustHave(t, "ERROR: client("+conn.LocalAddr().String()+") bad protocol magic '"+logged+"'")
	}
}

func TestShortMagicIsClosedSilently(t *testing.T) {
	s := start(t, "127.0.0.1:0", Config{Reject: []byte("no")})
	for _, sent := range []string{"", " ", "  V"} {
		conn := dial(t, s)
		send(t, conn, sent)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
		expectEnd(t, conn)
	}
	eventually(t, "no connections are left", func() bool { return s.Conns() == 0 })
}

// fakeListener accepts what the test sends, an error or a connection.
type fakeListener struct {
	accepts chan any
	closed  chan struct{}
}

func newFakeListener() *fakeListener {
	return &fakeListener{accepts: make(chan any), closed: make(chan struct{})}
}

func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case accepted := <-l.accepts:
		if err, failed := accepted.(error); failed {
			return nil, err
		}
		return accepted.(net.Conn), nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *fakeListener) Close() error   { close(l.closed); return nil }
func (l *fakeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestHandshakeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newFakeListener()
		read := make(chan string)
		s := New(listener, Config{Protocols: map[string]func(net.Conn){magic: func(conn net.Conn) {
			text, _ := io.ReadAll(conn)
			read <- string(text)
		}}})
		go s.Serve()
		defer s.Close(t.Context())

		silent, served := net.Pipe()
		listener.accepts <- served
		start := time.Now()
		go io.WriteString(silent, "  V") // does not buy more time
		if _, err := io.ReadAll(silent); err != nil {
			t.Error(err)
		}
		if elapsed := time.Since(start); elapsed != 10*time.Second {
			t.Errorf("closed after %s", elapsed)
		}

		late, served := net.Pipe()
		listener.accepts <- served
		time.Sleep(9 * time.Second)
		io.WriteString(late, magic)
		time.Sleep(time.Hour) // the deadline was for the magic alone
		io.WriteString(late, "late")
		late.Close()
		if got := <-read; got != "late" {
			t.Errorf("handler read %q", got)
		}
	})
}

func TestTemporaryAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := new(logBuffer)
		listener := newFakeListener()
		s := New(listener, Config{Log: logs.logger(), Protocols: map[string]func(net.Conn){magic: echo}})
		served := make(chan error)
		go func() { served <- s.Serve() }()

		full := &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
		listener.accepts <- full
		var pauses []time.Duration
		for range 10 {
			before := time.Now()
			listener.accepts <- full
			pauses = append(pauses, time.Since(before))
		}
		for i, pause := range pauses {
			if want := min(5*time.Millisecond<<i, time.Second); pause != want {
				t.Errorf("pause %d is %s, want %s", i, pause, want)
			}
		}
		if n := logs.count("WARNING: temporary Accept() failure - accept tcp: too many open files"); n != 1 {
			t.Errorf("%d warnings in the first seconds, want 1", n)
		}
		for range 10 {
			listener.accepts <- full
		}
		if n := logs.count("temporary Accept() failure"); n != 2 {
			t.Errorf("%d warnings after ten more seconds, want 2", n)
		}

		client, conn := net.Pipe()
		defer client.Close()
		listener.accepts <- conn
		io.WriteString(client, magic)
		io.WriteString(client, "x")
		expect(t, client, "x")
		listener.accepts <- full // after a success the pauses are short again
		before := time.Now()
		listener.accepts <- full
		if pause := time.Since(before); pause != 5*time.Millisecond {
			t.Errorf("pause after a success is %s", pause)
		}

		// A stop does not wait for a pause to end.
		before = time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; err != nil || time.Since(before) != 0 {
			t.Errorf("Serve ended after %s: %v", time.Since(before), err)
		}
	})
}

func TestPermanentAcceptError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newFakeListener()
		s := New(listener, Config{})
		defer s.Close(t.Context())
		served := make(chan error)
		go func() { served <- s.Serve() }()
		listener.accepts <- errors.New("out of order")
		if err := <-served; err == nil || err.Error() != "listener.Accept() error - out of order" {
			t.Errorf("Serve: %v", err)
		}
	})
}

func TestMaxConns(t *testing.T) {
	logs := new(logBuffer)
	s := start(t, "127.0.0.1:0", Config{
		MaxConns:  2,
		Log:       logs.logger(),
		Protocols: map[string]func(net.Conn){magic: echo},
	})
	first, silent := dial(t, s), dial(t, s) // one in handshake counts too
	send(t, first, "  V2a")
	expect(t, first, "a")
	eventually(t, "two connections are counted", func() bool { return s.Conns() == 2 })
	for range 5 {
		refused := dial(t, s)
		expectEnd(t, refused)
	}
	if n := logs.count("WARNING: TCP: refusing client"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
	send(t, first, "b")
	expect(t, first, "b")

	silent.Close()
	eventually(t, "a connection is free", func() bool { return s.Conns() == 1 })
	third := dial(t, s)
	send(t, third, "  V2c")
	expect(t, third, "c")
}

func TestPanicIsConfined(t *testing.T) {
	logs := new(logBuffer)
	s := start(t, "127.0.0.1:0", Config{Log: logs.logger(), Protocols: map[string]func(net.Conn){
		magic:  echo,
		"BOOM": func(net.Conn) { panic("at the disco") },
	}})
	healthy, doomed := dial(t, s), dial(t, s)
	send(t, healthy, magic)
	send(t, doomed, "BOOM")
	expectEnd(t, doomed)
	send(t, healthy, "x")
	expect(t, healthy, "x")
	eventually(t, "the panic is logged with its stack", func() bool {
		return logs.count("ERROR: client("+doomed.LocalAddr().String()+") panic - at the disco goroutine ") == 1 &&
			logs.count("server_test.go") == 1
	})
}

func TestCloseEndsEveryConnection(t *testing.T) {
	logs := new(logBuffer)
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Int32
	s := New(listener, Config{Log: logs.logger(), Protocols: map[string]func(net.Conn){magic: func(conn net.Conn) {
		echo(conn)
		ended.Add(1)
	}}})
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()

	silent, half, busy := dial(t, s), dial(t, s), dial(t, s)
	send(t, half, " ")
	send(t, busy, "  V2x")
	expect(t, busy, "x")
	eventually(t, "all are accepted", func() bool { return s.Conns() == 3 })

	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if ended.Load() != 1 || s.Conns() != 0 {
		t.Errorf("Close returned with %d of 1 handlers ended, %d connections left", ended.Load(), s.Conns())
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, conn := range []net.Conn{silent, half, busy} {
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a connection is still open: %v", err)
		}
	}
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("the listener still accepts")
	}
	logs.mustHave(t, "INFO: TCP: closing "+listener.Addr().String())
	if n := logs.count("ERROR"); n != 0 {
		t.Errorf("a stop is no error: %q", logs.Log())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	s := start(t, "127.0.0.1:0", Config{Protocols: map[string]func(net.Conn){magic: func(net.Conn) {
		close(running)
		<-release
	}}})
	stuck := dial(t, s)
	send(t, stuck, magic)
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	expectEnd(t, stuck)
	close(release)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close with time to wait: %v", err)
	}
}

// A connection that was accepted just before the listener was closed is not left behind.
func TestConnectionAcceptedDuringStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(newFakeListener(), Config{})
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		client, conn := net.Pipe()
		s.admit(conn, new(throttle))
		if _, err := client.Read(make([]byte, 1)); err != io.EOF || s.Conns() != 0 {
			t.Errorf("connection is still open: %v", err)
		}
	})
}

func TestUnixClientsAreNameless(t *testing.T) {
	logs := new(logBuffer)
	folder := t.TempDir()
	s := start(t, filepath.Join(folder, "s"), Config{
		Log:       logs.logger(),
		Protocols: map[string]func(net.Conn){magic: echo},
		Reject:    []byte("no"),
	})
	conn := dial(t, s)
	send(t, conn, "  V2x")
	expect(t, conn, "x")
	logs.mustHave(t, "INFO: TCP: new client(@)")

	named, err := net.DialUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, "me")}, s.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	send(t, named, "  V9")
	expect(t, named, "no")
	logs.mustHave(t, "ERROR: client(@) bad protocol magic '  V9'")
}

// Whatever the first bytes are, the server answers with its rejection, the protocol, or nothing,
// and lives on.
func FuzzMagic(f *testing.F) {
	f.Add([]byte("  V2hello"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) {
			listener := newFakeListener()
			s := New(listener, Config{Reject: []byte("no"), Protocols: map[string]func(net.Conn){magic: echo}})
			go s.Serve()
			defer s.Close(t.Context())
			client, conn := net.Pipe()
			listener.accepts <- conn
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				client.Write(input)
				time.Sleep(time.Minute)
				client.Close()
			}()
			got, err := io.ReadAll(client)
			if err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("read: %v", err)
			}
			<-sent
			want := []byte("no")
			if rest, ok := bytes.CutPrefix(input, []byte(magic)); ok {
				want = rest
			} else if len(input) < magicSize {
				want = nil
			}
			if !bytes.Equal(got, want) {
				t.Errorf("sent %q, got %q, want %q", input, got, want)
			}
		})
	})
}
