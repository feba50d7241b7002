package main

import (
	"errors"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/consume"
	"nsq/internal/destination"
	"nsq/internal/latency"
	"nsq/internal/pace"
	"nsq/internal/touch"
)

// handler makes requests of messages. It is safe for concurrent use.
type handler struct {
	endpoint endpoint
	pool     *destination.Pool // nil: each message goes to all addresses
	board    *latency.Board
	sampler  pace.Sampler
	keeper   *touch.Keeper
	setAside func(*nsq.Message) error // set before the first message
}

// HandleMessage returns nil if the message may be finished: it was accepted, or not picked at all, or
// is safe among the dead letters.
func (h *handler) HandleMessage(m *nsq.Message) error {
	if !h.sampler.Pick() {
		return nil
	}
	h.keeper.Hold(m)
	defer h.keeper.Release(m)
	err := h.send(m.Body)
	if !isRejection(err) {
		return err
	}
	if moving := h.setAside(m); !errors.Is(moving, consume.ErrNoDeadLetters) {
		return moving
	}
	return err
}

func (h *handler) send(body []byte) error {
	if h.pool == nil {
		return h.sendToAll(body)
	}
	turn := h.pool.Next()
	start := time.Now()
	err := h.endpoint.send(turn.Index, body)
	if isRejection(err) {
		return err // which tells nothing about how well the host is
	}
	turn.Done(err == nil)
	if err == nil {
		h.board.Record(turn.Index, time.Since(start))
	}
	return err
}

// sendToAll sends to one address after the other, up to the first failure. An address that rejects the
// message does not keep it from the others.
func (h *handler) sendToAll(body []byte) error {
	var rejection error
	start := time.Now()
	for i := range h.endpoint.requests.addresses {
		begin := time.Now()
		err := h.endpoint.send(i, body)
		switch {
		case err == nil:
			h.board.RecordOne(i, time.Since(begin))
		case isRejection(err):
			rejection = err
		default:
			return err
		}
	}
	if rejection == nil {
		h.board.RecordAll(time.Since(start))
	}
	return rejection
}
