package httpx

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/log"
)

// A layer above, such as the goodbye of TLS, may want to be quicker than we are.
func TestWriteDeadlineOfOthersIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, raw := net.Pipe()
		defer client.Close()
		c := &conn{Conn: raw, tracker: newConnTracker(nil)}
		defer c.Close()
		for _, test := range []struct {
			set  func(time.Time) error
			own  time.Duration // 0 is none
			want time.Duration
		}{
			{c.SetWriteDeadline, 5 * time.Second, 5 * time.Second},
			{c.SetWriteDeadline, 0, stallTimeout},
			{c.SetDeadline, time.Second, time.Second},
			{c.SetDeadline, 0, stallTimeout},
		} {
			var deadline time.Time
			if test.own > 0 {
				deadline = time.Now().Add(test.own)
			}
			if err := test.set(deadline); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err := c.Write([]byte("x"))
			if took := time.Since(start); took != test.want || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("deadline %s: write ended after %s with %v", test.own, took, err)
			}
		}
	})
}

// Streaming handlers flush through all our layers, and may break an answer off without a log line.
func TestRawHandlerFlushesAndAborts(t *testing.T) {
	logs := new(logBuffer)
	seen := make(chan struct{})
	r := NewRouter(logs.logger())
	r.Raw("POST", "/stream", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
		io.WriteString(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		<-seen
		panic(http.ErrAbortHandler)
	})
	p := dial(t, start(t, r, logs.logger()))
	p.send("POST /stream HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
	resp, err := http.ReadResponse(p.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, got); string(got) != "first" {
		t.Errorf("got %q, %v", got, err)
	}
	close(seen)
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after the abort: %v", err)
	}
	if n := logs.count("(ERROR|WARNING).*"); n != 0 {
		t.Errorf("log: %q", logs.Log())
	}
}

func TestUnixClientInAccessLog(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	logs := new(logBuffer)
	s := NewServer(listener, testRouter(logs.logger()), log.Discard(), "HTTP")
	run(t, s)
	raw, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := io.WriteString(raw, "GET /ping HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(raw); !strings.HasSuffix(string(got), "OK") {
		t.Errorf("got %q, %v", got, err)
	}
	if logs.count(`INFO: 200 GET /ping \(@\) .*`) != 1 {
		t.Errorf("log: %q", logs.Log())
	}
}
