package broker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nsq/internal/protocol"
)

// Topic takes messages from publishers and hands each to all of its channels. Its methods may be
// called from any goroutine.
type Topic struct {
	broker     *Broker
	name       string
	ephemeral  bool
	generation uint64
	queue      queue
	delays     delays // how long the deferred messages that the overflow holds are to wait on a channel

	messageCount atomic.Uint64
	messageBytes atomic.Uint64
	paused       atomic.Bool
	exiting      atomic.Bool
	kept         atomic.Bool // its name is in the metadata
	learning     atomic.Bool // the channels known elsewhere are still being asked for

	gate sync.RWMutex // read-held by publishers, so that closing can wait for them
	fan  sync.Mutex   // the turn to hand over to the channels: the pump's, or a publisher's

	held      atomic.Int64 // messages that the pump has in hand and the queue does not count
	pumping   atomic.Bool
	startPump sync.Once
	waiter    waiter        // the pump's
	stop      chan struct{} // closed to end the pump
	pumped    chan struct{} // closed by the pump when it ends

	lifecycle sync.Mutex // the turn to create or delete a channel

	mu       sync.RWMutex // guards the following
	channels map[string]*Channel
	sorted   []*Channel // the same by name; replaced, never changed
	deferred ring       // deferred publishes that wait for the hand-over, where their delay begins
}

// newTopic opens a topic. One that was not restored but is new learns which channels it has
// elsewhere before anything leaves it.
func newTopic(b *Broker, name string) (*Topic, error) {
	t := &Topic{
		broker:     b,
		name:       name,
		ephemeral:  protocol.IsEphemeral(name),
		generation: b.generations.Add(1),
		waiter:     newWaiter(Anywhere),
		stop:       make(chan struct{}),
		pumped:     make(chan struct{}),
		channels:   make(map[string]*Channel),
	}
	over, err := b.config.Store.OpenQueue(name, "")
	if err != nil {
		return nil, fmt.Errorf("open queue of topic %s: %w", name, err)
	}
	t.queue = queue{capacity: b.config.MemQueueSize, over: over}
	if err := t.delays.load(b.config.Store, name, ""); err != nil {
		return nil, errors.Join(err, over.Close())
	}
	return t, nil
}

// Name returns the name.
func (t *Topic) Name() string { return t.name }

// Generation tells the topic from an earlier or later one of the same name.
func (t *Topic) Generation() uint64 { return t.generation }

// Exiting says whether the topic is deleted or closed, or about to be.
func (t *Topic) Exiting() bool { return t.exiting.Load() }

// Publish takes a batch: when it returns nil, the messages are in memory or on disk as the store
// promises, all of them. With an error none is, except on channels that had theirs before another
// one's disk failed. Order is kept. The batch must be deferred as a whole or not at all.
func (t *Topic) Publish(batch *Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	t.gate.RLock()
	defer t.gate.RUnlock()
	if t.exiting.Load() {
		return ErrExiting
	}
	now := t.broker.config.Now().UnixNano()
	batch.stamp(now, t.broker.ids.take(now, batch.Len()))
	if err := t.accept(batch); err != nil {
		return err
	}
	t.messageCount.Add(uint64(batch.Len()))
	t.messageBytes.Add(uint64(batch.bodies))
	t.wakePump()
	return nil
}

func (t *Topic) accept(batch *Batch) error {
	deferral := batch.messages[0].delay > 0
	if deferral && !t.ephemeral {
		t.putDeferred(batch.messages)
		return nil
	}
	if batch.Len() > t.queue.room() {
		if passed, err := t.passThrough(batch); passed {
			return err
		}
	}
	if deferral {
		// What an ephemeral topic has no room for is dropped, deferred or not.
		room := min(t.queue.room(), batch.Len())
		t.putDeferred(batch.messages[:room])
		return nil
	}
	return t.queue.put(batch.messages)
}

// putDeferred keeps deferred publishes in memory until the hand-over: a record on disk could not
// tell their delay.
func (t *Topic) putDeferred(messages []Message) {
	t.mu.Lock()
	for _, m := range messages {
		m = m.alone()
		t.deferred.push([]Message{m})
	}
	t.mu.Unlock()
	t.waiter.signal()
}

// Channels returns all channels, sorted by name. The slice must not be changed.
func (t *Topic) Channels() []*Channel {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sorted
}

// Depth is how many messages wait in the topic itself.
func (t *Topic) Depth() int64 {
	t.mu.RLock()
	waiting := t.deferred.len()
	t.mu.RUnlock()
	return t.depthOfQueue() + int64(waiting) + t.held.Load()
}

// FindChannel returns the channel if it exists.
func (t *Topic) FindChannel(name string) (*Channel, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c, ok := t.channels[name]
	if !ok {
		return nil, fmt.Errorf("channel %q of topic %q: %w", name, t.name, ErrNotFound)
	}
	return c, nil
}

// Channel returns the channel, which it creates if there is none, for a valid name. A new one is
// in the metadata when Channel returns, unless that could not be written, which is logged and shows in
// the broker's Health.
func (t *Topic) Channel(name string) (*Channel, error) {
	c, created, err := t.ensureChannel(name)
	if err != nil {
		return nil, err
	}
	if created {
		t.broker.config.Logger.Infof("TOPIC(%s): new channel(%s)", t.name, name)
		t.broker.config.Changed()
	}
	t.broker.keep(t.ephemeral || c.ephemeral, &c.kept)
	if !created {
		return c, nil
	}
	t.receiversChanged()
	return c, nil
}

