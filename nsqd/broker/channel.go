package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nsq/internal/protocol"
	"nsq/internal/quantile"
)

// deliveryBatch is the most messages that a subscription takes at a time.
const deliveryBatch = 128

// Channel keeps a topic's messages for one group of consumers, each message for one of them. Its
// methods may be called from any goroutine.
type Channel struct {
	topic      *Topic
	name       string
	ephemeral  bool
	generation uint64
	queue      queue
	deferred   deferred
	delays     delays // when the deferred messages that the overflow holds are due
	entry      scanEntry
	latency    *quantile.Window // from publish to FIN; nil where that is not measured

	messageCount  atomic.Uint64
	deliveryCount atomic.Uint64
	finishCount   atomic.Uint64
	requeueCount  atomic.Uint64
	timeoutCount  atomic.Uint64
	fromMemory    [proximities]atomic.Uint64 // deliveries from memory, by how near the consumer is
	paused        atomic.Bool
	exiting       atomic.Bool
	kept          atomic.Bool // its name is in the metadata

	gate sync.RWMutex // read-held while messages go from a flight back to the queue, so that closing can wait for it

	mu            sync.RWMutex    // guards the following
	subscriptions []*Subscription // replaced, never changed
}

func newChannel(t *Topic, name string) (*Channel, error) {
	config := &t.broker.config
	c := &Channel{topic: t, name: name, ephemeral: protocol.IsEphemeral(name), generation: t.broker.generations.Add(1), latency: config.Latency.NewWindow()}
	c.entry = scanEntry{index: -1, channel: c}
	c.entry.registered.Store(never)
	over, err := config.Store.OpenQueue(t.name, name)
	if err != nil {
		return nil, fmt.Errorf("open queue of channel %s of topic %s: %w", name, t.name, err)
	}
	c.queue = queue{
		capacity:      config.MemQueueSize,
		over:          over,
		onlyToWaiters: c.ephemeral && config.MemQueueSize == 0,
	}
	if err := c.delays.load(config.Store, t.name, name); err != nil {
		return nil, errors.Join(err, over.Close())
	}
	return c, nil
}

// Name returns the name.
func (c *Channel) Name() string { return c.name }

// Generation tells the channel from an earlier or later one of the same name.
func (c *Channel) Generation() uint64 { return c.generation }

// put takes a batch from the topic: all of it or, with an error, nothing.
func (c *Channel) put(batch []Message) error { return c.receive(batch, c.queue.put) }

// keep is put for a batch that can not wait until the disk takes it.
func (c *Channel) keep(batch []Message) {
	c.receive(batch, func(now []Message) error {
		c.putBack(now)
		return nil
	})
}

// receive puts a batch from the topic into the queue, but for what is deferred, which it sets aside.
func (c *Channel) receive(batch []Message, put func([]Message) error) error {
	now := batch
	if slices.ContainsFunc(batch, func(m Message) bool { return m.delay > 0 }) {
		now = make([]Message, 0, len(batch))
		for _, m := range batch {
			if m.delay == 0 {
				now = append(now, m)
			}
		}
	}
	if len(now) > 0 {
		if err := put(now); err != nil {
			return err
		}
	}
	if len(now) < len(batch) {
		clock := c.topic.broker.mono()
		for _, m := range batch {
			if m.delay > 0 {
				due := clock + int64(time.Duration(m.delay)*time.Millisecond)
				m.delay = 0
				c.deferUntil(m, due)
			}
		}
	}
	c.messageCount.Add(uint64(len(batch)))
	return nil
}

// putBack returns messages to the tail of the queue. Nothing is lost while the channel exists.
func (c *Channel) putBack(batch []Message) {
	c.queue.moving.Add(int64(len(batch)))
	defer c.queue.moving.Add(int64(-len(batch)))
	if err := c.queue.putBack(batch); err != nil && !c.exiting.Load() {
		c.topic.broker.config.Logger.Errorf("CHANNEL(%s): failed to put back %d messages - %s", c.name, len(batch), err)
	}
}

// deferUntil sets a message aside until due.
func (c *Channel) deferUntil(m Message, due int64) {
	c.deferred.put(m.alone(), due)
	c.topic.broker.scan.schedule(&c.entry, due)
}

// take fills batch with up to limit messages for a subscription. What the overflow gives back
// before it is due is set aside. It returns false if the overflow can not be read at the moment.
func (c *Channel) take(batch *Batch, limit int, w *waiter) (ok bool) {
	err := c.queue.take(batch, limit, w)
	if err != nil {
		c.topic.broker.config.Logger.Errorf("CHANNEL(%s): failed to read messages from backend - %s", c.name, err)
	}
	if !c.delays.any.Load() {
		return err == nil
	}
	var wall time.Time
	batch.messages = slices.DeleteFunc(batch.messages, func(m Message) bool {
		at, ok := c.delays.take(m.id())
		if !ok {
			return false
		}
		if wall.IsZero() {
			wall = c.topic.broker.config.Now()
		}
		wait := at - wall.UnixNano()
		if wait <= 0 {
			return false
		}
		c.deferUntil(m, int64(wall.Sub(c.topic.broker.start))+wait)
		return true
	})
	return err == nil
}

// expire moves what is over, in flight or deferred, to the tail of the queue. The scan calls it.
func (c *Channel) expire(now int64) {
	next := never
	for _, s := range c.Subscriptions() {
		expired, due := s.flight.expire(nil, now)
		next = min(next, due)
		if len(expired) > 0 {
			c.timeoutCount.Add(uint64(len(expired)))
			c.putBack(alone(expired))
			s.windowOpened()
		}
	}
	expired, due := c.deferred.expire(nil, now)
	c.putBack(expired)
	c.topic.broker.scan.schedule(&c.entry, min(next, due))
}

