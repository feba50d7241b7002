package broker

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"nsq/internal/protocol"
)

// Consumer is what a subscription delivers to: the connection of a client. The subscription's pump
// calls Deliver and Flush, one at a time.
type Consumer interface {
	// Deliver writes the frames of a batch, which is its own only until it returns, to the output.
	Deliver(batch []Message) error
	// Flush sends what has been written.
	Flush() error
	// Close ends the connection. It may be called from any goroutine, more than once, and does not
	// block; the owner of the subscription closes that.
	Close(reason error)
}

// SubscriptionConfig is what a client has negotiated.
type SubscriptionConfig struct {
	MsgTimeout time.Duration // of a message in flight
	SampleRate int32         // percent of the messages that are delivered; 0 is all
	// FlushDelay is how long written frames may stay while the client could take more. 0 flushes as soon as there is
	// nothing more to take.
	FlushDelay time.Duration
	Proximity  Proximity // how near the client is; Anywhere where that does not matter
}

// Subscription is one client's part in a channel: its window, its messages in flight and its pump.
// Its methods may be called from any goroutine.
type Subscription struct {
	channel  *Channel
	consumer Consumer
	config   SubscriptionConfig
	flight   flight
	waiter   waiter // wakes the pump, for the queue as for the window

	blocked   atomic.Bool // the pump waits for the window
	closed    atomic.Bool
	stop      chan struct{} // closed with closed
	pumped    chan struct{} // closed by the pump when it ends
	unflushed time.Time     // when the oldest frame that is not flushed was written; the pump's own

	messageCount atomic.Uint64
	finishCount  atomic.Uint64
	requeueCount atomic.Uint64
}

// goneWait is how long Subscribe waits for an ephemeral topic or channel that is going away, and
// goneTries how often it tries anew.
const (
	goneWait  = 100 * time.Millisecond
	goneTries = 3
)

// Subscribe makes the consumer a client of the channel; topic and channel are created as needed.
// The window is closed until SetReady. Errors are ErrExiting, ErrTooManyConsumers and those of Topic and Channel.
func (b *Broker) Subscribe(topic, channel string, consumer Consumer, config SubscriptionConfig) (*Subscription, error) {
	var err error
	for try := range goneTries {
		if try > 0 {
			time.Sleep(goneWait) // an ephemeral one goes in the meantime and can be made anew
		}
		var s *Subscription
		s, err = b.trySubscribe(topic, channel, consumer, config)
		ephemeral := protocol.IsEphemeral(topic) || protocol.IsEphemeral(channel)
		if err == nil || !ephemeral || !errors.Is(err, ErrExiting) || b.isClosed() {
			return s, err
		}
	}
	return nil, err
}

func (b *Broker) trySubscribe(topic, channel string, consumer Consumer, config SubscriptionConfig) (*Subscription, error) {
	t, err := b.Topic(topic)
	if err != nil {
		return nil, err
	}
	c, err := t.Channel(channel)
	if err != nil {
		return nil, err
	}
	s := &Subscription{
		channel:  c,
		consumer: consumer,
		config:   config,
		waiter:   newWaiter(config.Proximity),
		stop:     make(chan struct{}),
		pumped:   make(chan struct{}),
	}
	s.flight.init()
	if err := c.subscribe(s, b.config.MaxChannelConsumers); err != nil {
		return nil, err
	}
	go c.messagePump(s)
	return s, nil
}

// SetReady sets RDY: the most messages that may be in flight.
func (s *Subscription) SetReady(n int64) {
	s.flight.setReady(n)
	s.windowOpened()
}

// Finish ends the messages with these ids. It returns those that could not be, in order.
func (s *Subscription) Finish(ids []protocol.ID) (failed []protocol.ID) {
	finished, failed := s.finish(ids)
	s.finishCount.Add(uint64(finished))
	s.channel.finishCount.Add(uint64(finished))
	if finished > 0 {
		s.windowOpened()
	}
	return failed
}

// finish takes messages out of flight, and measures how long it took from their publishing to now.
func (s *Subscription) finish(ids []protocol.ID) (finished int, failed []protocol.ID) {
	c := s.channel
	if c.latency == nil {
		return s.flight.finish(ids, nil)
	}
	times := make([]int64, 0, len(ids))
	finished, failed = s.flight.finish(ids, &times)
	now := c.topic.broker.config.Now()
	for i := range times {
		times[i] = max(now.UnixNano()-times[i], 0)
	}
	c.latency.Insert(int64(now.Sub(c.topic.broker.start)), times)
	return finished, failed
}

// Requeue gives a message back, to be delivered to anyone again: at once, or after a delay. It
// returns ErrNotFound if the message is not in flight here, and ErrExiting.
func (s *Subscription) Requeue(id protocol.ID, delay time.Duration) error {
	c := s.channel
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.exiting.Load() {
		return ErrExiting
	}
	m, ok := s.flight.requeue(id)
	if !ok {
		return ErrNotFound
	}
	s.requeueCount.Add(1)
	c.requeueCount.Add(1)
	if delay > 0 {
		c.deferUntil(m, c.topic.broker.mono()+int64(delay))
	} else {
		c.putBack([]Message{m})
	}
	s.windowOpened()
	return nil
}

