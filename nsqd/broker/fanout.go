package broker

import (
	"errors"
	"math"
	"time"

	"nsq/internal/protocol"
)

// The way of messages from a topic to its channels. Whoever has the topic's fan hands over: its pump
// or, where there is no backlog and no room in memory, a publisher.

const (
	// topicBatch is the most messages that a topic's pump hands over at a time.
	topicBatch = 512
	// diskRetry is how long a pump waits before it offers a batch again to a channel that could
	// not store it, or reads again what could not be read.
	diskRetry = 250 * time.Millisecond
)

// passThrough hands a batch that memory has no room for straight to the channels, where the topic
// has no backlog that must go before it. That saves the way through the topic's own overflow.
func (t *Topic) passThrough(batch *Batch) (passed bool, err error) {
	t.fan.Lock()
	defer t.fan.Unlock()
	channels := t.receivers()
	if len(channels) == 0 || t.depthOfQueue() > 0 {
		return false, nil
	}
	for _, c := range channels {
		if err := c.put(batch.messages); err != nil && !errors.Is(err, errClosed) {
			return true, err
		}
	}
	return true, nil
}

func (t *Topic) depthOfQueue() int64 {
	all, _ := t.queue.depth()
	return all
}

// receivers returns the channels to hand over to, none while the topic is paused or still learning
// which channels it has.
func (t *Topic) receivers() []*Channel {
	if t.paused.Load() || t.learning.Load() {
		return nil
	}
	return t.Channels()
}

// wakePump starts the pump when there is something to do for the first time. A running one is
// woken by the queue itself.
func (t *Topic) wakePump() {
	if t.pumping.Load() {
		return
	}
	if t.Depth() > 0 && len(t.receivers()) > 0 {
		t.startPump.Do(func() {
			t.pumping.Store(true)
			go t.messagePump()
		})
	}
}

// receiversChanged wakes the pump after there may be more for it to do.
func (t *Topic) receiversChanged() {
	t.waiter.signal()
	t.wakePump()
}

// messagePump moves messages from the topic to its channels, a batch at a time, until stop.
func (t *Topic) messagePump() {
	defer close(t.pumped)
	var batch Batch
	for {
		left, more := t.handOver(&batch)
		if len(left) > 0 && !t.handOverRest(batch.messages, left) {
			return
		}
		if more {
			continue
		}
		select {
		case <-t.waiter.wake:
		case <-t.stop:
			return
		}
	}
}

// handOver takes a batch and offers it to every channel. It returns the channels that could not
// store it, and whether there may be more to hand over.
func (t *Topic) handOver(batch *Batch) (left []*Channel, more bool) {
	t.fan.Lock()
	defer t.fan.Unlock()
	batch.Reset()
	channels := t.receivers()
	if len(channels) == 0 || t.exiting.Load() {
		return nil, false
	}
	readable := t.take(batch)
	switch {
	case batch.Len() > 0:
	case !readable:
		time.AfterFunc(diskRetry, t.waiter.signal)
		return nil, false
	default:
		return nil, !t.queue.await(&t.waiter, topicBatch)
	}
	t.held.Store(int64(batch.Len() - batch.taken)) // those that were deferred; the queue counts the others
	left = offer(batch.messages, channels)
	held := 0
	if len(left) > 0 {
		held = batch.Len()
	}
	t.held.Store(int64(held))
	t.queue.arrived(batch)
	return left, true
}

// take fills the batch with what waits: deferred publishes first. It returns false if the overflow
// can not be read at the moment.
func (t *Topic) take(batch *Batch) (ok bool) {
	t.mu.Lock()
	batch.messages = t.deferred.pop(batch.messages, topicBatch)
	t.mu.Unlock()
	if batch.Len() > 0 {
		return true
	}
	err := t.queue.take(batch, topicBatch, &t.waiter)
	if err != nil {
		t.broker.config.Logger.Errorf("TOPIC(%s): failed to read messages from backend - %s", t.name, err)
	}
	if !t.delays.any.Load() {
		return err == nil
	}
	for i := range batch.messages {
		m := &batch.messages[i]
		if after, ok := t.delays.take(m.id()); ok {
			m.delay = uint32(min(max(after/int64(time.Millisecond), 0), math.MaxUint32))
		}
	}
	return err == nil
}

// offer puts a batch on each channel and returns those that could not store it.
func offer(batch []Message, channels []*Channel) (left []*Channel) {
	for _, c := range channels {
		switch err := c.put(batch); {
		case err == nil, errors.Is(err, errClosed):
		default:
			c.topic.broker.config.Logger.Errorf("CHANNEL(%s): failed to write message to backend - %s", c.name, err)
			left = append(left, c)
		}
	}
	return left
}

// handOverRest offers a batch again to the channels that could not store it, until they can. It
// returns false when the topic stops; then memory holds what the disk does not take.
func (t *Topic) handOverRest(batch []Message, left []*Channel) bool {
	defer t.held.Store(0)
	retry := time.NewTimer(diskRetry)
	defer retry.Stop()
	for len(left) > 0 {
		select {
		case <-retry.C:
			left = offer(batch, left)
			retry.Reset(diskRetry)
		case <-t.stop:
			for _, c := range left {
				c.keep(batch)
			}
			return false
		}
	}
	return true
}

// learnChannels begins to ask for the channels that the topic has elsewhere, and to create them,
// before a message leaves the topic. The channel that it returns is closed at the end of that.
func (t *Topic) learnChannels() (learned chan struct{}) {
	learned = make(chan struct{})
	if t.broker.config.KnownChannels == nil {
		close(learned)
		return learned
	}
	t.learning.Store(true)
	t.broker.loops.Go(func() {
		defer close(learned)
		for _, name := range t.broker.config.KnownChannels(t.broker.ctx, t.name) {
			if !protocol.ValidName(name) || protocol.IsEphemeral(name) {
				continue
			}
			if _, err := t.Channel(name); err != nil {
				t.broker.config.Logger.Warnf("TOPIC(%s): failed to create channel %s - %s", t.name, name, err)
			}
		}
		t.learning.Store(false)
		t.receiversChanged()
	})
	return learned
}

// endPump stops the pump and waits for its end.
func (t *Topic) endPump() {
	close(t.stop)
	started := true
	t.startPump.Do(func() { started = false })
	if started {
		<-t.pumped
	}
}
