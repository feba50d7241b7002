package httpx

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer is a log.
type logBuffer struct{ testutil.Buffer }

func (b *logBuffer) logger() *log.Logger { return log.New(b, "", log.Info) }

// count is how many lines match the whole of pattern.
func (b *logBuffer) count(pattern string) (n int) {
	matcher := regexp.MustCompile("^(?:" + pattern + ")$")
	for _, line := range b.Log() {
		if matcher.MatchString(line) {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// start serves handler until the end of the test.
func start(t *testing.T, handler http.Handler, logger *log.Logger) *Server {
	t.Helper()
	s := NewServer(listen(t), handler, logger, "HTTP")
	run(t, s)
	return s
}

func run(t *testing.T, s *Server) {
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
}

// peer is one connection of a client that knows nothing of HTTP.
type peer struct {
	t *testing.T
	net.Conn
	raw    bytes.Buffer // all that was received
	reader *bufio.Reader
}

func dial(t *testing.T, s *Server) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, Conn: conn}
	p.reader = bufio.NewReader(io.TeeReader(conn, &p.raw))
	return p
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Fatal(err)
	}
}

var date = regexp.MustCompile(`Date: [^\r]*\r\n`)

// receive returns the bytes of the next answer, without its Date.
func (p *peer) receive(method string) string {
	p.t.Helper()
	p.raw.Reset()
	resp, err := http.ReadResponse(p.reader, &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		p.t.Fatalf("broken answer %q: %v", p.raw.String(), err)
	}
	return date.ReplaceAllString(p.raw.String(), "")
}

// request sends a request without body and returns the bytes of its answer.
func (p *peer) request(method, target string) string {
	p.t.Helper()
	p.send(method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")
	return p.receive(method)
}

// expectEnd wants the connection closed with nothing more sent.
func (p *peer) expectEnd() {
	p.t.Helper()
	if got, err := io.ReadAll(p.reader); len(got) != 0 || err != nil {
		p.t.Fatalf("read %q and %v, want the end", got, err)
	}
}
