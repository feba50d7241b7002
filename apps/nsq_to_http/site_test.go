package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"nsq/internal/testutil"
)

// reset is an answer that is none: the connection breaks.
const reset = -1

// site is a HTTP server that remembers what it is asked.
type site struct {
	*httptest.Server
	t           *testing.T
	answer      func(nth int, body string) int // the status; nth begins at 1
	connections atomic.Int32

	mu       sync.Mutex
	requests []seen
}

// seen is a request as it has come in.
type seen struct {
	method, uri, host, body string
	header                  http.Header
}

func newSite(t *testing.T) *site { return newSiteAt(t, "127.0.0.1:0") }

func newSiteAt(t *testing.T, address string) *site {
	s := &site{t: t, answer: func(int, string) int { return 200 }}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	testutil.Eventually(t, func() error { // the port may be in use for a moment
		listener, err := net.Listen("tcp", address)
		if err == nil {
			s.Listener.Close()
			s.Listener = listener
		}
		return err
	})
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("read request: %v", err)
	}
	s.mu.Lock()
	s.requests = append(s.requests, seen{method: r.Method, uri: r.RequestURI, host: r.Host, body: string(body), header: r.Header})
	nth := len(s.requests)
	s.mu.Unlock()
	status := s.answer(nth, string(body))
	if status == reset {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	io.WriteString(w, "some text")
}

func (s *site) got() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// bodies are sorted.
func (s *site) bodies() (bodies []string) {
	for _, r := range s.got() {
		bodies = append(bodies, r.body)
	}
	slices.Sort(bodies)
	return bodies
}

func (s *site) await(requests int) {
	s.t.Helper()
	testutil.Eventually(s.t, func() error {
		if got := len(s.got()); got < requests {
			return fmt.Errorf("%d requests, want %d", got, requests)
		}
		return nil
	})
}
