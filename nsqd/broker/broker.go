// Package broker is the core of nsqd: topics, channels and their queues, messages in flight and
// deferred, timeouts, and the metadata that brings topics and channels back after a restart.
//
// It knows no TCP, HTTP, TLS or nsqlookupd. It is built from a Config value: where to keep what
// memory does not hold, a clock, whom to tell of new names, and whom to ask for the channels of a
// new topic. What it delivers to is the Consumer interface.
//
// Locks, in the order in which they may be taken: Broker, Topic, Channel, flight. They guard
// fields and are never held during disk or network I/O or while calling a Consumer. Three mutexes
// are turns rather than locks of fields, and are held during disk I/O: the lifecycle of Broker and of Topic (one creates
// or deletes at a time) and a topic's fan (one hands over to the channels at a time); they come
// before all others.
//
// Source: nsqd-tcp spec, sections 10 to 22; nsqd-storage spec.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nsq/internal/log"
	"nsq/internal/metrics/histogram"
	"nsq/internal/protocol"
	"nsq/internal/quantile"
)

var (
	// ErrExiting is returned for a topic or channel that is being deleted, and by all of a broker
	// that is being closed.
	ErrExiting = errors.New("exiting")
	// ErrNotFound is returned for a topic or channel that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrTooManyConsumers is returned when a channel has as many consumers as it may have.
	ErrTooManyConsumers = errors.New("too many consumers")
)

// Config says how a Broker is to behave and what surrounds it.
type Config struct {
	MemQueueSize            int   // messages in memory for each topic and each channel
	NodeID                  int64 // 0 to 1023, part of message ids
	MaxMsgTimeout           time.Duration
	MaxChannelConsumers     int // 0 is no limit
	QueueScanSelectionCount int // channels handed to the scan workers before the clock is read again
	QueueScanWorkerPoolMax  int

	Store Store
	// Health is told of failures to write metadata, and forgets the queues that are deleted. nil is a
	// new one. The store may tell it more.
	Health *Health
	// KnownChannels asks for the channels that a new topic has elsewhere. It may block until ctx is
	// done. nil if there is nobody to ask.
	KnownChannels func(ctx context.Context, topic string) []string
	// KnownChannelsWait is how long the creator of a topic waits for KnownChannels. Messages wait in
	// the topic until it has answered.
	KnownChannelsWait time.Duration
	// Changed is called after a topic or channel came or went. It must not block.
	Changed func()
	// Latency measures the time from the publishing of a message to its FIN; nil does not.
	Latency *quantile.Plan
	// DeliveryLatency counts the times from the publishing of messages to their first delivery, once
	// for each channel; nil does not.
	DeliveryLatency *histogram.Durations

	Now    func() time.Time // nil is time.Now
	Logger *log.Logger
}

// Broker holds all topics. Its methods may be called from any goroutine.
type Broker struct {
	config   Config
	start    time.Time // of the monotonic clock
	ids      idSource
	scan     *scanner
	metadata metadata

	quiet        atomic.Bool // nothing is delivered any more
	channelCount atomic.Int64
	generations  atomic.Uint64 // topics and channels made so far

	ctx    context.Context // done when the broker is closed
	cancel context.CancelFunc
	loops  sync.WaitGroup

	lifecycle sync.Mutex // the turn to create or delete a topic

	mu     sync.RWMutex // guards the following
	topics map[string]*Topic
	closed bool
}