// ensureChannel returns the channel and whether it was made just now.
func (t *Topic) ensureChannel(name string) (c *Channel, created bool, err error) {
	if c, err := t.FindChannel(name); err == nil {
		return c, false, nil
	}
	t.lifecycle.Lock()
	defer t.lifecycle.Unlock()
	if c, err := t.FindChannel(name); err == nil {
		return c, false, nil
	}
	if t.exiting.Load() {
		return nil, false, ErrExiting
	}
	if c, err = newChannel(t, name); err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	t.channels[name] = c
	t.sortLocked()
	t.mu.Unlock()
	t.broker.channelCount.Add(1)
	return c, true, nil
}

// sortLocked makes the list of channels anew after one came or went.
func (t *Topic) sortLocked() {
	sorted := make([]*Channel, 0, len(t.channels))
	for _, c := range t.channels {
		sorted = append(sorted, c)
	}
	slices.SortFunc(sorted, func(x, y *Channel) int { return cmp.Compare(x.name, y.name) })
	t.sorted = sorted
}

// DeleteChannel removes a channel with all that it holds. Its consumers are closed. An ephemeral
// topic goes with its last channel.
func (t *Topic) DeleteChannel(name string) error {
	c, err := t.FindChannel(name)
	if err != nil {
		return err
	}
	return t.deleteChannel(c, false)
}

// deleteChannel removes a channel; with unused set only if it has no consumer.
func (t *Topic) deleteChannel(c *Channel, unused bool) error {
	t.lifecycle.Lock()
	if !c.claim(unused) {
		t.lifecycle.Unlock()
		return fmt.Errorf("channel %q of topic %q: %w", c.name, t.name, ErrNotFound)
	}
	t.broker.config.Logger.Infof("TOPIC(%s): deleting channel %s", t.name, c.name)
	err := t.drop(c)
	left := len(t.Channels())
	t.lifecycle.Unlock()

	t.broker.config.Changed()
	if t.ephemeral && left == 0 {
		if gone := t.broker.deleteTopic(t, true); !errors.Is(gone, ErrNotFound) {
			err = errors.Join(err, gone)
		}
	}
	if t.ephemeral || c.ephemeral {
		return err
	}
	return errors.Join(err, t.broker.save())
}

// drop takes a channel that is exiting out of the topic and deletes it. The caller has the turn.
func (t *Topic) drop(c *Channel) error {
	t.mu.Lock()
	delete(t.channels, c.name)
	t.sortLocked()
	t.mu.Unlock()
	t.broker.channelCount.Add(-1)
	return c.remove()
}

// Pause stops the hand-over to the channels, Unpause resumes it. When they return nil the new state
// is in the metadata.
func (t *Topic) Pause() error { return t.setPaused(true) }

// Unpause is the opposite of Pause.
func (t *Topic) Unpause() error { return t.setPaused(false) }

func (t *Topic) setPaused(paused bool) error {
	t.paused.Store(paused)
	if paused {
		waitTurn(&t.fan) // a hand-over that has begun ends first
	} else {
		t.receiversChanged()
	}
	if t.ephemeral {
		return nil
	}
	return t.broker.save()
}

// Empty drops what waits in the topic itself.
func (t *Topic) Empty() error {
	t.mu.Lock()
	t.deferred.reset()
	t.mu.Unlock()
	return errors.Join(t.queue.empty(), t.delays.clear())
}

// refuse turns away publishers from now on, and waits for those that are in the middle of it.
func (t *Topic) refuse() {
	t.exiting.Store(true)
	waitTurn(&t.gate)
}

// waitTurn returns when whoever holds the lock has let go of it.
func waitTurn(l sync.Locker) {
	l.Lock()
	//lint:ignore SA2001 to have waited is all that is wanted
	l.Unlock()
}

// claim marks the topic as one that is being deleted; only one caller can. With unused set it
// does so only while the topic has no channel.
func (t *Topic) claim(unused bool) bool {
	t.lifecycle.Lock()
	defer t.lifecycle.Unlock()
	if unused && len(t.Channels()) > 0 {
		return false
	}
	return !t.exiting.Swap(true)
}

// close writes out the channels, then the topic. Publishers have been refused.
func (t *Topic) close() error {
	logger := t.broker.config.Logger
	logger.Infof("TOPIC(%s): closing", t.name)
	t.endPump()
	t.lifecycle.Lock()
	defer t.lifecycle.Unlock()
	var failed error
	for _, c := range t.Channels() {
		failed = errors.Join(failed, c.close())
	}
	all, onDisk := t.queue.depth()
	t.mu.Lock()
	waiting := t.deferred.pop(nil, t.deferred.len())
	t.mu.Unlock()
	if memory := all - onDisk + int64(len(waiting)); memory > 0 && !t.ephemeral {
		logger.Infof("TOPIC(%s): flushing %d memory messages to backend", t.name, memory)
	}
	for i := range waiting {
		t.delays.add(waiting[i].id(), int64(time.Duration(waiting[i].delay)*time.Millisecond))
	}
	failed = errors.Join(failed, t.delays.save())
	if lost, err := t.queue.close(waiting); err != nil {
		failed = errors.Join(failed, fmt.Errorf("close topic %s: %d messages lost: %w", t.name, lost, err))
	}
	return failed
}

// remove deletes the channels and everything that the topic holds. It is exiting already, and the
// caller has the broker's turn.
func (t *Topic) remove() error {
	t.refuse()
	t.endPump()
	t.lifecycle.Lock()
	defer t.lifecycle.Unlock()
	var failed error
	for _, c := range t.Channels() {
		c.claim(false)
		failed = errors.Join(failed, t.drop(c))
	}
	t.broker.config.Health.Set(queueName(t.name, ""), nil)
	return errors.Join(failed, t.queue.delete(), t.delays.clear())
}
