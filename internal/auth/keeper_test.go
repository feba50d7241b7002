package auth

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestKeeper(t *testing.T) {
	const nothing = `{"ttl":60,"authorizations":[]}`
	status, body := 500, ""
	s := newFake(t, func(w http.ResponseWriter, req *http.Request) {
		if got := req.FormValue("secret"); got != secret {
			t.Errorf("asked with secret %q", got)
		}
		answering(status, body)(w, req)
	})
	c, _ := newClient(t, Config{Addresses: []string{s.URL}})
	now := received
	c.now = func() time.Time { return now }

	if _, err := c.Keep(t.Context(), request); err == nil {
		t.Fatal("kept a failure")
	}
	status, body = 200, good
	k, err := c.Keep(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v %#v", k, k); strings.Contains(text, secret) {
		t.Errorf("a keeper prints as %s", text)
	}
	granted := k.Grant()
	asked := s.asked.Load()

	// Up to the ttl nobody is asked.
	now = granted.Expires()
	if g, err := k.Valid(t.Context(), now); g != granted || err != nil || s.asked.Load() != asked {
		t.Errorf("%v, %v, asked %d times", g, err, s.asked.Load()-asked)
	}

	// After it each call asks until there is an answer; no failure makes the old one valid.
	now = now.Add(1)
	for _, status = range []int{500, 403, 500} {
		g, err := k.Valid(t.Context(), now)
		if g != nil || err == nil || errors.Is(err, ErrRefused) != (status == 403) {
			t.Errorf("status %d: %v, %v", status, g, err)
		}
	}
	if n := s.asked.Load() - asked; n != 3 {
		t.Errorf("asked %d times", n)
	}

	// The new answer counts, with a ttl of its own, even if it permits nothing.
	status, body = 200, nothing
	g, err := k.Valid(t.Context(), now)
	if err != nil || g != k.Grant() || g.Entries() != 0 || g.Allows(Subscribe, "t", "ch") || !g.Expires().Equal(now.Add(time.Minute)) {
		t.Errorf("%v, %v", g, err)
	}
	if again, err := k.Valid(t.Context(), now); again != g || err != nil || s.asked.Load()-asked != 4 {
		t.Errorf("%v, %v, asked %d times", again, err, s.asked.Load()-asked)
	}
}

// Of two answers at the same time one is kept, and both callers are told that one.
func TestKeeperAgrees(t *testing.T) {
	var both sync.WaitGroup
	var waiting atomic.Bool
	s := newFake(t, func(w http.ResponseWriter, req *http.Request) {
		if waiting.Load() {
			both.Done()
			both.Wait() // neither is answered before both have asked
		}
		io.WriteString(w, good)
	})
	c, _ := newClient(t, Config{Addresses: []string{s.URL}})
	k, err := c.Keep(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expired := k.Grant()
	both.Add(2)
	waiting.Store(true)
	var told [2]*Grant
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() {
			g, err := k.Valid(t.Context(), expired.Expires().Add(1))
			if err != nil {
				t.Error(err)
			}
			told[i] = g
		})
	}
	all.Wait()
	if told[0] != told[1] || told[0] != k.Grant() || told[0] == expired {
		t.Errorf("told %p and %p, keeps %p, had %p", told[0], told[1], k.Grant(), expired)
	}
}
