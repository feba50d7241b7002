package broker

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A paused channel delivers nothing, but keeps its window, lets messages be finished, requeued and
// time out, and delivers with that window when it goes on.
func TestPauseChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 3, timeout(time.Second))
		published := time.Now().UnixNano()
		publish(t, topic, numbered(0, 3)...)
		synctest.Wait()
		if err := c.sub.channel.Pause(); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, numbered(3, 6)...)
		if err := c.sub.Requeue(c.deliveries()[0].id, 0); err != nil {
			t.Fatal(err)
		}
		if !c.sub.Touch(c.deliveries()[1].id) {
			t.Fatal("touch fails while paused")
		}
		if err := c.sub.Requeue(c.deliveries()[1].id, time.Minute); err != nil {
			t.Fatal(err)
		}
		c.sub.SetReady(10)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := ChannelStats{Name: "ch", Depth: 5, DeferredCount: 1, FrontTime: published, ReadyCount: 10, MessageCount: 6, DeliveryCount: 3,
			RequeueCount: 2, TimeoutCount: 1, FromMemory: [proximities]uint64{3}, ClientCount: 1, Paused: true}
		if got := stats(t, b, "t", "ch"); !reflect.DeepEqual(got, want) || len(c.deliveries()) != 3 {
			t.Fatalf("paused: %+v, %d delivered; want %+v", got, len(c.deliveries()), want)
		}
		if err := c.sub.channel.Unpause(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := len(c.deliveries()); got != 8 {
			t.Fatalf("%d delivered after the pause, want 8", got)
		}
	})
}

// A paused topic keeps new messages; its channels go on with what they have.
func TestPauseTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 0)
		publish(t, topic, numbered(0, 3)...)
		synctest.Wait()
		if err := topic.Pause(); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, numbered(3, 6)...)
		c.sub.SetReady(100)
		synctest.Wait()
		wantBodies(t, "while paused", c.bodies(), numbered(0, 3))
		if got := b.Stats("t", "")[0]; got.Depth != 3 || !got.Paused {
			t.Fatalf("paused: %+v", got)
		}
		if err := topic.Unpause(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantBodies(t, "after the pause", c.bodies(), numbered(0, 6))
	})
}

// No message leaves a topic after Pause has returned, however many publish meanwhile.
func TestPauseTopicIsAtOnce(t *testing.T) {
	for _, size := range []int{0, 1000} {
		b := start(t, newMemStore(), memory(size))
		topic := topicOf(t, b, "t")
		channel := channelOf(t, topic, "ch")
		var stop atomic.Bool
		var publishers sync.WaitGroup
		for range 4 {
			publishers.Go(func() {
				for !stop.Load() {
					topic.Publish(batchOf("a", "b", "c"))
				}
			})
		}
		for range 10 {
			if err := topic.Pause(); err != nil {
				t.Fatal(err)
			}
			before := channel.messageCount.Load()
			depth := topic.Depth()
			eventually(t, "more messages", func() bool { return topic.Depth() > depth })
			if after := channel.messageCount.Load(); after != before {
				t.Fatalf("memory %d: %d messages left a paused topic", size, after-before)
			}
			if err := topic.Unpause(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a hand-over", func() bool { return channel.messageCount.Load() > before })
		}
		stop.Store(true)
		publishers.Wait()
	}
}

// Empty drops what waits, what is in flight and what is deferred; counts are 0, windows are open
// again, and what was dropped can not be finished.
func TestEmptyChannel(t *testing.T) {
	for _, size := range []int{0, 5, 1000} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemStore()
			b := start(t, store, memory(size))
			topic := topicOf(t, b, "t")
			c := subscribe(t, b, "t", "ch", 3)
			publish(t, topic, numbered(0, 30)...)
			publishDeferred(t, topic, time.Second, "later")
			synctest.Wait()
			c.sub.SetReady(0)
			if err := c.sub.Requeue(c.deliveries()[0].id, time.Second); err != nil {
				t.Fatal(err)
			}
			if got := stats(t, b, "t", "ch"); got.Depth != 27 || got.InFlightCount != 2 || got.DeferredCount != 2 {
				t.Fatalf("before: %+v", got)
			}
			if err := c.sub.channel.Empty(); err != nil {
				t.Fatal(err)
			}
			got := stats(t, b, "t", "ch")
			if got.Depth != 0 || got.InFlightCount != 0 || got.DeferredCount != 0 || store.queue("t", "ch").Depth() != 0 {
				t.Fatalf("after: %+v", got)
			}
			if failed := c.finishAll(); failed != 3 {
				t.Fatalf("%d of 3 dropped messages could not be finished", failed)
			}
			c.sub.SetReady(2)
			publish(t, topic, "x", "y", "z")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			wantSame(t, "after", c.bodies(), []string{"x", "y"})
		})
	}
}

