package httpd

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// Every way in which a /pub is refused, which of two is reported, and that none creates the topic.
func TestPubRefuses(t *testing.T) {
	n := start(t, 100)
	tooBig := strings.Repeat("x", maxMsgSize+1)
	tests := []struct {
		name, query, body string
		status            int
		code              string
	}{
		{"too big", "?topic=t", tooBig, 413, "MSG_TOO_BIG"},
		{"too big before all else", "?topic=%zz", tooBig, 413, "MSG_TOO_BIG"},
		{"empty", "?topic=t", "", 400, "MSG_EMPTY"},
		{"empty before the query", "?topic=%zz", "", 400, "MSG_EMPTY"},
		{"bad escape", "?topic=%zz", "x", 400, "INVALID_REQUEST"},
		{"semicolon", "?topic=t;defer=1", "x", 400, "INVALID_REQUEST"},
		{"no query", "", "x", 400, "MISSING_ARG_TOPIC"},
		{"no topic", "?topics=t&defer=no", "x", 400, "MISSING_ARG_TOPIC"},
		{"empty topic", "?topic=", "x", 400, "INVALID_TOPIC"},
		{"empty topic of two", "?topic=&topic=t", "x", 400, "INVALID_TOPIC"},
		{"bad topic", "?topic=a%2Fb", "x", 400, "INVALID_TOPIC"},
		{"bad topic before defer", "?topic=a*b&defer=no", "x", 400, "INVALID_TOPIC"},
		{"long topic", "?topic=" + strings.Repeat("a", 65), "x", 400, "INVALID_TOPIC"},
		{"defer without number", "?topic=t&defer=", "x", 400, "INVALID_DEFER"},
		{"defer as a duration", "?topic=t&defer=1s", "x", 400, "INVALID_DEFER"},
		{"defer with a fraction", "?topic=t&defer=1.5", "x", 400, "INVALID_DEFER"},
		{"negative defer", "?topic=t&defer=-1", "x", 400, "INVALID_DEFER"},
		{"defer over the limit", "?topic=t&defer=3600001", "x", 400, "INVALID_DEFER"},
		{"defer of over 32 bits", "?topic=t&defer=4294967297", "x", 400, "INVALID_DEFER"},
		{"defer that overflows as nanoseconds", "?topic=t&defer=18446744073710", "x", 400, "INVALID_DEFER"},
		{"defer that overflows", "?topic=t&defer=99999999999999999999", "x", 400, "INVALID_DEFER"},
	}
	for _, path := range []string{"/pub", "/put"} {
		for _, test := range tests {
			t.Run(path+" "+test.name, func(t *testing.T) {
				n.post(path+test.query, test.body).expectCode(t, test.status, test.code)
				n.send("POST", path+test.query, unsized{strings.NewReader(test.body)}).expectCode(t, test.status, test.code)
			})
		}
	}
	if topics := n.topicNames(); len(topics) > 0 {
		t.Errorf("refused requests created %q", topics)
	}
}

// A limit of over 49 days is more than a delay can say.
func TestPubRefusesADeferThatCannotBeKept(t *testing.T) {
	n := start(t, 100, func(c *Config) { c.MaxReqTimeout = 1 << 62 })
	n.post("/pub?topic=t&defer=4294967296", "x").expectCode(t, 400, "INVALID_DEFER")
	n.post("/pub?topic=t&defer=4294967295", "x").expect(t, 200, "OK")
}

// What is published arrives as it was sent, whichever way the body comes.
func TestPubKeepsTheBody(t *testing.T) {
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	bodies := []string{"x", string(binary), strings.Repeat("a", trusted), strings.Repeat("b", trusted+1), strings.Repeat("c", maxMsgSize)}
	for _, target := range []string{"/pub?topic=t", "/put?topic=t", "/pub?topic=t&topic=u", "/pub?a=b&topic=%74&defer=0"} {
		t.Run(target, func(t *testing.T) {
			n := start(t, 100)
			in := n.subscribe("t", "c", 100)
			for _, body := range bodies {
				n.post(target, body).expect(t, 200, "OK")
				n.send("POST", target, unsized{strings.NewReader(body)}).expect(t, 200, "OK")
			}
			in.expect(t, slices.Concat(bodies, bodies)...)
			if stats := n.topicStats("t"); stats.MessageCount != uint64(2*len(bodies)) {
				t.Errorf("message count %d", stats.MessageCount)
			}
		})
	}
}

func TestPubAnswersPlainText(t *testing.T) {
	n := start(t, 100)
	r := n.post("/pub?topic=t", "x")
	r.expect(t, 200, "OK")
	if got := r.header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if got := r.header.Get("X-NSQ-Content-Type"); got != "nsq; version=1.0" {
		t.Errorf("X-NSQ-Content-Type %q", got)
	}
}

