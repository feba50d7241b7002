// Package publish publishes batches of messages to one nsqd and says what became of each message.
//
//	target, err := publish.NewTarget(connect)
//	for i, err := range target.Publish("clicks", bodies) { ... }
//	target.Stop()
//
// A batch is one MPUB. What the nsqd refuses as a whole is tried in halves, so that one message too
// large does not hold up the others. The package does not choose between several nsqd, and tries
// nothing again that failed for another reason.
//
// Source: apps spec, section 3.
package publish

import (
	"errors"
	"slices"
	"strings"

	"github.com/nsqio/go-nsq"
)

// Producer is a nsqd as go-nsq has it.
type Producer interface {
	Publish(topic string, body []byte) error
	MultiPublish(topic string, bodies [][]byte) error
	Stop()
}

// Target is one nsqd. Its methods are for one goroutine at a time.
type Target struct {
	connect  func() (Producer, error)
	producer Producer // nil after a failure, until the next message
}

// NewTarget returns the target that connect makes producers for: one now, and one after each failure.
func NewTarget(connect func() (Producer, error)) (*Target, error) {
	producer, err := connect()
	if err != nil {
		return nil, err
	}
	return &Target{connect: connect, producer: producer}, nil
}

// Publish publishes the messages to the topic. The result has an error for each of them, nil for one
// that the nsqd has confirmed.
func (t *Target) Publish(topic string, bodies [][]byte) []error {
	return t.publish(topic, bodies, make([]error, 0, len(bodies)))
}

// publish appends the results of the messages.
func (t *Target) publish(topic string, bodies [][]byte, results []error) []error {
	err := t.command(topic, bodies)
	if len(bodies) < 2 || !BadMessage(err) {
		return append(results, slices.Repeat([]error{err}, len(bodies))...)
	}
	// One of them is too large, or all together; nothing of a batch that is refused is published.
	half := len(bodies) / 2
	results = t.publish(topic, bodies[:half], results)
	if last := results[len(results)-1]; last != nil && !Refused(last) { // the nsqd is lost in between
		return append(results, slices.Repeat([]error{last}, len(bodies)-half)...)
	}
	return t.publish(topic, bodies[half:], results)
}

func (t *Target) command(topic string, bodies [][]byte) (err error) {
	if len(bodies) == 0 {
		return nil
	}
	if t.producer == nil {
		if t.producer, err = t.connect(); err != nil {
			return err
		}
	}
	if len(bodies) == 1 {
		err = t.producer.Publish(topic, bodies[0])
	} else {
		err = t.producer.MultiPublish(topic, bodies)
	}
	if err != nil {
		// The connection is broken, or the nsqd is about to hang up after what it refused: the next
		// message must not run into that.
		t.Stop()
	}
	return err
}

// Stop ends the connection; the next message would make a new one.
func (t *Target) Stop() {
	if t.producer != nil {
		t.producer.Stop()
		t.producer = nil
	}
}

// BadMessage says whether the nsqd is well and does not want this message, or this many bytes.
func BadMessage(err error) bool { return AnsweredWith(err, "E_BAD_MESSAGE", "E_BAD_BODY") }

// Refused says whether the nsqd is well and does not want this message, or any on its topic.
func Refused(err error) bool { return BadMessage(err) || AnsweredWith(err, "E_BAD_TOPIC") }

// Answered says whether the error is what the nsqd said, rather than that it said nothing.
func Answered(err error) bool {
	_, ok := errors.AsType[nsq.ErrProtocol](err)
	return ok
}

// AnsweredWith says whether the nsqd said one of the codes.
func AnsweredWith(err error, codes ...string) bool {
	answer, ok := errors.AsType[nsq.ErrProtocol](err)
	if !ok {
		return false
	}
	code, _, _ := strings.Cut(answer.Reason, " ")
	return slices.Contains(codes, code)
}
