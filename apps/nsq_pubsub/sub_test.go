package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
)

// What is published arrives in a stream, whatever its bytes, and is finished then.
func TestLines(t *testing.T) {
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP)
	n.Create("t", "c")
	bodies := []string{"plain", "a\nb\r\n<&>\u2028\"", "\xff\x00", "\u00fc"}
	n.Publish("t", bodies...)
	s := r.subscribe("topic=t&channel=c")
	if got := s.resp.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("content type %q", got)
	}
	for _, want := range bodies {
		rec := s.next()
		got := string(rec.Base64)
		if rec.Body != nil {
			got = *rec.Body
		}
		if got != want || len(rec.ID) != 16 || rec.Timestamp == 0 || rec.Attempts != 1 {
			t.Errorf("got %+v with body %q, want %q", rec, got, want)
		}
	}
	n.AwaitChannel("t", "c", testnode.Drained)
}

// A client that wants events gets events, and comments while there are none.
func TestEvents(t *testing.T) {
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP, "--heartbeat-interval=20ms")
	for query, headers := range map[string][]string{
		"topic=t&channel=c":            {"Accept", "text/html, text/event-stream;q=0.9"},
		"topic=t&channel=d&format=sse": nil,
	} {
		s := r.subscribe(query, headers...)
		if got := s.resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("content type %q", got)
		}
		if got := s.line() + s.line(); got != ": heartbeat\n\n" {
			t.Errorf("heartbeat %q", got)
		}
		n.Publish("t", "a\nb")
		for {
			got := s.line() + s.line()
			if got == ": heartbeat\n\n" {
				continue
			}
			if !strings.HasPrefix(got, `data: {"id":"`) || !strings.HasSuffix(got, `"attempts":1,"body":"a\nb"}`+"\n\n") {
				t.Errorf("event %q", got)
			}
			break
		}
	}
}

// A reader that does not read holds its window and no more; when it leaves, everything that was not
// written is delivered to the next one.
func TestSlowReader(t *testing.T) {
	const window, count = 5, 15
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP)
	n.Create("t", "c")
	filler := strings.Repeat("x", 900<<10) // more than buffers of sockets have room for, all together
	bodies := make([]string, count)
	for i := range bodies {
		bodies[i] = fmt.Sprint(i, filler)
	}
	for _, body := range bodies {
		n.Publish("t", body)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, fmt.Sprintf("GET /sub?topic=t&channel=c&window=%d HTTP/1.1\r\nHost: h\r\n\r\n", window)); err != nil {
		t.Fatal(err)
	}
	n.AwaitChannel("t", "c", func(c api.ChannelStats) bool {
		if c.InFlightCount > window {
			t.Fatalf("%d messages in flight, more than the window of %d", c.InFlightCount, window)
		}
		return c.InFlightCount == window && int(c.Depth) < count-window // it got some, and holds the next
	})
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	c := n.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.ClientCount == 0 && c.InFlightCount == 0 })
	if c.Depth == 0 || c.Depth == count {
		t.Fatalf("depth %d: the reader held nothing up, or got nothing", c.Depth)
	}
	s := r.subscribe("topic=t&channel=c")
	again := 0
	for range c.Depth {
		if s.next().Attempts > 1 {
			again++
		}
	}
	if again == 0 { // more than a window may be: some come, and go back, before the end of the reader is noticed
		t.Error("no message was in flight for the reader that is gone")
	}
	n.AwaitChannel("t", "c", testnode.Drained)
}

// A stop ends streams in good order, and what they have not written goes to others.
func TestStop(t *testing.T) {
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP)
	s := r.subscribe("topic=t&channel=c")
	n.Publish("t", "a")
	s.next()
	r.end()
	if rest, err := io.ReadAll(s.lines); err != nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("rest %q, error %v", rest, err)
	}
	n.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.ClientCount == 0 && testnode.Drained(c) })
}

// Streams and connections are limited, and one that ends makes room.
func TestLimits(t *testing.T) {
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP, "--max-subscriptions=1", "--max-connections=2")
	s := r.subscribe("topic=t&channel=c")
	if status, body := r.ask("GET", "/sub?topic=t&channel=c", ""); status != 503 || body != `{"message":"TOO_MANY_SUBSCRIPTIONS"}` {
		t.Errorf("%d %s", status, body)
	}
	testutil.Eventually(t, func() error { // the connection of the request before has ended
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			return err
		}
		defer conn.Close()
		if resp, err := plain.Get(r.url + "/ping"); err == nil {
			resp.Body.Close()
			return fmt.Errorf("a third connection is served")
		}
		return nil
	})
	s.leave()
	testutil.Eventually(t, func() error {
		resp, err := plain.Get(r.url + "/sub?topic=t&channel=c")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", resp.Status)
		}
		return nil
	})
}
