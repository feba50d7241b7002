package httpx

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/log"
)

// pipeListener accepts pipes, whose time a test controls.
type pipeListener struct {
	accepts chan net.Conn
	closed  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepts:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.closed:
		return net.ErrClosed
	default:
		close(l.closed)
		return nil
	}
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// timed is a server in a bubble of its own time.
type timed struct {
	t        *testing.T
	server   *Server
	listener *pipeListener
}

// startInTime is start within a bubble.
func startInTime(t *testing.T, handler http.HandlerFunc) *timed {
	s := &timed{t: t, listener: &pipeListener{accepts: make(chan net.Conn), closed: make(chan struct{})}}
	s.server = NewServer(s.listener, handler, log.Discard(), "HTTP")
	run(t, s.server)
	return s
}

// inTime runs test with a server whose clock stands still while anything can still happen.
func inTime(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, s *timed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, startInTime(t, handler)) })
}

func (s *timed) dial() *peer {
	client, conn := net.Pipe()
	s.listener.accepts <- conn
	p := &peer{t: s.t, Conn: client}
	p.reader = bufio.NewReader(io.TeeReader(client, &p.raw))
	return p
}

// ended waits for the end of the connection and says how long that took.
func (p *peer) ended() time.Duration {
	p.t.Helper()
	start := time.Now()
	p.expectEnd()
	return time.Since(start)
}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "OK") }

const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

func TestPeersCannotHoldConnections(t *testing.T) {
	for _, test := range []struct {
		name, send string
		want       time.Duration
	}{
		{"nothing sent", "", headerTimeout},
		{"half a header", "GET / HTTP/1.1\r\nHost: h\r\n", headerTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			inTime(t, ok, func(t *testing.T, s *timed) {
				p := s.dial()
				p.send(test.send)
				if took := p.ended(); took != test.want {
					t.Errorf("ended after %s, want %s", took, test.want)
				}
			})
		})
	}
	t.Run("idle", func(t *testing.T) {
		inTime(t, ok, func(t *testing.T, s *timed) {
			p := s.dial()
			p.send(get)
			p.receive("GET")
			time.Sleep(idleTimeout - time.Second)
			p.send(get)
			p.receive("GET")
			if took := p.ended(); took != idleTimeout {
				t.Errorf("ended after %s", took)
			}
		})
	})
	t.Run("half a second header", func(t *testing.T) {
		inTime(t, ok, func(t *testing.T, s *timed) {
			p := s.dial()
			p.send(get + "GET / HTTP/1.1\r\n")
			p.receive("GET")
			if took := p.ended(); took != headerTimeout {
				t.Errorf("ended after %s", took)
			}
		})
	})
}

// readAll answers what came and the error that ended it.
func readAll(w http.ResponseWriter, req *http.Request) {
	body, err := ReadBody(req, 1<<20)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Write(body)
}

func post(length string, body string) string {
	return "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + length + "\r\n\r\n" + body
}

func chunked(size int) string {
	const piece = 1000
	var b strings.Builder
	b.WriteString("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
	for ; size > 0; size -= piece {
		b.WriteString("3e8\r\n" + strings.Repeat("x", piece) + "\r\n")
	}
	b.WriteString("0\r\n\r\n")
	return b.String()
}

func TestBodyMayBeSlowButNotStall(t *testing.T) {
	inTime(t, readAll, func(t *testing.T, s *timed) {
		slow := s.dial()
		slow.send(post("20", ""))
		for range 20 {
			time.Sleep(stallTimeout - stallTimeout/8)
			slow.send("x")
		}
		if got := slow.receive("POST"); !strings.HasSuffix(got, strings.Repeat("x", 20)) {
			t.Errorf("slow upload: %q", got)
		}

		stalled := s.dial()
		stalled.send(post("20", "xxx"))
		start := time.Now()
		got := stalled.receive("POST")
		if took := time.Since(start); took != stallTimeout {
			t.Errorf("stalled upload ended after %s", took)
		}
		if !strings.HasPrefix(got, "HTTP/1.1 500 ") || !strings.Contains(got, "Connection: close\r\n") {
			t.Errorf("stalled upload: %q", got)
		}
		if took := stalled.ended(); took > leaveTimeout {
			t.Errorf("connection lives on for %s", took)
		}
	})
}

// Once the body is there the handler has all the time it wants.
func TestHandlerMayBeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interrupted := make(chan error, 1)
		s := startInTime(t, func(w http.ResponseWriter, req *http.Request) {
			readAll(w, req)
			time.Sleep(time.Hour)
			interrupted <- req.Context().Err()
		})
		p := s.dial()
		p.send(post("5", "hello"))
		if got := p.receive("POST"); !strings.HasSuffix(got, "hello") {
			t.Errorf("got %q", got)
		}
		if err := <-interrupted; err != nil {
			t.Errorf("request was interrupted: %v", err)
		}
	})
}

