package consume

import (
	"fmt"
	"log"
	"sync"

	"github.com/nsqio/go-nsq"

	"nsq/internal/clientopt"
)

// deadLetters is the handler that moves a message aside when it was delivered too often, and leaves
// every other to the next handler.
type deadLetters struct {
	next   nsq.Handler
	topic  string
	most   int // attempts that the next handler gets
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

// HandleMessage publishes the message to the dead-letter topic of the nsqd that it came from; an error
// leaves it where it is.
func (d *deadLetters) HandleMessage(m *nsq.Message) error {
	if int(m.Attempts) <= d.most {
		return d.next.HandleMessage(m)
	}
	producer, err := d.producer(m.NSQDAddress)
	if err == nil {
		err = producer.Publish(d.topic, m.Body)
	}
	if err != nil {
		return fmt.Errorf("move to topic %s: %w", d.topic, err)
	}
	d.log.Printf("msg %s attempted %d times, moved to topic %s", m.ID, m.Attempts, d.topic)
	return nil
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

func (d *deadLetters) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.producers {
		p.Stop()
	}
}
