// Package touch keeps messages in the hands of a program that needs long for them: nsqd would deliver
// them again when their timeout has passed.
//
//	keeper := touch.New(touch.Interval(config.MsgTimeout))
//	defer keeper.Stop()
//	...
//	keeper.Hold(message)
//	work(message)
//	keeper.Release(message)
//
// It does not know what is done with messages, nor how long that may take.
//
// Source: apps spec, sections 8.4 and 9.3.
package touch

import (
	"sync"
	"time"

	"github.com/nsqio/go-nsq"
)

// usualInterval is for message timeouts that the nsqd decides: its default is 60 s.
const usualInterval = 10 * time.Second

// Interval is how often messages with this timeout should be touched; 0 is a timeout that the nsqd
// decides.
func Interval(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return usualInterval
	}
	return max(timeout/4, time.Millisecond) // the first touch may come one interval late
}

// Keeper touches the messages that it holds. It is safe for concurrent use.
type Keeper struct {
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex
	held map[*nsq.Message]bool // whether it was held in the last round already
}

// New returns a keeper that touches each message once every interval, from one to two intervals after
// it was given on.
func New(every time.Duration) *Keeper {
	k := &Keeper{stop: make(chan struct{}), done: make(chan struct{}), held: make(map[*nsq.Message]bool)}
	go k.run(every)
	return k
}

// Hold begins to touch the message.
func (k *Keeper) Hold(m *nsq.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[m] = false
}

// Release ends it, before the message is answered.
func (k *Keeper) Release(m *nsq.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, m)
}

// Held is the number of messages that are held.
func (k *Keeper) Held() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held)
}

// Stop ends all touching; it is called once.
func (k *Keeper) Stop() {
	close(k.stop)
	<-k.done
}

func (k *Keeper) run(every time.Duration) {
	defer close(k.done)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-k.stop:
			return
		case <-ticker.C:
			for _, m := range k.due() {
				m.Touch() // nothing at all if it was answered in the meantime
			}
		}
	}
}

// due returns the messages that are held for a round already.
func (k *Keeper) due() (due []*nsq.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for m, before := range k.held {
		if before {
			due = append(due, m)
		}
		k.held[m] = true
	}
	return due
}
