package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/consume"
	"nsq/internal/httpx"
	"nsq/internal/touch"
)

const (
	// maxBatch is how many bytes are collected before they are written.
	maxBatch = 256 << 10
	// lastWrite is how long a reader may take for what is being written when the program stops.
	lastWrite = 5 * time.Second
)

var (
	errTooMany = &httpx.Error{Status: http.StatusServiceUnavailable, Message: "TOO_MANY_SUBSCRIPTIONS"}
	errStops   = &httpx.Error{Status: http.StatusServiceUnavailable, Message: "EXITING"}
)

// want is what a reader asks for.
type want struct {
	topic   string
	channel string
	format  format
	window  int // most messages in flight
}

// subscriptions serves the streams. It is safe for concurrent use.
type subscriptions struct {
	flags     *consume.Flags
	keeper    *touch.Keeper
	heartbeat time.Duration
	log       *log.Logger
	stopping  context.Context // ends all streams
	slots     chan struct{}   // one element a stream
}

// serve writes a stream until the reader leaves or the program stops. An error means that nothing has
// been written.
func (s *subscriptions) serve(w http.ResponseWriter, req *http.Request, want want) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return errTooMany
	}
	if s.stopping.Err() != nil {
		return errStops
	}
	st := &stream{
		format: want.format, keeper: s.keeper,
		pending: make(chan *nsq.Message, want.window), done: make(chan struct{}),
		out: w, control: http.NewResponseController(w),
	}
	flags := *s.flags
	flags.MaxInFlight = want.window
	consumer, err := flags.NewConsumer(want.topic, want.channel, st, 1, s.log)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", want.topic, err)
	}
	if err := consumer.Connect(); err != nil {
		return &httpx.Error{Status: http.StatusServiceUnavailable, Message: "NO_NSQD", Cause: errors.Join(err, st.end(consumer))}
	}
	if err := st.run(req.Context(), s.stopping, s.heartbeat); err != nil {
		s.log.Printf("stream of %s to %s ended: %s", want.topic, req.RemoteAddr, err)
	}
	if err := st.end(consumer); err != nil {
		s.log.Printf("stream of %s to %s: %s", want.topic, req.RemoteAddr, err)
	}
	return nil
}

// stream is one subscription: its consumer fills pending, the goroutine of its request writes it out. A
// slow reader leaves its messages there, and nsqd sends no more than the window has room for. Only after
// a lost connection there may be more: then the handler waits.
type stream struct {
	format  format
	keeper  *touch.Keeper
	pending chan *nsq.Message // has room for the window
	done    chan struct{}     // closed when nothing more is going to be written

	// Of the request's goroutine.
	out     http.ResponseWriter
	control *http.ResponseController
	batch   []*nsq.Message // being written
	buf     bytes.Buffer   // what is written for them
}

// HandleMessage takes a message that is answered when it has been written, or not.
func (s *stream) HandleMessage(m *nsq.Message) error {
	m.DisableAutoResponse()
	s.keeper.Hold(m)
	select {
	case s.pending <- m:
	case <-s.done:
		s.giveBack(m)
	}
	return nil
}

func (s *stream) giveBack(m *nsq.Message) {
	s.keeper.Release(m)
	m.RequeueWithoutBackoff(0)
}

// run writes until the reader leaves, which is the error of a write, or the program stops.
func (s *stream) run(reader, stopping context.Context, heartbeat time.Duration) error {
	ctx, cancel := context.WithCancel(reader)
	defer cancel()
	release := context.AfterFunc(stopping, func() {
		cancel()
		_ = s.control.SetWriteDeadline(time.Now().Add(lastWrite)) // fails on a closed connection only
	})
	defer release()
	header := s.out.Header()
	header.Set("Content-Type", s.format.contentType())
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // or a proxy would collect what should arrive at once
	s.out.WriteHeader(http.StatusOK)
	if err := s.control.Flush(); err != nil {
		return err
	}
	silence := time.NewTimer(heartbeat)
	defer silence.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-silence.C:
			s.buf.Reset()
			s.buf.WriteString(s.format.heartbeat())
			err = s.write()
		case m := <-s.pending:
			err = s.forward(m)
		}
		if err != nil {
			return err
		}
		silence.Reset(heartbeat)
	}
}

// forward writes the message and those that wait behind it, and answers them.
func (s *stream) forward(m *nsq.Message) error {
	err := s.collect(m)
	if err == nil {
		err = s.write()
	}
	for _, m := range s.batch {
		if err != nil {
			s.giveBack(m)
			continue
		}
		s.keeper.Release(m)
		m.Finish()
	}
	clear(s.batch) // the bodies are not needed any more
	return err
}

func (s *stream) collect(m *nsq.Message) error {
	s.batch = s.batch[:0]
	s.buf.Reset()
	for {
		s.batch = append(s.batch, m)
		if err := s.format.write(&s.buf, m); err != nil {
			return fmt.Errorf("encode message %s: %w", m.ID, err)
		}
		if s.buf.Len() >= maxBatch {
			return nil
		}
		select {
		case m = <-s.pending:
		default:
			return nil
		}
	}
}

func (s *stream) write() error {
	if _, err := s.out.Write(s.buf.Bytes()); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	if s.buf.Cap() > 2*maxBatch {
		s.buf = bytes.Buffer{} // one huge message must not be paid for as long as the stream lasts
	}
	return nil
}

// end stops the consumer and gives back what has not been written.
func (s *stream) end(consumer *consume.Consumer) error {
	close(s.done)
	stopped := make(chan error, 1)
	go func() { stopped <- consumer.Stop() }()
	for {
		select {
		case m := <-s.pending:
			s.giveBack(m)
		case err := <-stopped:
			for len(s.pending) > 0 { // only where the stop was forced
				s.giveBack(<-s.pending)
			}
			return err
		}
	}
}