// New returns a broker with the topics and channels of its store's metadata, and starts it.
func New(config Config) (*Broker, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Changed == nil {
		config.Changed = func() {}
	}
	if config.Health == nil {
		config.Health = new(Health)
	}
	b := &Broker{
		config: config,
		start:  config.Now(),
		ids:    idSource{node: uint64(config.NodeID)},
		scan:   newScanner(),
		topics: make(map[string]*Topic),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.metadata.broker = b
	if err := b.restore(); err != nil {
		b.shut()
		return nil, errors.Join(err, b.closeTopics()) // they may have begun to move messages
	}
	b.loops.Go(func() { b.queueScanLoop(b.ctx.Done()) })
	return b, nil
}

// mono reads the monotonic clock: nanoseconds since the broker began.
func (b *Broker) mono() int64 { return int64(b.config.Now().Sub(b.start)) }

// FindTopic returns the topic if it exists.
func (b *Broker) FindTopic(name string) (*Topic, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t, ok := b.topics[name]
	if !ok {
		return nil, fmt.Errorf("topic %q: %w", name, ErrNotFound)
	}
	return t, nil
}

// Topic returns the topic, which it creates if there is none, for a valid name. A new one is in
// the metadata when Topic returns, unless that could not be written, which is logged and shows in Health.
func (b *Broker) Topic(name string) (*Topic, error) {
	t, learned, err := b.ensureTopic(name)
	if err != nil {
		return nil, err
	}
	if learned != nil {
		b.config.Logger.Infof("TOPIC(%s): created", name)
		b.config.Changed()
		wait := time.NewTimer(b.config.KnownChannelsWait)
		defer wait.Stop()
		select {
		case <-learned:
		case <-wait.C:
		}
	}
	b.keep(t.ephemeral, &t.kept)
	return t, nil
}

// ensureTopic returns the topic. If it was made just now, learned is not nil and closed when the
// topic knows its channels.
func (b *Broker) ensureTopic(name string) (t *Topic, learned chan struct{}, err error) {
	if t, err := b.FindTopic(name); err == nil {
		return t, nil, nil
	}
	b.lifecycle.Lock()
	defer b.lifecycle.Unlock()
	if t, err := b.FindTopic(name); err == nil {
		return t, nil, nil
	}
	if b.isClosed() {
		return nil, nil, ErrExiting
	}
	if t, err = newTopic(b, name); err != nil {
		return nil, nil, err
	}
	learned = t.learnChannels()
	b.mu.Lock()
	b.topics[name] = t
	b.mu.Unlock()
	return t, learned, nil
}

func (b *Broker) isClosed() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.closed
}

// Topics returns all topics, sorted by name.
func (b *Broker) Topics() []*Topic {
	b.mu.RLock()
	all := make([]*Topic, 0, len(b.topics))
	for _, t := range b.topics {
		all = append(all, t)
	}
	b.mu.RUnlock()
	slices.SortFunc(all, func(x, y *Topic) int { return cmp.Compare(x.name, y.name) })
	return all
}

// DeleteTopic removes a topic with its channels and all that they hold. Their consumers are closed.
func (b *Broker) DeleteTopic(name string) error {
	t, err := b.FindTopic(name)
	if err != nil {
		return err
	}
	return b.deleteTopic(t, false)
}

// deleteTopic removes a topic; with unused set only if it has no channel.
func (b *Broker) deleteTopic(t *Topic, unused bool) error {
	b.lifecycle.Lock()
	if !t.claim(unused) {
		b.lifecycle.Unlock()
		return fmt.Errorf("topic %q: %w", t.name, ErrNotFound)
	}
	b.config.Logger.Infof("TOPIC(%s): deleting", t.name)
	err := t.remove()
	b.mu.Lock()
	delete(b.topics, t.name)
	b.mu.Unlock()
	b.lifecycle.Unlock()

	b.config.Changed()
	if t.ephemeral {
		return err
	}
	return errors.Join(err, b.save())
}

// Quiesce ends all deliveries: what the first connections to be closed give back is not to go to
// those that are closed next.
func (b *Broker) Quiesce() { b.quiet.Store(true) }

// Close moves everything that memory holds to the store and closes it: first the publishers and
// consumers are refused, then the scan ends, then each topic and its channels are written out. The sessions
// should have been closed before. It returns what could not be stored.
func (b *Broker) Close() error {
	if !b.shut() {
		return nil
	}
	b.lifecycle.Lock() // whoever is creating or deleting ends first
	defer b.lifecycle.Unlock()
	return errors.Join(b.closeTopics(), b.save())
}

// shut marks the broker closed and says whether it was open.
func (b *Broker) shut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.closed
	b.closed = true
	return !was
}

// closeTopics ends everything that runs, and writes out the topics.
func (b *Broker) closeTopics() error {
	topics := b.Topics()
	for _, t := range topics {
		t.refuse()
	}
	b.cancel()
	b.loops.Wait()

	b.config.Logger.Infof("NSQ: closing topics")
	var failed error
	for _, t := range topics {
		failed = errors.Join(failed, t.close())
	}
	return failed
}

// Health returns nil, or what is wrong with the store.
func (b *Broker) Health() error { return b.config.Health.Err() }

// validMetadataName says whether a name from the metadata can be used, and logs one that can not.
func (b *Broker) validMetadataName(kind, name string) bool {
	if protocol.ValidName(name) {
		return true
	}
	b.config.Logger.Warnf("skipping creation of invalid %s %s", kind, name)
	return false
}