// Emptying in the middle of deliveries never leaves a count wrong: afterwards the window is whole.
func TestEmptyDuringDeliveries(t *testing.T) {
	b := start(t, newMemStore())
	topic := topicOf(t, b, "t")
	c := subscribe(t, b, "t", "ch", 50)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range 300 {
			topic.Publish(batchOf(numbered(0, 20)...))
		}
	})
	for range 100 {
		if err := c.sub.channel.Empty(); err != nil {
			t.Fatal(err)
		}
		c.finishAll()
	}
	publishing.Wait()
	eventually(t, "an empty topic", func() bool { return topic.Depth() == 0 })
	c.sub.SetReady(0)
	eventually(t, "nothing left", func() bool {
		if err := c.sub.channel.Empty(); err != nil {
			t.Fatal(err)
		}
		s := stats(t, b, "t", "ch")
		return s.Depth == 0 && s.InFlightCount == 0
	})
	c.finishAll()
	c.sub.SetReady(50)
	publish(t, topic, numbered(0, 60)...)
	eventually(t, "a whole window", func() bool { return len(c.deliveries()) == 50 })
}

// Emptying a topic drops what waits in it, deferred publishes included, and nothing of its channels.
func TestEmptyTopic(t *testing.T) {
	for _, size := range []int{0, 5, 1000} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore(), memory(size))
			topic := topicOf(t, b, "t")
			channelOf(t, topic, "ch")
			publish(t, topic, "kept")
			synctest.Wait()
			if err := topic.Pause(); err != nil {
				t.Fatal(err)
			}
			publish(t, topic, numbered(0, 12)...)
			publishDeferred(t, topic, time.Second, "later")
			if got := depthOf(t, b, "t"); got != 13 {
				t.Fatalf("depth %d, want 13", got)
			}
			if err := topic.Empty(); err != nil {
				t.Fatal(err)
			}
			if got := depthOf(t, b, "t"); got != 0 {
				t.Fatalf("depth %d after Empty", got)
			}
			if err := topic.Unpause(); err != nil {
				t.Fatal(err)
			}
			c := subscribe(t, b, "t", "ch", 100)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			wantBodies(t, "channel", c.bodies(), []string{"kept"})
		})
	}
}

// A deleted channel closes its clients, takes its messages along and comes back empty; the other
// channels do not notice.
func TestDeleteChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		var changes atomic.Int32
		b := start(t, store, memory(2), func(c *Config) { c.Changed = func() { changes.Add(1) } })
		topic := topicOf(t, b, "t")
		gone, other := subscribe(t, b, "t", "gone", 1), subscribe(t, b, "t", "other", 100)
		publish(t, topic, numbered(0, 9)...)
		synctest.Wait()
		before, queue := changes.Load(), store.queue("t", "gone")
		if err := topic.DeleteChannel("gone"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if gone.closeReason() != ErrExiting || !gone.isClosed() || other.isClosed() {
			t.Fatalf("closed with %v, the other channel's client: %t", gone.closeReason(), other.isClosed())
		}
		if !queue.deleted || changes.Load() != before+1 {
			t.Fatalf("queue deleted: %t, %d changes told", queue.deleted, changes.Load()-before)
		}
		if err := gone.sub.Requeue(gone.deliveries()[0].id, 0); !errors.Is(err, ErrExiting) {
			t.Fatalf("requeue on a deleted channel: %v", err)
		}
		if err := topic.DeleteChannel("gone"); !errors.Is(err, ErrNotFound) {
			t.Fatalf("deleted twice: %v", err)
		}
		if _, err := topic.FindChannel("gone"); !errors.Is(err, ErrNotFound) {
			t.Fatalf("found after it was deleted: %v", err)
		}
		again := subscribe(t, b, "t", "gone", 100)
		publish(t, topic, "new")
		synctest.Wait()
		wantBodies(t, "created anew", again.bodies(), []string{"new"})
		wantSame(t, "other", other.bodies(), append(numbered(0, 9), "new"))
	})
}