func TestPubTakesEphemeralNames(t *testing.T) {
	n := start(t, 100)
	n.post("/pub?topic=a%23ephemeral", "x").expect(t, 200, "OK")
	// A client library would cut the fragment off.
	rest := n.raw("POST /pub?topic=b#ephemeral HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
	if !strings.HasPrefix(rest, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("answer %q", rest)
	}
	if got, want := n.topicNames(), []string{"a#ephemeral", "b#ephemeral"}; !slices.Equal(got, want) {
		t.Errorf("topics %q, want %q", got, want)
	}
}

// A deferred message waits on the channel, however its body came; with 0 it does not.
func TestPubDefers(t *testing.T) {
	n := start(t, 100)
	n.setUp("/topic/create?topic=t", "/channel/create?topic=t&channel=c")
	n.post("/pub?topic=t&defer=3600000", "x").expect(t, 200, "OK")
	n.post("/pub?topic=t&defer=%2B60000", strings.Repeat("x", maxMsgSize)).expect(t, 200, "OK")
	n.post("/pub?topic=t&defer=0", "x").expect(t, 200, "OK")
	eventually(t, "two messages are deferred and one waits", func() bool {
		c := n.topicStats("t").Channels[0]
		return c.DeferredCount == 2 && c.Depth == 1
	})
}

// raw sends bytes as they are, half-closes, and returns all that is answered.
func (n *node) raw(request string) string {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.server.Listener.Addr().String())
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		n.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		n.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(answer)
}

// A body that breaks off is an error of the server's, whatever is published that way.
func TestBrokenBodies(t *testing.T) {
	n := start(t, 100)
	const chunked = "Transfer-Encoding: chunked\r\n\r\n5\r\nab"
	tests := []struct {
		name, request string
		status        int
		code          string
	}{
		{"pub, declared", "/pub?topic=t|Content-Length: 5\r\n\r\nab", 500, "INTERNAL_ERROR"},
		{"pub, declared and large", "/pub?topic=t|Content-Length: 99000\r\n\r\nab", 500, "INTERNAL_ERROR"},
		{"pub, chunked", "/pub?topic=t|" + chunked, 500, "INTERNAL_ERROR"},
		{"pub, bad chunk", "/pub?topic=t|Transfer-Encoding: chunked\r\n\r\nzz\r\n", 500, "INTERNAL_ERROR"},
		{"pub, before the query", "/pub|" + chunked, 500, "INTERNAL_ERROR"},
		{"mpub, text", "/mpub?topic=m|" + chunked, 500, "INTERNAL_ERROR"},
		{"mpub, text with whole lines", "/mpub?topic=m|Content-Length: 9\r\n\r\na\nb\n", 500, "INTERNAL_ERROR"},
		{"mpub, binary", "/mpub?topic=m&binary=1|" + chunked, 413, "BAD_BODY"},
		{"config", "/config/log_level|" + chunked, 500, "INTERNAL_ERROR"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			method := "POST"
			if strings.HasPrefix(test.request, "/config/") {
				method = "PUT"
			}
			target, rest, _ := strings.Cut(test.request, "|")
			answer := n.raw(method + " " + target + " HTTP/1.1\r\nHost: h\r\n" + rest)
			resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
			if err != nil {
				t.Fatalf("answer %q: %v", answer, err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			reply{resp.StatusCode, resp.Header, string(body)}.expectCode(t, test.status, test.code)
		})
	}
	if got, want := n.topicNames(), []string{"m"}; !slices.Equal(got, want) {
		t.Errorf("topics %q, want %q", got, want)
	}
	if got := n.topicStats("m").MessageCount; got != 0 {
		t.Errorf("%d messages of broken bodies were published", got)
	}
}

// A topic that goes away, and one whose disk fails, refuse in the same words; the log tells them apart.
func TestPublishFailures(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		n := start(t, 0)
		n.setUp("/topic/create?topic=t")
		n.breakDisk()
		for _, target := range []string{"/pub?topic=t", "/mpub?topic=t"} {
			n.post(target, "x").expectCode(t, 503, "EXITING")
		}
		if got := strings.Count(n.log.String(), "ERROR: failed to publish to topic t - "); got != 2 {
			t.Errorf("%d failures in the log, want 2:\n%s", got, n.log)
		}
		if got := n.topicStats("t").MessageCount; got != 0 {
			t.Errorf("message count %d", got)
		}
	})
	t.Run("closed", func(t *testing.T) {
		n := start(t, 100)
		n.setUp("/topic/create?topic=t")
		if err := n.broker.Close(); err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"/pub?topic=t", "/mpub?topic=t", "/pub?topic=new", "/mpub?topic=new"} {
			n.post(target, "x").expectCode(t, 503, "EXITING")
		}
		if strings.Contains(n.log.String(), "ERROR") {
			t.Errorf("the log has errors:\n%s", n.log)
		}
	})
}

// replay is a body that can be sent again and again.
type replay struct{ strings.Reader }

func (*replay) Close() error { return nil }

// discard is an answer that nobody reads.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkPub(b *testing.B) {
	for _, size := range []int{200, trusted, maxMsgSize} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n := start(b, 1)
			// Without room and without a disk that keeps it nothing piles up.
			handler := n.server.Config.Handler
			text := strings.Repeat("x", size)
			body := new(replay)
			req := httptest.NewRequest("POST", "/pub?topic=t%23ephemeral", nil)
			req.URL.RawQuery = "topic=t#ephemeral"
			req.Body, req.ContentLength = body, int64(size)
			w := &discard{header: make(http.Header)}
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				body.Reset(text)
				handler.ServeHTTP(w, req)
			}
			if got := n.topicStats("t#ephemeral").MessageCount; got != uint64(b.N) {
				b.Errorf("published %d of %d", got, b.N)
			}
		})
	}
}
