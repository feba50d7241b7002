package broker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/protocol"
)

// Messages of topics that are published to at the same time never share an id.
func TestIDsAreUniqueAcrossTopics(t *testing.T) {
	b := start(t, newMemStore(), memory(10_000))
	var all sync.WaitGroup
	for i := range 8 {
		topic := topicOf(t, b, fmt.Sprint("t", i%4))
		all.Go(func() {
			for range 100 {
				publish(t, topic, "a", "b", "c", "d", "e")
			}
		})
	}
	all.Wait()
	seen := make(map[protocol.ID]bool)
	for _, topic := range b.Topics() {
		var batch Batch
		for topic.take(&batch); batch.Len() > 0; topic.take(&batch) {
			for i := range batch.messages {
				id := batch.messages[i].id()
				if seen[id] {
					t.Fatalf("id %s twice", id)
				}
				seen[id] = true
			}
			batch.Reset()
		}
	}
	if len(seen) != 4000 {
		t.Fatalf("%d ids, want 4000", len(seen))
	}
}

// A clock that is set back neither holds up a publisher nor makes an id a second time; timestamps
// follow the clock.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int64
		now.Store(1_796_095_935_000_000_000)
		b := start(t, newMemStore(), func(c *Config) { c.Now = func() time.Time { return time.Unix(0, now.Load()) } })
		topic := topicOf(t, b, "t")
		began := time.Now()
		var ids []protocol.ID
		var stamps []int64
		for i := range 30 {
			if i == 10 {
				now.Add(-int64(time.Hour))
			}
			now.Add(int64(time.Microsecond))
			publish(t, topic, "a", "b")
			var batch Batch
			topic.take(&batch)
			for j := range batch.messages {
				decoded, err := protocol.DecodeMessage(batch.messages[j].record())
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, decoded.ID)
				stamps = append(stamps, decoded.Timestamp)
			}
			if got := stamps[len(stamps)-1]; got != now.Load() {
				t.Fatalf("timestamp %d, want %d", got, now.Load())
			}
		}
		if len(ids) != 60 || time.Since(began) != 0 {
			t.Fatalf("%d messages in %v", len(ids), time.Since(began))
		}
		if !slices.IsSortedFunc(ids, func(x, y protocol.ID) int { return slices.Compare(x[:], y[:]) }) ||
			len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Fatal("ids do not grow strictly")
		}
	})
}

// Batches of one publisher keep their order, through memory, through the topic's overflow and past
// it, straight to the channel.
func TestPublishOrder(t *testing.T) {
	for _, size := range []int{0, 100_000} {
		b := start(t, newMemStore(), memory(size))
		topic := topicOf(t, b, "t")
		publish(t, topic, numbered(0, 100)...)
		c := subscribe(t, b, "t", "ch", 5000)
		for i := range 200 {
			publish(t, topic, numbered(100+10*i, 110+10*i)...)
		}
		eventually(t, "all deliveries", func() bool { return len(c.deliveries()) == 2100 })
		wantBodies(t, fmt.Sprint("memory ", size), c.bodies(), numbered(0, 2100))
	}
}

// Where memory has no room and there is no backlog, a batch goes past the topic's own overflow.
func TestPassThroughSparesTheTopicsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store, memory(0))
		topic := topicOf(t, b, "t")
		c := channelOf(t, topic, "ch")
		publish(t, topic, numbered(0, 10)...)
		if most := store.queue("t", "").most; most != 0 {
			t.Fatalf("%d records went through the topic's overflow", most)
		}
		if err := topic.Pause(); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, numbered(10, 20)...)
		if most := store.queue("t", "").most; most != 10 {
			t.Fatalf("%d records in the overflow of a paused topic, want 10", most)
		}
		if err := topic.Unpause(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantBodies(t, "channel", takeAll(t, &c.queue), numbered(0, 20))
	})
}

// An empty batch is nothing: no id, no count.
func TestPublishNothing(t *testing.T) {
	b := start(t, newMemStore())
	topic := topicOf(t, b, "t")
	if err := topic.Publish(new(Batch)); err != nil {
		t.Fatal(err)
	}
	if got := b.Stats("t", "")[0]; got.MessageCount != 0 || got.Depth != 0 {
		t.Fatalf("%+v", got)
	}
}
