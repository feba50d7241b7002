package consume

import (
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/nsqio/go-nsq"

	"nsq/internal/clientopt"
)

// ErrNoDeadLetters is the error of SetAside when there is no --dead-letter-topic.
var ErrNoDeadLetters = errors.New("no --dead-letter-topic")

// SetAside publishes a message that can never be handled to the dead-letter topic of the nsqd that it
// came from, however often it was delivered. Nil means that it is safe there and may be finished. Only
// programs that have set Flags.Rejects need it.
func (c *Consumer) SetAside(m *nsq.Message) error {
	if c.drop == nil {
		return ErrNoDeadLetters
	}
	return c.drop.move(m)
}

// deadLetters is the handler that moves a message aside when it was delivered too often, and leaves
// every other to the next handler.
type deadLetters struct {
	next   nsq.Handler
	topic  string
	most   int // attempts that the next handler gets; 0: all
	config *nsq.Config
	level  clientopt.Level
	log    *log.Logger

	mu        sync.Mutex
	producers map[string]*nsq.Producer // by address of the nsqd
}

func newDeadLetters(f *Flags, config *nsq.Config, next nsq.Handler, logger *log.Logger) *deadLetters {
	return &deadLetters{
		next: next, topic: f.DeadLetterTopic, most: f.MaxAttempts, config: config, level: f.ClientLog, log: logger,
		producers: make(map[string]*nsq.Producer),
	}
}

// HandleMessage moves a message that has no attempts left; an error leaves it where it is.
func (d *deadLetters) HandleMessage(m *nsq.Message) error {
	if d.most == 0 || int(m.Attempts) <= d.most {
		return d.next.HandleMessage(m)
	}
	return d.move(m)
}

// move publishes the message to the dead-letter topic of the nsqd that it came from.
func (d *deadLetters) move(m *nsq.Message) error {
	if err := d.publish(m.NSQDAddress, m.Body); err != nil {
		return fmt.Errorf("move to topic %s: %w", d.topic, err)
	}
	d.log.Printf("msg %s attempted %d times, moved to topic %s", m.ID, m.Attempts, d.topic)
	return nil
}

// publish publishes with a producer that is made anew after an error.
func (d *deadLetters) publish(address string, body []byte) error {
	producer, err := d.producer(address)
	if err != nil {
		return err
	}
	if err = producer.Publish(d.topic, body); err != nil {
		d.drop(address, producer)
	}
	return err
}

func (d *deadLetters) producer(address string) (*nsq.Producer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.producers[address]; p != nil {
		return p, nil
	}
	p, err := clientopt.NewProducer(address, d.config, d.level, d.log)
	if err != nil {
		return nil, err
	}
	d.producers[address] = p
	return p, nil
}

func (d *deadLetters) drop(address string, producer *nsq.Producer) {
	d.mu.Lock()
	if d.producers[address] == producer {
		delete(d.producers, address)
	}
	d.mu.Unlock()
	producer.Stop()
}

func (d *deadLetters) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.producers {
		p.Stop()
	}
}
