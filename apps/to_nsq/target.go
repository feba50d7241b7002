package main

import (
	"log"

	"nsq/internal/publish"
)

// target is one nsqd. It is used by one goroutine at a time.
type target struct {
	address, topic string
	nsqd           *publish.Target
	log            *log.Logger

	refused int // messages that it does not want
}

// result is what became of a batch.
type result struct {
	taken int      // messages published
	left  [][]byte // messages that are not, and could be if the nsqd were well
	err   error    // why there are some
}

// publish publishes a batch. Messages that the nsqd refuses are logged and counted, and not left.
func (t *target) publish(batch [][]byte) (all result) {
	for i, err := range t.nsqd.Publish(t.topic, batch) {
		switch {
		case err == nil:
			all.taken++
		case publish.BadMessage(err):
			t.log.Printf("ERROR: message of %d bytes not published to %s - %s", len(batch[i]), t.address, err)
			t.refused++
		default:
			all.left, all.err = append(all.left, batch[i]), err
		}
	}
	return all
}

// transient says whether it can help to try again: when the nsqd is away, or has trouble with its
// queues. It does not take back what it says of commands and permissions.
func transient(err error) bool {
	return !publish.Answered(err) || publish.AnsweredWith(err, "E_PUB_FAILED", "E_MPUB_FAILED")
}
