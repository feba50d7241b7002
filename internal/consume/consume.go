// Package consume is what the utilities that read a topic have in common: their flags, a consumer that
// finds all nsqd of the topic and stays connected, what becomes of messages that fail again and again,
// and the stop.
//
//	flags := consume.NewFlags("nsq_tail")
//	flags.Define(set)                          // before the command line is parsed
//	err := flags.CheckSources()                // in the order that the program promises
//	err = flags.Check()
//	consumer, err := flags.NewConsumer(topic, channel, handler, 1, std.Log)
//	err = consumer.Connect()
//	...
//	return consume.Wait(ctx, consumers...)     // stops them when ctx is cancelled
//
// A handler that returns nil has the message finished, one that returns an error has it requeued;
// with DisableAutoResponse it answers later by itself. No message is finished that no handler has
// finished, but those that were moved to the dead-letter topic, or that the option max_attempts of the
// client, given on purpose, discards.
//
// The package does not know what is done with messages.
//
// Source: apps spec, section 2.
package consume

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/clientopt"
)

// stopLimit is how long messages in process are waited for at a stop. The client gives up after 30 s
// without a way to tell; being a little earlier makes the difference visible.
const stopLimit = 30*time.Second - 50*time.Millisecond

// ErrForced is the error of a stop that had to leave messages in process; nsqd delivers them again.
var ErrForced = errors.New("messages are still in process after 30s, giving up")

// Consumer reads one channel of a topic. Its methods may be called from any goroutine, but Connect and
// Stop only once each.
type Consumer struct {
	lib    *nsq.Consumer
	flags  *Flags
	topic  string
	log    *log.Logger
	lookup *lookups     // nil in direct mode
	drop   *deadLetters // nil without a limit of attempts
	limit  time.Duration

	stopKeeper context.CancelFunc // nil before Connect
	kept       sync.WaitGroup     // the keeper
}

// NewConsumer returns a consumer that is not connected yet, with so many handlers at work at the same
// time. The texts of errors are the client's.
func (f *Flags) NewConsumer(topic, channel string, handler nsq.Handler, concurrency int, logger *log.Logger) (*Consumer, error) {
	config := f.config()
	c := &Consumer{flags: f, topic: topic, log: logger, limit: stopLimit}
	if f.DeadLetterTopic != "" {
		c.drop = newDeadLetters(f, config, handler, logger)
		config.MaxAttempts = 0 // the client would discard them
		handler = c.drop
	} else if config.MaxAttempts > 0 {
		logger.Printf("WARNING: max_attempts,%d has messages discarded that fail so often; --max-attempts with --dead-letter-topic keeps them", config.MaxAttempts)
	}
	var err error
	if c.lib, err = clientopt.NewConsumer(topic, channel, config, f.ClientLog, logger); err != nil {
		return nil, err
	}
	if concurrency > 0 {
		c.lib.AddConcurrentHandlers(handler, concurrency)
	}
	return c, nil
}

// Connect connects to the nsqd given by the flags, or looks for some. From then on the consumer keeps
// connected by itself. Errors are for addresses that can never do and, unless Flags.Patient, when none
// of the given nsqd can be reached.
func (c *Consumer) Connect() error {
	interval := c.flags.config().LookupdPollInterval
	k := &keeper{
		consumer: c.lib, source: given(c.flags.NSQDs), log: c.log,
		first: min(firstPause, interval), most: min(longestPause, interval),
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stopKeeper = stop
	if len(c.flags.Lookupds) == 0 {
		if err := connectFirst(c.lib, c.flags.NSQDs, c.flags.Patient, c.log); err != nil {
			return err
		}
	} else {
		if err := c.lookUp(); err != nil {
			return err
		}
		k.source = c.lookup
		k.connect(ctx, c.lookup.known())
	}
	c.kept.Go(func() { k.run(ctx) })
	return nil
}

// lookUp lets the client look for nsqd now and in each of its intervals.
func (c *Consumer) lookUp() (err error) {
	if c.lookup, err = newLookups(c.flags.Lookupds, c.topic, c.flags.config(), c.log); err != nil {
		return err
	}
	c.lib.SetLookupdHttpClient(c.lookup.httpClient())
	return c.lib.ConnectToNSQLookupd(c.flags.Lookupds[0])
}

// IsStarved says whether a connection waits for messages to be finished before it can receive more.
func (c *Consumer) IsStarved() bool { return c.lib.IsStarved() }

// Stats counts messages and connections.
func (c *Consumer) Stats() *nsq.ConsumerStats { return c.lib.Stats() }

// Stop asks every nsqd for no more messages, waits until those in process are answered, and closes the
// connections. The error is ErrForced when that takes longer than 30 s.
func (c *Consumer) Stop() error {
	limit := time.NewTimer(c.limit)
	defer limit.Stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if c.stopKeeper != nil { // no connection may begin when the others end
			c.stopKeeper()
			c.kept.Wait()
		}
		c.lib.Stop()
		<-c.lib.StopChan
		if c.lookup != nil {
			c.lookup.close()
		}
		if c.drop != nil {
			c.drop.stop()
		}
	}()
	select {
	case <-stopped:
		return nil
	case <-limit.C:
		return ErrForced
	}
}

// Wait blocks until ctx is cancelled, then stops all consumers at the same time.
func Wait(ctx context.Context, consumers ...*Consumer) error {
	<-ctx.Done()
	return StopAll(consumers...)
}

// StopAll stops the consumers at the same time. The error names the topics whose stop was forced.
func StopAll(consumers ...*Consumer) error {
	errs := make([]error, len(consumers))
	var all sync.WaitGroup
	for i, c := range consumers {
		all.Go(func() {
			if err := c.Stop(); err != nil {
				errs[i] = fmt.Errorf("stop topic %s: %w", c.topic, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
