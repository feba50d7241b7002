package httpx

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/log"
)

func TestCloseIsGraceful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		s := startInTime(t, func(w http.ResponseWriter, req *http.Request) {
			readAll(w, req)
			if req.URL.Path == "/slow" {
				close(entered)
				<-release
				if err := req.Context().Err(); err != nil {
					t.Errorf("the running request was interrupted: %v", err)
				}
			}
		})
		silent, half, idle, idleHalf, stalled, running := s.dial(), s.dial(), s.dial(), s.dial(), s.dial(), s.dial()
		half.send("GET / HT")
		idle.send(get)
		idle.receive("GET")
		idleHalf.send(get)
		idleHalf.receive("GET")
		idleHalf.send("GET /")
		stalled.send(post("5", "he"))
		running.send("POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
		<-entered
		synctest.Wait()

		start := time.Now()
		closed := make(chan error)
		go func() { closed <- s.server.Close(t.Context()) }()
		for _, p := range []*peer{silent, half, idle, idleHalf} {
			if took := p.ended(); took != 0 {
				t.Errorf("a connection without request was kept for %s", took)
			}
		}
		if got := stalled.receive("POST"); !strings.HasPrefix(got, "HTTP/1.1 500 ") || time.Since(start) != stopTimeout {
			t.Errorf("stalled upload got %q after %s", got, time.Since(start))
		}
		stalled.ended()

		time.Sleep(time.Minute)
		select {
		case err := <-closed:
			t.Errorf("Close did not wait: %v", err)
		default:
		}
		close(release)
		if got := running.receive("POST"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "Connection: close") {
			t.Errorf("the running request got %q", got)
		}
		running.ended()
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, left := make(chan struct{}), make(chan error, 1)
		s := startInTime(t, func(_ http.ResponseWriter, req *http.Request) {
			close(entered)
			<-req.Context().Done()
			left <- req.Context().Err()
		})
		p := s.dial()
		p.send(get)
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Close took %s", took)
		}
		p.ended()
		if err := <-left; err == nil {
			t.Error("the handler was not told")
		}
	})
}

func TestCloseWithoutServe(t *testing.T) {
	listener := listen(t)
	s := NewServer(listener, http.NotFoundHandler(), log.Discard(), "HTTP")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listener is open: %v", err)
	}
	if err := s.Serve(); err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
}

// A connection that was accepted just before the listener was closed is not left behind.
func TestConnectionAcceptedDuringStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipeListener{accepts: make(chan net.Conn), closed: make(chan struct{})}
		tracker := newConnTracker(listener)
		tracker.stop()
		accepted := make(chan error)
		go func() {
			_, err := tracker.Accept()
			accepted <- err
		}()
		client, conn := net.Pipe()
		listener.accepts <- conn
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection is open: %v", err)
		}
		listener.Close()
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
	})
}
