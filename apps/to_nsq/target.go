package main

import (
	"errors"
	"log"
	"strings"

	"github.com/nsqio/go-nsq"
)

// publisher is a nsqd as go-nsq has it.
type publisher interface {
	Publish(topic string, body []byte) error
	MultiPublish(topic string, bodies [][]byte) error
	Stop()
}

// target is one nsqd. It is used by one goroutine at a time.
type target struct {
	address, topic string
	connect        func() (publisher, error)
	log            *log.Logger

	producer publisher // nil after an error
	refused  int       // messages that it does not want
}

// result is what became of a batch.
type result struct {
	taken int      // messages published
	left  [][]byte // messages that are not, and could be if the nsqd were well
	err   error    // why there are some
}

// publish publishes a batch. Messages that the nsqd refuses are logged and counted, and not left.
func (t *target) publish(batch [][]byte) result {
	err := t.command(batch)
	switch {
	case err == nil:
		return result{taken: len(batch)}
	case !refusal(err):
		return result{left: batch, err: err}
	case len(batch) == 1:
		t.log.Printf("ERROR: message of %d bytes not published to %s - %s", len(batch[0]), t.address, err)
		t.refused++
		return result{}
	}
	// One of them is too large, or all together: nothing of a batch that is refused is published.
	half := len(batch) / 2
	first := t.publish(batch[:half])
	if first.err != nil {
		return result{taken: first.taken, left: batch[half-len(first.left):], err: first.err}
	}
	second := t.publish(batch[half:])
	second.taken += first.taken
	return second
}

func (t *target) command(batch [][]byte) (err error) {
	if t.producer == nil {
		if t.producer, err = t.connect(); err != nil {
			return err
		}
	}
	if len(batch) == 1 {
		err = t.producer.Publish(t.topic, batch[0])
	} else {
		err = t.producer.MultiPublish(t.topic, batch)
	}
	if err != nil {
		t.stop() // the nsqd hangs up after most errors, and what follows must not run into that
	}
	return err
}

// stop ends the connection; the next message would make a new one.
func (t *target) stop() {
	if t.producer != nil {
		t.producer.Stop()
		t.producer = nil
	}
}

// refusal says whether the nsqd is well and does not want this message, or this many bytes.
func refusal(err error) bool { return answered(err, "E_BAD_MESSAGE", "E_BAD_BODY") }

// transient says whether it can help to try again: when the nsqd is away, or has trouble with its
// queues. It does not take back what it says of commands and permissions.
func transient(err error) bool {
	_, isAnswer := errors.AsType[nsq.ErrProtocol](err)
	return !isAnswer || answered(err, "E_PUB_FAILED", "E_MPUB_FAILED")
}

// answered says whether the error is an answer of the nsqd with one of the codes.
func answered(err error, codes ...string) bool {
	answer, ok := errors.AsType[nsq.ErrProtocol](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if strings.HasPrefix(answer.Reason, code+" ") || answer.Reason == code {
			return true
		}
	}
	return false
}