func TestUnusedBody(t *testing.T) {
	for _, test := range []struct {
		name, request string
		kept          bool
		wait          time.Duration // until the answer
	}{
		{"small", post("5", "hello"), true, 0},
		{"at the limit", post("65536", strings.Repeat("x", 65536)), true, 0},
		{"over the limit", post("65537", ""), false, 0},
		{"chunked", chunked(65000), true, 0},
		{"chunked, over the limit", chunked(66000), false, 0},
		{"never sent", post("5", "hell"), false, drainTimeout},
		{"waiting for our word", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inTime(t, ok, func(t *testing.T, s *timed) {
				p := s.dial()
				go io.WriteString(p, test.request) // a pipe takes no more than is read
				start := time.Now()
				got := p.receive("POST")
				if took := time.Since(start); took != test.wait {
					t.Errorf("answer came after %s, want %s", took, test.wait)
				}
				if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || strings.Contains(got, "Connection: close") == test.kept {
					t.Errorf("answer is %q", got)
				}
				if test.kept {
					p.send(get)
					p.receive("GET")
				} else if took := p.ended(); took > leaveTimeout {
					t.Errorf("connection lives on for %s", took)
				}
			})
		})
	}
}

// A body that was refused while it arrived leaves the connection in a defined state.
func TestRefusedBody(t *testing.T) {
	handler := func(w http.ResponseWriter, req *http.Request) {
		if _, err := ReadBody(req, 10); !errors.Is(err, ErrTooBig) {
			t.Errorf("ReadBody: %v", err)
		}
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}
	inTime(t, handler, func(t *testing.T, s *timed) {
		p := s.dial()
		for range 2 {
			p.send(chunked(2000))
			if got := p.receive("POST"); !strings.HasPrefix(got, "HTTP/1.1 413 ") || strings.Contains(got, "close") {
				t.Errorf("got %q", got)
			}
		}
		go io.WriteString(p, chunked(1_000_000))
		if got := p.receive("POST"); !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "Connection: close") {
			t.Errorf("got %q", got)
		}
		p.ended()
	})
}

