package main

import (
	"log"
	"sync"
	"time"

	"nsq/internal/destination"
	"nsq/internal/latency"
	"nsq/internal/publish"
)

// maxBatch is the most bytes of messages in a command, beyond which another one makes nothing faster;
// a single message may be larger. It is well below what a nsqd takes by default, 5 MiB.
const maxBatch = 1 << 20

// outcome is what became of a message.
type outcome int

const (
	published outcome = iota
	refused           // by a nsqd that is well, and would refuse it again
	failed            // at every destination that was tried
)

// job is a message on its way.
type job struct {
	topic string
	body  []byte
	done  func(outcome) // called once

	turn  destination.Turn
	start time.Time // of the turn
	turns int       // so far
}

// relay publishes each message at one of the destinations: at another one when the first is lost, until
// each could have had its turn. How many messages it has is up to those who send them.
type relay struct {
	pool  *destination.Pool
	lanes []*lane // one a destination, in the order of the pool
	board *latency.Board
	log   *log.Logger

	running sync.WaitGroup // the lanes
}

func newRelay(pool *destination.Pool, targets []*publish.Target, batch int, board *latency.Board, logger *log.Logger) *relay {
	r := &relay{pool: pool, board: board, log: logger}
	for _, target := range targets {
		l := &lane{target: target, most: batch, wake: make(chan struct{}, 1), quit: make(chan struct{})}
		r.lanes = append(r.lanes, l)
		r.running.Go(func() { l.run(r) })
	}
	return r
}

// send takes a message and does not wait for what becomes of it. It is safe for concurrent use.
func (r *relay) send(j *job) {
	j.turn = r.pool.Next()
	j.start = time.Now()
	j.turns++
	r.lanes[j.turn.Index].put(j)
}

// stop ends the connections. All messages must be done with.
func (r *relay) stop() {
	for _, l := range r.lanes {
		close(l.quit)
	}
	r.running.Wait()
}

// publish publishes a batch for one topic and deals with what became of each message.
func (r *relay) publish(l *lane, batch []*job) {
	bodies := make([][]byte, len(batch))
	for i, j := range batch {
		bodies[i] = j.body
	}
	var failure error                             // the last one; in most cases they are all the same
	failures, address := 0, batch[0].turn.Address // a message that is settled may have another turn
	for i, err := range l.target.Publish(batch[0].topic, bodies) {
		if err != nil {
			failures, failure = failures+1, err
		}
		r.settle(batch[i], err)
	}
	if failure != nil {
		r.log.Printf("ERROR: %d of %d messages not published to %s - %s", failures, len(batch), address, failure)
	}
}

func (r *relay) settle(j *job, err error) {
	if err == nil || publish.Answered(err) {
		r.board.Record(j.turn.Index, time.Since(j.start))
	}
	alive := err == nil || publish.Refused(err)
	j.turn.Done(alive)
	switch {
	case err == nil:
		j.done(published)
	case alive:
		j.done(refused)
	case j.turns < len(r.lanes):
		r.send(j)
	default:
		j.done(failed)
	}
}

// lane is the way to one destination. While a batch is on it the next one gathers.
type lane struct {
	target *publish.Target // for run alone
	most   int             // messages in a batch
	wake   chan struct{}
	quit   chan struct{}

	mu    sync.Mutex
	queue []*job
}

func (l *lane) put(j *job) {
	l.mu.Lock()
	l.queue = append(l.queue, j)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the first messages that are all for the same topic.
func (l *lane) take() (batch []*job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size, full := 0, false
	rest := l.queue[:0]
	for _, j := range l.queue {
		if full || len(batch) > 0 && j.topic != batch[0].topic {
			rest = append(rest, j)
			continue
		}
		if len(batch) == l.most || len(batch) > 0 && size+len(j.body) > maxBatch {
			full = true // not to overtake those of the same topic
			rest = append(rest, j)
			continue
		}
		batch = append(batch, j)
		size += len(j.body)
	}
	clear(l.queue[len(rest):])
	l.queue = rest
	return batch
}

func (l *lane) run(r *relay) {
	defer l.target.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-l.wake:
		}
		for batch := l.take(); len(batch) > 0; batch = l.take() {
			r.publish(l, batch)
		}
	}
}