// Touch gives a message its whole timeout anew, within the limit from its delivery.
func (s *Subscription) Touch(id protocol.ID) bool {
	b := s.channel.topic.broker
	return s.flight.touch(id, b.mono(), int64(s.config.MsgTimeout), int64(b.config.MaxMsgTimeout))
}

// HeldByOther says whether the message is in flight for another client of the channel: it tells two
// ways apart in which Finish, Requeue and Touch can fail.
func (s *Subscription) HeldByOther(id protocol.ID) bool {
	for _, other := range s.channel.Subscriptions() {
		if other != s && other.flight.holds(id) {
			return true
		}
	}
	return false
}

// Close takes the client out of the channel and gives what it had in flight back at once. The
// consumer must have been closed, or its pump could keep Close waiting. An ephemeral channel goes with its last client.
func (s *Subscription) Close() error {
	s.halt()
	c := s.channel
	if s.giveBack() && c.ephemeral {
		if err := c.topic.deleteChannel(c, true); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// giveBack leaves the channel with what was in flight, and says whether that was the last client.
// A channel that is going away sees to the messages itself.
func (s *Subscription) giveBack() (last bool) {
	c := s.channel
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.exiting.Load() {
		return false
	}
	last = c.unsubscribe(s)
	c.putBack(alone(s.flight.drain(nil)))
	return last
}

// halt ends the pump and waits for its end.
func (s *Subscription) halt() {
	if !s.closed.Swap(true) {
		close(s.stop)
	}
	s.waiter.signal()
	<-s.pumped
}

// window is how many more messages the client can take now.
func (s *Subscription) window() int64 {
	if s.channel.paused.Load() || s.channel.topic.broker.quiet.Load() {
		return 0
	}
	return s.flight.window()
}

// windowOpened wakes the pump if it waits for the window. It is called after every change that may
// have opened it.
func (s *Subscription) windowOpened() {
	if s.blocked.Load() && s.blocked.Swap(false) {
		s.waiter.signal()
	}
}

// deliver marks a batch in flight and writes it out.
func (s *Subscription) deliver(batch *Batch) error {
	c := s.channel
	s.sample(batch)
	messages := batch.messages
	now := c.topic.broker.config.Now()
	taken, due := s.flight.deliver(messages, int64(now.Sub(c.topic.broker.start)), int64(s.config.MsgTimeout))
	if taken < len(messages) { // the window has become smaller in the meantime
		c.putBack(messages[taken:])
	}
	c.queue.arrived(batch)
	if taken == 0 {
		return nil
	}
	c.topic.broker.scan.schedule(&c.entry, due)
	s.messageCount.Add(uint64(taken))
	c.deliveryCount.Add(uint64(taken))
	c.topic.broker.measureDelivery(messages[:taken], now)
	if !batch.onDisk {
		c.fromMemory[s.config.Proximity].Add(uint64(taken))
	}
	if s.config.FlushDelay > 0 && s.unflushed.IsZero() {
		s.unflushed = time.Now()
	}
	return s.consumer.Deliver(messages[:taken])
}

// sample discards what this client's sample rate leaves out: it is gone for the channel.
func (s *Subscription) sample(batch *Batch) {
	if s.config.SampleRate <= 0 {
		return
	}
	kept := batch.messages[:0]
	for _, m := range batch.messages {
		if rand.Int32N(100) < s.config.SampleRate {
			kept = append(kept, m)
		}
	}
	clear(batch.messages[len(kept):])
	batch.messages = kept
}

// rest flushes and waits until there may be something to deliver: for the window where that was
// closed, else for the queue.
func (s *Subscription) rest(window int64) error {
	queue := &s.channel.queue
	if window <= 0 {
		s.blocked.Store(true)
		if s.window() > 0 || s.closed.Load() {
			s.blocked.Store(false)
			return nil
		}
		queue.leave(&s.waiter) // what it was woken for is for others
	} else if !queue.await(&s.waiter, window) {
		return nil
	}
	var held <-chan time.Time
	if window > 0 && !s.unflushed.IsZero() {
		timer := time.NewTimer(time.Until(s.unflushed.Add(s.config.FlushDelay)))
		defer timer.Stop()
		held = timer.C
	} else if err := s.flush(); err != nil {
		return err
	}
	select {
	case <-s.waiter.wake:
		return nil
	case <-s.stop:
		return nil
	case <-held:
		return s.flush()
	}
}

// retryLater flushes and waits a while, after the overflow could not be read.
func (s *Subscription) retryLater() error {
	if err := s.flush(); err != nil {
		return err
	}
	select {
	case <-time.After(diskRetry):
	case <-s.stop:
	}
	return nil
}

func (s *Subscription) flush() error {
	s.unflushed = time.Time{}
	return s.consumer.Flush()
}