func TestExpectContinue(t *testing.T) {
	inTime(t, readAll, func(t *testing.T, s *timed) {
		p := s.dial()
		p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		const word = "HTTP/1.1 100 Continue\r\n\r\n"
		got := make([]byte, len(word))
		if _, err := io.ReadFull(p.reader, got); string(got) != word {
			t.Fatalf("got %q, %v", got, err)
		}
		p.send("hello")
		if got := p.receive("POST"); !strings.HasSuffix(got, "\r\n\r\nhello") || strings.Contains(got, "close") {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnswerMustBeRead(t *testing.T) {
	const size = 10 * writePiece
	handler := func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) }
	inTime(t, handler, func(t *testing.T, s *timed) {
		slow := s.dial()
		slow.send(get)
		resp, err := http.ReadResponse(slow.reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for ; err == nil; time.Sleep(stallTimeout / 16) {
			var n int64
			n, err = io.CopyN(io.Discard, resp.Body, writePiece/8)
			got += int(n)
		}
		if got != size || err != io.EOF {
			t.Errorf("slow reader got %d bytes, %v", got, err)
		}

		stalled := s.dial()
		stalled.send(get)
		time.Sleep(stallTimeout + time.Second)
		if _, err := io.ReadAll(stalled); err != nil { // what was buffered, then the end
			t.Error(err)
		}
	})
}

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("out of order") }

func TestServeReportsPermanentError(t *testing.T) {
	s := NewServer(brokenListener{listen(t)}, http.NotFoundHandler(), log.Discard(), "HTTP")
	if err := s.Serve(); err == nil || err.Error() != "http.Serve() error - out of order" {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestServerLog(t *testing.T) {
	logs := new(logBuffer)
	s := NewServer(listen(t), http.NotFoundHandler(), logs.logger(), "HTTPS")
	served := make(chan error)
	go func() { served <- s.Serve() }()
	eventually(t, "the start is logged", func() bool {
		return logs.count("INFO: HTTPS: listening on "+s.Addr().String()) == 1
	})
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if logs.count("INFO: HTTPS: closing "+s.Addr().String()) != 1 {
		t.Errorf("log: %q", logs.Log())
	}
}

// What the library answers on its own account is part of the contract too.
func TestMalformedRequests(t *testing.T) {
	s := start(t, http.HandlerFunc(ok), log.Discard())
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n":            "HTTP/1.1 400 Bad Request: missing required Host header\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request: missing required Host header",
		"nonsense\r\n\r\n":                  "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request",
		"GET / HTTP/1.0\r\n\r\n":            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nOK",
		"GET / HTTP/2.0\r\nHost: h\r\n\r\n": "HTTP/1.1 505 HTTP Version Not Supported: unsupported protocol version\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n505 HTTP Version Not Supported: unsupported protocol version",
		"GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 1<<20+8192): "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n431 Request Header Fields Too Large",
	} {
		p := dial(t, s)
		go io.WriteString(p, request)
		got := make([]byte, 4096)
		n, err := io.ReadAtLeast(p, got, len(want))
		if text := date.ReplaceAllString(string(got[:n]), ""); text != want {
			t.Errorf("%.40q\ngot  %q, %v\nwant %q", request, text, err, want)
		}
	}
}

// testCertificate borrows one from the standard library.
func testCertificate(t *testing.T) *httptest.Server {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func TestTLS(t *testing.T) {
	logs := new(logBuffer)
	lender := testCertificate(t)
	handler := func(w http.ResponseWriter, req *http.Request) {
		if req.TLS == nil {
			t.Error("the handler does not see TLS")
		}
		readAll(w, req)
	}
	s := NewTLSServer(listen(t), lender.TLS, http.HandlerFunc(handler), logs.logger(), "HTTPS")
	run(t, s)

	roots := lender.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{
		RootCAs: roots, ServerName: "example.com", NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if proto := conn.ConnectionState().NegotiatedProtocol; proto != "" {
		t.Errorf("negotiated %q, want no protocol", proto)
	}
	p := &peer{t: t, Conn: conn}
	p.reader = bufio.NewReader(io.TeeReader(conn, &p.raw))
	p.send(post("5", "hello"))
	if got := p.receive("POST"); !strings.HasSuffix(got, "hello") {
		t.Errorf("got %q", got)
	}

	plain := dial(t, s)
	plain.send(get)
	got, err := io.ReadAll(plain)
	if want := "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"; string(got) != want {
		t.Errorf("plain request got %q, %v", got, err)
	}
	eventually(t, "the library's message is a warning", func() bool {
		return logs.count("WARNING: http: TLS handshake error from "+plain.LocalAddr().String()+": .*") == 1
	})
}

// Router and server together: a refused upload gets its error code.
func TestRefusedUploadGetsItsCode(t *testing.T) {
	r := NewRouter(log.Discard())
	r.API("POST", "/pub", func(req *http.Request, _ httprouter.Params) (any, error) {
		if _, err := ReadBody(req, 100); errors.Is(err, ErrTooBig) {
			return nil, &Error{Status: 413, Message: "MSG_TOO_BIG"}
		}
		return "OK", nil
	})
	p := dial(t, start(t, r, log.Discard()))
	p.send("POST /pub HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
	want := "HTTP/1.1 413 Request Entity Too Large\r\nConnection: close\r\n" + jsonType + nsqLine +
		"Content-Length: 25\r\n\r\n" + `{"message":"MSG_TOO_BIG"}`
	if got := p.receive("POST"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	p.expectEnd()
}
