package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// maxStreams is how many browsers may wait for news at a time; others ask by a timer.
	maxStreams = 1000
	// beat is how often a stream says something when there is no news, so that proxies keep it.
	beat = 15 * time.Second
	// writeTimeout is how long a client may take to accept an event.
	writeTimeout = 10 * time.Second
)

// streams counts the event streams under way.
type streams struct{ open atomic.Int64 }

// events tells a browser the number of each snapshot. It carries no figures: the page then asks for its
// own, sorted and searched as its address says. A client that is slow misses numbers in between, and
// nothing is kept for it.
func (s *site) events(w http.ResponseWriter, req *http.Request) {
	defer s.streams.open.Add(-1)
	if s.streams.open.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "TOO_MANY_STREAMS", http.StatusServiceUnavailable)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // for nginx
	control := http.NewResponseController(w)
	send := func(text string) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("set write deadline: %w", err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
		if err := control.Flush(); err != nil {
			return fmt.Errorf("flush event: %w", err)
		}
		return nil
	}
	if err := s.follow(req, send); err != nil {
		s.Log.Debugf("event stream to %s ends - %s", req.RemoteAddr, err)
	}
}

// follow sends until the client or the server goes.
func (s *site) follow(req *http.Request, send func(string) error) error {
	last, _ := strconv.ParseUint(req.Header.Get("Last-Event-ID"), 10, 64) // what is no number is no event of ours
	if err := send("retry: 3000\n\n"); err != nil {
		return err
	}
	heart := time.NewTicker(beat)
	defer heart.Stop()
	for {
		changed := s.Changed()
		if seq := s.Snapshot().Seq; seq != last {
			last = seq
			if err := send(fmt.Sprintf("id: %d\nevent: snapshot\ndata: %d\n\n", seq, seq)); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-heart.C:
			if err := send(":\n\n"); err != nil {
				return err
			}
		case <-req.Context().Done():
			return nil
		case <-s.Stopping:
			return nil
		}
	}
}
