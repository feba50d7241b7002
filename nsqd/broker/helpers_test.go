package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/protocol"
	"nsq/internal/testutil"
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

// logTo makes the broker log to a buffer.
func logTo(j *testutil.Buffer) func(*Config) {
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
