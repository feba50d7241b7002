package broker

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"nsq/internal/protocol"
)

// delivery is a message as a client got it.
type delivery struct {
	id       protocol.ID
	body     string
	attempts uint16
	at       time.Time
}

// client is a Consumer together with the session that owns its subscription: when it is closed it
// leaves the channel, as a connection does.
type client struct {
	sub  *Subscription
	done chan struct{} // closed when the subscription has been closed

	once   sync.Once
	closed chan struct{}

	mu      sync.Mutex
	got     []delivery
	batches []int // sizes
	flushes int
	dirty   bool
	reason  error
	fail    error         // of the next Deliver or Flush
	hold    chan struct{} // Deliver waits for it; may be nil
	finish  bool          // finish everything at once
}

func (c *client) Deliver(batch []Message) error {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-c.closed:
			return errors.New("closed while writing")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	var ids []protocol.ID
	for i := range batch {
		d, err := protocol.DecodeMessage(batch[i].AppendFrame(nil)[protocol.FrameHeaderSize:])
		if err != nil {
			return err
		}
		c.got = append(c.got, delivery{d.ID, string(d.Body), d.Attempts, time.Now()})
		ids = append(ids, d.ID)
	}
	c.batches = append(c.batches, len(batch))
	c.dirty = true
	if c.finish {
		c.sub.Finish(ids)
	}
	return nil
}

func (c *client) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushes++
	c.dirty = false
	return c.fail
}

func (c *client) Close(reason error) {
	c.once.Do(func() {
		c.mu.Lock()
		c.reason = reason
		c.mu.Unlock()
		close(c.closed)
	})
}

// subscribe makes a client of a channel; how changes it before its window opens to ready messages.
func subscribe(t testing.TB, b *Broker, topic, channel string, ready int64, how ...func(*client, *SubscriptionConfig)) *client {
	t.Helper()
	c, err := trySubscribe(b, topic, channel, ready, how...)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	return c
}

func trySubscribe(b *Broker, topic, channel string, ready int64, how ...func(*client, *SubscriptionConfig)) (*client, error) {
	c := &client{done: make(chan struct{}), closed: make(chan struct{})}
	config := SubscriptionConfig{MsgTimeout: time.Minute}
	for _, change := range how {
		change(c, &config)
	}
	sub, err := b.Subscribe(topic, channel, c, config)
	if err != nil {
		return nil, err
	}
	c.sub = sub
	go func() {
		defer close(c.done)
		<-c.closed
		sub.Close()
	}()
	sub.SetReady(ready)
	return c, nil
}

func finishing(c *client, _ *SubscriptionConfig) { c.finish = true }

func timeout(d time.Duration) func(*client, *SubscriptionConfig) {
	return func(_ *client, config *SubscriptionConfig) { config.MsgTimeout = d }
}

// disconnect ends the client as a lost connection does.
func (c *client) disconnect() {
	c.Close(nil)
	<-c.done
}

func (c *client) deliveries() []delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

func (c *client) bodies() []string {
	var all []string
	for _, d := range c.deliveries() {
		all = append(all, d.body)
	}
	return all
}

// batchSizes are those of the batches that were delivered.
func (c *client) batchSizes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.batches)
}

func (c *client) flushCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushes
}

// isDirty says whether something was delivered and not flushed.
func (c *client) isDirty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dirty
}

func (c *client) closeReason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// last is the delivery that came last.
func (c *client) last(t testing.TB) delivery {
	t.Helper()
	all := c.deliveries()
	if len(all) == 0 {
		t.Fatal("nothing was delivered")
	}
	return all[len(all)-1]
}

func (c *client) setFail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

// finishAll finishes everything that was delivered so far, and forgets it.
func (c *client) finishAll() (failed int) {
	c.mu.Lock()
	var ids []protocol.ID
	for _, d := range c.got {
		ids = append(ids, d.id)
	}
	c.got = nil
	c.mu.Unlock()
	return len(c.sub.Finish(ids))
}

func (c *client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
