package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"nsq/internal/destination"
)

// firstPause is that before the first retry; each is twice the one before it.
const firstPause = 100 * time.Millisecond

// sender publishes batches, for one goroutine.
type sender interface {
	// send returns how many messages were published. An error means that nothing more can be.
	send(ctx context.Context, batch [][]byte) (published int, err error)
	// missing says what was not published; nil: nothing.
	missing() error
}

// pause waits before the next attempt; attempts begin at 0.
func pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(firstPause << min(attempt, 9))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// toAll publishes each batch to every nsqd. One that has failed in spite of retries gets no more, for
// the others should not wait for it each time.
type toAll struct {
	targets []*target
	retries int
	log     *log.Logger

	failed map[*target]bool
	lost   map[*target]int // messages that failed nsqd have not got
}

func newToAll(targets []*target, retries int, logger *log.Logger) *toAll {
	return &toAll{
		targets: targets, retries: retries, log: logger,
		failed: make(map[*target]bool), lost: make(map[*target]int),
	}
}

func (s *toAll) send(ctx context.Context, batch [][]byte) (published int, err error) {
	results := make([]result, len(s.targets))
	var all sync.WaitGroup
	for i, t := range s.targets {
		if s.failed[t] {
			s.lost[t] += len(batch)
			continue
		}
		all.Go(func() { results[i] = s.sendTo(ctx, t, batch) })
	}
	all.Wait()
	for i, t := range s.targets {
		published = max(published, results[i].taken)
		if results[i].err == nil {
			continue
		}
		err = results[i].err
		s.failed[t] = true
		s.lost[t] += len(results[i].left)
		if len(s.failed) < len(s.targets) {
			s.log.Printf("ERROR: nothing more is published to %s - %s", t.address, err)
		}
	}
	if len(s.failed) < len(s.targets) {
		err = nil
	}
	return published, err
}

// sendTo publishes to one nsqd, with retries as long as ctx is not cancelled.
func (s *toAll) sendTo(ctx context.Context, t *target, batch [][]byte) result {
	total := result{left: batch}
	for attempt := 0; ; attempt++ {
		once := t.publish(total.left)
		total = result{taken: total.taken + once.taken, left: once.left, err: once.err}
		if once.err == nil || attempt == s.retries || !transient(once.err) || pause(ctx, attempt) != nil {
			return total
		}
	}
}

func (s *toAll) missing() error {
	var missing []string
	for _, t := range s.targets {
		if n := t.refused + s.lost[t]; n > 0 {
			missing = append(missing, fmt.Sprintf("%d messages not published to %s", n, t.address))
		}
	}
	return summary(missing)
}

// toOne publishes each batch to one nsqd, and to another one if that fails.
type toOne struct {
	targets []*target
	pool    *destination.Pool
	retries int

	lost int
}

func newToOne(targets []*target, retries int) *toOne {
	addresses := make([]string, len(targets))
	for i, t := range targets {
		addresses[i] = t.address
	}
	return &toOne{targets: targets, pool: destination.New(destination.HostPool, addresses), retries: retries}
}

func (s *toOne) send(ctx context.Context, batch [][]byte) (published int, err error) {
	for attempt := 0; ; attempt++ {
		again := false
		for range s.targets {
			turn := s.pool.Next()
			once := s.targets[turn.Index].publish(batch)
			turn.Done(once.err == nil)
			published += once.taken
			if batch, err = once.left, once.err; err == nil {
				return published, nil
			}
			again = again || transient(err)
		}
		if attempt == s.retries || !again || pause(ctx, attempt) != nil {
			s.lost += len(batch)
			return published, err
		}
	}
}

func (s *toOne) missing() error {
	n := s.lost
	for _, t := range s.targets {
		n += t.refused
	}
	if n == 0 {
		return nil
	}
	return summary([]string{fmt.Sprintf("%d messages not published", n)})
}

// summary is the last word on what was not published, nil if there is nothing to say.
func summary(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return errors.New("ERROR: " + strings.Join(missing, ", "))
}
