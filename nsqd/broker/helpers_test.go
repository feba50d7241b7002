package broker

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/protocol"
)

// start begins a broker on a store. It is closed at the end of the test.
func start(t testing.TB, store Store, changes ...func(*Config)) *Broker {
	t.Helper()
	b, err := New(testConfig(store, changes...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func testConfig(store Store, changes ...func(*Config)) Config {
	config := Config{
		MemQueueSize: 1000, NodeID: 7, MaxMsgTimeout: 15 * time.Minute,
		QueueScanSelectionCount: 20, QueueScanWorkerPoolMax: 4,
		Store: store, Logger: log.Discard(),
	}
	for _, change := range changes {
		change(&config)
	}
	return config
}

func memory(messages int) func(*Config) { return func(c *Config) { c.MemQueueSize = messages } }

// logTo makes the broker log to a journal.
func logTo(j *journal) func(*Config) {
	return func(c *Config) { c.Logger = log.New(j, "", log.Debug) }
}

// onDisk is a store in a folder, with the settings of a real one.
func onDisk(path string) *ClassicStore {
	return &ClassicStore{Path: path, Queues: diskq.Config{
		Path: path, MaxBytesPerFile: 1 << 20, MinRecord: protocol.MessageHeaderSize, MaxRecord: 1 << 20,
		SyncEvery: 2500, SyncTimeout: 2 * time.Second, Logger: log.Discard(),
	}}
}

func closeBroker(t testing.TB, b *Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func topicOf(t testing.TB, b *Broker, name string) *Topic {
	t.Helper()
	topic, err := b.Topic(name)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

func channelOf(t testing.TB, topic *Topic, name string) *Channel {
	t.Helper()
	c, err := topic.Channel(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// batchOf is a batch with these bodies.
func batchOf(bodies ...string) *Batch {
	b := new(Batch)
	for _, body := range bodies {
		copy(b.Add(len(body)), body)
	}
	return b
}

func publish(t testing.TB, topic *Topic, bodies ...string) {
	t.Helper()
	if err := topic.Publish(batchOf(bodies...)); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

func publishDeferred(t testing.TB, topic *Topic, delay time.Duration, bodies ...string) {
	t.Helper()
	b := new(Batch)
	for _, body := range bodies {
		copy(b.Add(len(body)), body)
		b.Defer(uint32(delay.Milliseconds()))
	}
	if err := topic.Publish(b); err != nil {
		t.Fatalf("publish deferred: %v", err)
	}
}

// numbered is the bodies from, from+1, ... to-1, of one length so that they sort.
func numbered(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%06d", i))
	}
	return all
}

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
	dirty   bool // delivered and not flushed
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

func wantBodies(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %d %.300q\nwant %d %.300q", what, len(got), got, len(want), want)
	}
}

// wantSame compares without order.
func wantSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	wantBodies(t, what, got, want)
}

// stats is the one channel of a topic that the name matches.
func stats(t testing.TB, b *Broker, topic, channel string) ChannelStats {
	t.Helper()
	all := b.Stats(topic, channel)
	if len(all) != 1 || len(all[0].Channels) != 1 {
		t.Fatalf("no single channel %s of topic %s: %+v", channel, topic, all)
	}
	return all[0].Channels[0]
}

func depthOf(t testing.TB, b *Broker, topic string) int64 {
	t.Helper()
	all := b.Stats(topic, "")
	if len(all) != 1 {
		t.Fatalf("no topic %s", topic)
	}
	return all[0].Depth
}

// eventually waits for something that goroutines do in real time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// journal collects log lines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// lines are the texts that were logged at a level.
func (j *journal) lines(level string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for line := range strings.Lines(j.text.String()) {
		if _, text, ok := strings.Cut(line, " "+level+": "); ok {
			found = append(found, strings.TrimSuffix(text, "\n"))
		}
	}
	return found
}

// messages makes n messages with ids from first on; the body is the id in decimal.
func messages(first, n int) []Message {
	var b Batch
	for i := range n {
		body := fmt.Sprint(first + i)
		copy(b.Add(len(body)), body)
		protocol.PutMessageHeader(b.messages[i].record(), int64(first+i), 0, uint64(first+i))
	}
	return b.messages
}

func idOf(n int) protocol.ID {
	var id protocol.ID
	protocol.PutID(id[:], uint64(n))
	return id
}

func bodiesOf(batch []Message) []string {
	var all []string
	for i := range batch {
		all = append(all, string(batch[i].Body()))
	}
	return all
}
