package main

import (
	"errors"
	"log"
	"strconv"
	"strings"
	"unicode"

	"github.com/nsqio/go-nsq"

	"nsq/internal/consume"
	"nsq/internal/touch"
)

// maxShown is how much of a message the log shows, in bytes.
const maxShown = 4 << 10

// errBackoff is the error for a message that comes again.
var errBackoff = errors.New("backoff")

// source handles the messages of one topic: those that pass the filter it gives to the relay, which
// says what became of them. It is safe for concurrent use.
type source struct {
	target   string // the topic they are published to
	filter   *filter
	relay    *relay
	keeper   *touch.Keeper
	setAside func(*nsq.Message) error // set before the first message
	slots    chan struct{}            // taken by messages that the relay has: nsqd may send more than it is asked for
	log      *log.Logger
}

func newSource(target string, filter *filter, relay *relay, keeper *touch.Keeper, maxInFlight int, logger *log.Logger) *source {
	return &source{
		target: target, filter: filter, relay: relay, keeper: keeper, log: logger,
		slots: make(chan struct{}, max(maxInFlight, 1)),
	}
}

// HandleMessage finishes a message at once only when the filter keeps it back.
func (s *source) HandleMessage(m *nsq.Message) error {
	body, err := s.filter.apply(m.Body)
	switch {
	case errors.Is(err, errNoJSON):
		s.log.Printf("ERROR: Unable to decode json: %s", shown(m.Body))
		return s.setAsideOr(m, nil)
	case err != nil:
		s.log.Printf("ERROR: %s", err)
		return s.setAsideOr(m, errBackoff)
	case body == nil:
		return nil
	}
	m.DisableAutoResponse()
	s.slots <- struct{}{}
	s.keeper.Hold(m)
	s.relay.send(&job{topic: s.target, body: body, done: func(outcome outcome) { s.done(m, outcome) }})
	return nil
}

// setAsideOr sets aside what the filter cannot judge; otherwise is the result if there is no place for it.
func (s *source) setAsideOr(m *nsq.Message, otherwise error) error {
	err := s.setAside(m)
	if errors.Is(err, consume.ErrNoDeadLetters) {
		return otherwise
	}
	return err
}

// done answers for a message that the relay is done with.
func (s *source) done(m *nsq.Message, outcome outcome) {
	if outcome == refused {
		go s.reject(m) // which may take as long as the nsqd that it came from likes
		return
	}
	s.answer(m, outcome == published)
}

// reject sets aside what the destination does not want; it is tried again if there is no place for it.
func (s *source) reject(m *nsq.Message) {
	err := s.setAside(m)
	if err != nil && !errors.Is(err, consume.ErrNoDeadLetters) {
		s.log.Printf("ERROR: msg %s - %s", m.ID, err)
	}
	s.answer(m, err == nil)
}

// answer finishes the message or has it requeued.
func (s *source) answer(m *nsq.Message, finish bool) {
	s.keeper.Release(m)
	if finish {
		m.Finish()
	} else {
		m.Requeue(-1)
	}
	<-s.slots
}

// shown is a message for the log, where it must neither take much room nor pretend to be more than one
// line.
func shown(body []byte) string {
	text := string(body[:min(len(body), maxShown)])
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = strconv.Quote(text)
	}
	return text
}