// alone gives each message memory of its own: it has stayed longer than its batch.
func alone(batch []Message) []Message {
	for i := range batch {
		batch[i] = batch[i].alone()
	}
	return batch
}

// Subscriptions returns those who are subscribed. The slice must not be changed.
func (c *Channel) Subscriptions() []*Subscription {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.subscriptions
}

// messagePump delivers to one subscription until it is closed: while the window is open it takes a
// batch, marks it in flight, and hands it to the consumer, which is told to flush as soon as there is
// nothing more to take.
func (c *Channel) messagePump(s *Subscription) {
	defer close(s.pumped)
	defer c.queue.leave(&s.waiter)
	var batch Batch
	for !s.closed.Load() {
		batch.Reset()
		window, readable := s.window(), true
		if window > 0 {
			readable = c.take(&batch, int(min(window, deliveryBatch)), &s.waiter)
		}
		var err error
		switch {
		case batch.Len() > 0:
			err = s.deliver(&batch)
		case !readable:
			err = s.retryLater()
		default:
			err = s.rest(window)
		}
		c.queue.arrived(&batch)
		if err != nil {
			s.consumer.Close(err)
			<-s.stop
		}
	}
}

// Pause stops deliveries, Unpause resumes them. When they return nil the new state is in the metadata.
func (c *Channel) Pause() error { return c.setPaused(true) }

// Unpause is the opposite of Pause.
func (c *Channel) Unpause() error { return c.setPaused(false) }

func (c *Channel) setPaused(paused bool) error {
	c.paused.Store(paused)
	for _, s := range c.Subscriptions() {
		s.windowOpened()
	}
	if c.ephemeral || c.topic.ephemeral {
		return nil
	}
	return c.topic.broker.save()
}

// Empty drops everything: what waits, what is in flight and what is deferred.
func (c *Channel) Empty() error {
	err := errors.Join(c.queue.empty(), c.delays.clear())
	c.deferred.drain()
	for _, s := range c.Subscriptions() {
		s.flight.drain(nil)
		s.windowOpened()
	}
	return err
}

// subscribe enters a subscription, unless the channel is going away or full.
func (c *Channel) subscribe(s *Subscription, limit int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exiting.Load() {
		return ErrExiting
	}
	if limit > 0 && len(c.subscriptions) >= limit {
		return ErrTooManyConsumers
	}
	c.subscriptions = append(slices.Clip(c.subscriptions), s)
	return nil
}

// unsubscribe takes a subscription out and says whether it was the last one.
func (c *Channel) unsubscribe(s *Subscription) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions = slices.DeleteFunc(slices.Clone(c.subscriptions), func(other *Subscription) bool { return other == s })
	return len(c.subscriptions) == 0
}

// claim marks the channel as one that is going away; only one caller can. With unused set it does
// so only while the channel has no consumer.
func (c *Channel) claim(unused bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unused && len(c.subscriptions) > 0 {
		return false
	}
	return !c.exiting.Swap(true)
}

// closeConsumers makes all consumers go. The channel has been claimed: nobody comes any more.
func (c *Channel) closeConsumers() {
	for _, s := range c.Subscriptions() {
		s.consumer.Close(ErrExiting)
	}
}

// close writes out everything that the channel holds: waiting, in flight, deferred. The topic's
// pump and the scan have ended.
func (c *Channel) close() error {
	broker := c.topic.broker
	broker.config.Logger.Infof("CHANNEL(%s): closing", c.name)
	c.claim(false)
	waitTurn(&c.gate)
	c.closeConsumers()
	var inFlight []Message
	for _, s := range c.Subscriptions() {
		s.halt()
		inFlight = s.flight.drain(inFlight)
	}
	waiting := c.deferred.drain()
	if c.topic.ephemeral || c.ephemeral {
		return errors.Join(c.queue.delete(), c.delays.clear())
	}
	all, onDisk := c.queue.depth()
	if memory := all - onDisk; memory+int64(len(inFlight)+len(waiting)) > 0 {
		broker.config.Logger.Infof("CHANNEL(%s): flushing %d memory %d in-flight %d deferred messages to backend",
			c.name, memory, len(inFlight), len(waiting))
	}
	more := inFlight
	for i := range waiting {
		m := &waiting[i].message
		c.delays.add(m.id(), broker.start.Add(time.Duration(waiting[i].due)).UnixNano())
		more = append(more, *m)
	}
	failed := c.delays.save()
	if lost, err := c.queue.close(more); err != nil {
		failed = errors.Join(failed, fmt.Errorf("close channel %s of topic %s: %d messages lost: %w", c.name, c.topic.name, lost, err))
	}
	return failed
}

// remove deletes everything that the channel holds. It is exiting already, and out of its topic.
func (c *Channel) remove() error {
	c.topic.broker.config.Logger.Infof("CHANNEL(%s): deleting", c.name)
	waitTurn(&c.topic.fan) // a hand-over that still knows the channel ends first
	c.closeConsumers()
	c.topic.broker.scan.forget(&c.entry)
	c.deferred.drain()
	c.topic.broker.config.Health.Set(queueName(c.topic.name, c.name), nil)
	return errors.Join(c.queue.delete(), c.delays.clear())
}
