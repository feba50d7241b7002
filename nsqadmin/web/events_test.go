package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nsq/nsqadmin/monitor"
)

// client is the far end of an event stream. While it is stuck, writes to it take until their deadline.
type client struct {
	header http.Header
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	text     strings.Builder // guarded by mu
	status   int             // guarded by mu
	stuck    bool            // guarded by mu
	deadline time.Time       // guarded by mu
}

func (c *client) Header() http.Header { return c.header }
func (c *client) Flush()              {}

func (c *client) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *client) SetWriteDeadline(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = deadline
	return nil
}

func (c *client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stuck {
		time.Sleep(time.Until(c.deadline)) // of the bubble's clock
		return 0, os.ErrDeadlineExceeded
	}
	return c.text.Write(p)
}

// received takes what has come since it was last asked.
func (c *client) received() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.text.String()
	c.text.Reset()
	return text
}

// gone says whether the stream has ended.
func (c *client) gone() bool {
	synctest.Wait()
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// stream opens an event stream.
func stream(handler http.Handler, lastID string) *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{header: http.Header{}, cancel: cancel, ended: make(chan struct{})}
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	go func() {
		defer close(c.ended)
		handler.ServeHTTP(c, req)
	}()
	return c
}

func at(seq uint64) *monitor.Snapshot { return &monitor.Snapshot{Seq: seq} }

// A browser is told of the snapshot that is there, of each later one, and now and then that the stream
// is alive; when it goes, the stream ends.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := stream(New(f.config), "")
		if got, want := c.received(), "retry: 3000\n\nid: 7\nevent: snapshot\ndata: 7\n\n"; got != want {
			t.Errorf("first %q, want %q", got, want)
		}
		f.show(at(8))
		if got, want := c.received(), "id: 8\nevent: snapshot\ndata: 8\n\n"; got != want {
			t.Errorf("then %q, want %q", got, want)
		}
		time.Sleep(beat)
		if got := c.received(); got != ":\n\n" {
			t.Errorf("without news %q", got)
		}
		if kind := c.header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("type %q", kind)
		}
		c.cancel()
		if !c.gone() {
			t.Error("the stream outlives its client")
		}
	})
}

// Who comes back is told only of what they have not seen; a number from before a restart is not seen.
func TestEventsAfterReconnect(t *testing.T) {
	for lastID, want := range map[string]bool{"7": false, "6": true, "99": true, "x": true, "": true} {
		synctest.Test(t, func(t *testing.T) {
			c := stream(New(newFake().config), lastID)
			if got := strings.Contains(c.received(), "id: 7\n"); got != want {
				t.Errorf("after %q the snapshot is told: %v", lastID, got)
			}
			c.cancel()
			if !c.gone() {
				t.Error("the stream outlives its client")
			}
		})
	}
}

// A client that accepts nothing loses its stream after the time for one write; nothing is kept for it,
// and the others do not notice.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		handler := New(f.config)
		slow, quick := stream(handler, ""), stream(handler, "")
		slow.received()
		quick.received()
		slow.mu.Lock()
		slow.stuck = true
		slow.mu.Unlock()
		f.show(at(8))
		if got := quick.received(); got != "id: 8\nevent: snapshot\ndata: 8\n\n" {
			t.Errorf("beside a slow client: %q", got)
		}
		time.Sleep(writeTimeout - time.Second)
		select {
		case <-slow.ended:
			t.Error("the slow client had no time")
		default:
		}
		time.Sleep(2 * time.Second)
		if !slow.gone() || quick.gone() {
			t.Error("not only the slow client is gone")
		}
		quick.cancel()
		quick.gone()
	})
}

// Streams end when the server stops, which would otherwise wait for them.
func TestEventsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		stopping := make(chan struct{})
		f.config.Stopping = stopping
		c := stream(New(f.config), "")
		if c.gone() {
			t.Fatal("ended too early")
		}
		close(stopping)
		if !c.gone() {
			t.Error("the stream outlives the server")
		}
		c.cancel()
	})
}

// There are only so many streams; the browsers beyond ask by a timer.
func TestTooManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := New(newFake().config)
		clients := make([]*client, maxStreams)
		for i := range clients {
			clients[i] = stream(handler, "7")
		}
		synctest.Wait()
		beyond := stream(handler, "7")
		if !beyond.gone() || beyond.status != http.StatusServiceUnavailable {
			t.Errorf("one more is answered %d", beyond.status)
		}
		clients[0].cancel()
		clients[0].gone()
		again := stream(handler, "7")
		if again.gone() {
			t.Error("the place of one that has gone is not given to another")
		}
		for _, c := range append(clients, again, beyond) {
			c.cancel()
		}
		synctest.Wait()
	})
}

// Over a real connection events arrive at once, and the end of the connection ends the handler.
func TestEventsOverHTTP(t *testing.T) {
	f := newFake()
	ended := make(chan struct{})
	handler := New(f.config)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer close(ended)
		handler.ServeHTTP(w, req)
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("no %q: %v", want, lines.Err())
	}
	await("id: 7")
	f.show(at(8))
	await("id: 8")
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the stream outlives its connection")
	}
}
