package lookup

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server is the nsqlookupd of a test, at the other end of a connection.
type server struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// wants fails the test unless exactly these bytes come next.
func (s *server) wants(bytes string) {
	s.t.Helper()
	got := make([]byte, len(bytes))
	if n, err := io.ReadFull(s.r, got); err != nil || string(got) != bytes {
		s.t.Errorf("server received %q, %v; want %q", got[:n], err, bytes)
	}
}

// sends writes raw bytes; a client that has gone is not the server's problem.
func (s *server) sends(data []byte) { _, _ = s.conn.Write(data) }

func (s *server) answers(text string) { s.sends(AppendFrame(nil, text)) }

func (s *server) ok(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		s.wants(line + "\n")
		s.answers(OK)
	}
}

// converse runs client against script over a real socket.
func converse(t *testing.T, options DialOptions, script func(*server), client func(*Conn)) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		s := &server{t, conn, bufio.NewReader(conn)}
		s.wants(Magic)
		script(s)
	}()
	c, err := Dial(t.Context(), listener.Addr().String(), options)
	if err != nil {
		t.Fatal(err)
	}
	client(c)
	c.Close()
	<-done
	listener.Close()
}

func TestConversation(t *testing.T) {
	id := Identity{BroadcastAddress: "b", Hostname: "h", HTTPPort: 2, TCPPort: 1, Version: "v"}
	script := func(s *server) {
		s.wants("IDENTIFY\n" + string(AppendFrame(nil, `{"broadcast_address":"b","hostname":"h","http_port":2,"tcp_port":1,"topology_region":"","topology_zone":"","version":"v"}`)))
		s.answers(`{"broadcast_address":"x","hostname":"y","http_port":4161,"tcp_port":4160,"version":"1.3.0","later":true}`)
		s.ok("REGISTER t", "REGISTER t c", "UNREGISTER t c", "UNREGISTER t", "PING")
	}
	converse(t, DialOptions{}, script, func(c *Conn) {
		info, err := c.Identify(id)
		if want := (PeerInfo{"x", "y", 4161, 4160, "1.3.0"}); err != nil || info != want {
			t.Errorf("Identify = %+v, %v; want %+v", info, err, want)
		}
		err = c.Update([]Change{
			{Registration: Registration{Topic: "t", Channel: ""}},
			{Registration: Registration{Topic: "t", Channel: "c"}},
			{Registration: Registration{Topic: "t", Channel: "c"}, Remove: true},
			{Registration: Registration{Topic: "t", Channel: ""}, Remove: true},
		})
		if err != nil {
			t.Errorf("Update: %v", err)
		}
		if err := c.Ping(); err != nil {
			t.Errorf("Ping: %v", err)
		}
	})
}

// Many changes go out in batches, each answered; the one that is refused is named.
func TestUpdateNamesTheRefusedCommand(t *testing.T) {
	var changes []Change
	for i := range 3 * batchSize {
		changes = append(changes, Change{Registration: Registration{Topic: fmt.Sprint("t", i)}})
	}
	refused := batchSize + 7
	script := func(s *server) {
		for i := range refused {
			s.ok(fmt.Sprint("REGISTER t", i))
		}
		s.wants(fmt.Sprintf("REGISTER t%d\n", refused))
		s.answers("E_BAD_TOPIC no")
	}
	converse(t, DialOptions{}, script, func(c *Conn) {
		err := c.Update(changes)
		var fault *Error
		if want := fmt.Sprintf("REGISTER t%d - E_BAD_TOPIC no", refused); err == nil || err.Error() != want || !errors.As(err, &fault) {
			t.Errorf("Update = %v, want %s", err, want)
		}
	})
}

func TestIdentifyAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer []byte
		check  func(error) bool
	}{
		{"E_INVALID", AppendFrame(nil, "E_INVALID"), func(err error) bool { return err == ErrInvalid }},
		{"other error", AppendFrame(nil, "E_INVALID x"), isIdentityError("E_INVALID x")},
		{"OK", AppendFrame(nil, OK), isIdentityError(OK)},
		{"wrong type", AppendFrame(nil, `{"tcp_port":"1"}`), isIdentityError(`{"tcp_port":"1"}`)},
		{"empty", AppendFrame(nil, ""), isIdentityError("")},
		{"no broadcast address", AppendFrame(nil, "{}"), func(err error) bool { return err == nil }},
		{"negative length", binary.BigEndian.AppendUint32(nil, 1<<31), says("is negative")},
		{"huge length", binary.BigEndian.AppendUint32(nil, 1<<31-1), says("is greater than limit (100)")},
		{"end", nil, func(err error) bool { return errors.Is(err, io.EOF) }},
		{"half", []byte{0, 0, 0, 9, '{'}, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			script := func(s *server) {
				command, _ := AppendIdentify(nil, Identity{})
				s.wants(string(command))
				s.sends(test.answer)
			}
			converse(t, DialOptions{MaxAnswer: 100}, script, func(c *Conn) {
				if _, err := c.Identify(Identity{}); !test.check(err) {
					t.Errorf("Identify = %v", err)
				}
			})
		})
	}
}

func says(text string) func(error) bool {
	return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
}

func isIdentityError(payload string) func(error) bool {
	return func(err error) bool {
		var bad *IdentityError
		return errors.As(err, &bad) && bad.Payload == payload
	}
}

// An idle connection learns at once that the peer is gone, or that it talks without being asked.
func TestIdleConnectionEnds(t *testing.T) {
	for name, script := range map[string]func(*server){
		"closed":  func(*server) {},
		"unasked": func(s *server) { s.answers(OK); s.wants("") },
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, DialOptions{}, script, func(c *Conn) {
				<-c.Ended()
				if err := c.Ping(); err == nil {
					t.Error("Ping succeeded on an ended connection")
				}
			})
		})
	}
}

// piped returns both ends of a connection in memory, which tests with a fake clock can use.
func piped(t *testing.T, options DialOptions) (*Conn, *server, error) {
	ours, theirs := net.Pipe()
	options.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	s := &server{t, theirs, bufio.NewReader(theirs)}
	go func() { _, _ = io.ReadFull(s.r, make([]byte, len(Magic))) }()
	c, err := Dial(t.Context(), "frozen:4160", options)
	synctest.Wait()
	return c, s, err
}

// A peer that answers nothing, or a byte now and then, costs the timeout and no more.
func TestFrozenPeer(t *testing.T) {
	for name, behaviour := range map[string]func(*server){
		"silent": func(s *server) { s.wants("PING\n") },
		"dripping": func(s *server) {
			s.wants("PING\n")
			for _, b := range AppendFrame(nil, strings.Repeat("x", 100)) {
				time.Sleep(300 * time.Millisecond)
				s.sends([]byte{b})
			}
		},
		"not reading": func(*server) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, err := piped(t, DialOptions{Timeout: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan struct{})
				go func() { defer close(done); behaviour(s) }()
				start := time.Now()
				if err := c.Ping(); err == nil {
					t.Error("Ping succeeded")
				}
				if waited := time.Since(start); waited != time.Second {
					t.Errorf("Ping took %s, want the timeout", waited)
				}
				c.Close()
				s.conn.Close()
				<-done
			})
		})
	}
}

// Close ends a command that is waiting, and may be called twice.
func TestCloseDuringCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, err := piped(t, DialOptions{Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() { failed <- c.Ping() }()
		s.wants("PING\n")
		c.Close()
		c.Close()
		if err := <-failed; err == nil {
			t.Error("Ping succeeded on a closed connection")
		}
		s.conn.Close()
	})
}

// A dial that hangs is given up after the timeout.
func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := Dial(t.Context(), "nowhere:4160", DialOptions{
			Timeout: time.Second,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Dial = %v after %s", err, time.Since(start))
		}
	})
}