// A deleted topic takes its channels along, refuses those who still hold it, and comes back empty.
func TestDeleteTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store, memory(2))
		topic := topicOf(t, b, "t")
		clients := []*client{subscribe(t, b, "t", "x", 1), subscribe(t, b, "t", "y", 1)}
		publish(t, topic, numbered(0, 9)...)
		synctest.Wait()
		if err := topic.Pause(); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, numbered(9, 20)...)
		if err := b.DeleteTopic("t"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, c := range clients {
			if c.closeReason() != ErrExiting {
				t.Fatalf("client closed with %v", c.closeReason())
			}
		}
		if !topic.Exiting() || !errors.Is(topic.Publish(batchOf("late")), ErrExiting) {
			t.Fatal("a deleted topic takes messages")
		}
		if err := topic.Empty(); !errors.Is(err, ErrExiting) {
			t.Fatalf("empty of a deleted topic: %v", err)
		}
		if _, err := topic.Channel("z"); !errors.Is(err, ErrExiting) {
			t.Fatalf("a channel on a deleted topic: %v", err)
		}
		for _, channel := range []string{"", "x", "y"} {
			if !store.queue("t", channel).deleted {
				t.Fatalf("queue of channel %q is not deleted", channel)
			}
		}
		if err := b.DeleteTopic("t"); !errors.Is(err, ErrNotFound) {
			t.Fatalf("deleted twice: %v", err)
		}
		again := subscribe(t, b, "t", "x", 100)
		publish(t, topicOf(t, b, "t"), "new")
		synctest.Wait()
		wantBodies(t, "created anew", again.bodies(), []string{"new"})
		if got := b.Stats("", ""); len(got) != 1 || len(got[0].Channels) != 1 || got[0].Paused {
			t.Fatalf("created anew: %+v", got)
		}
	})
}

// Of many who delete one thing at a time exactly one succeeds.
func TestDeleteHasOneWinner(t *testing.T) {
	b := start(t, newMemStore())
	for range 50 {
		topic := topicOf(t, b, "t")
		channelOf(t, topic, "ch")
		for _, remove := range []func() error{
			func() error { return topic.DeleteChannel("ch") },
			func() error { return b.DeleteTopic("t") },
		} {
			var won atomic.Int32
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if err := remove(); err == nil {
						won.Add(1)
					} else if !errors.Is(err, ErrNotFound) {
						t.Errorf("delete: %v", err)
					}
				})
			}
			all.Wait()
			if won.Load() != 1 {
				t.Fatalf("%d deleted the same thing", won.Load())
			}
		}
	}
}

// Names that do not exist are told apart from those that do, and Stats finds by name.
func TestFindAndStats(t *testing.T) {
	b := start(t, newMemStore())
	for _, name := range []string{"b", "a", "c"} {
		topic := topicOf(t, b, name)
		channelOf(t, topic, "z"+name)
		channelOf(t, topic, "all")
	}
	if _, err := b.FindTopic("d"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown topic: %v", err)
	}
	if err := b.DeleteTopic("d"); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete of an unknown topic: %v", err)
	}
	if err := topicOf(t, b, "a").DeleteChannel("zb"); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete of an unknown channel: %v", err)
	}
	for _, c := range []struct {
		topic, channel string
		want           []string
	}{
		{"", "", []string{"a", "all", "za", "b", "all", "zb", "c", "all", "zc"}},
		{"b", "", []string{"b", "all", "zb"}},
		{"", "zc", []string{"c", "zc"}},
		{"", "all", []string{"a", "all", "b", "all", "c", "all"}},
		{"b", "zc", nil},
		{"d", "", nil},
	} {
		var got []string
		for _, topic := range b.Stats(c.topic, c.channel) {
			got = append(got, topic.Name)
			for _, channel := range topic.Channels {
				got = append(got, channel.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Stats(%q, %q): %q, want %q", c.topic, c.channel, got, c.want)
		}
	}
}
