package broker

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func exists(b *Broker, topic, channel string) bool {
	t, err := b.FindTopic(topic)
	if err != nil || channel == "" {
		return err == nil
	}
	_, err = t.FindChannel(channel)
	return err == nil
}

// An ephemeral channel goes with its last client and not before, an ephemeral topic with its last
// channel of whatever kind; nothing of both is in the metadata.
func TestEphemeralLifeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store)
		first, second := subscribe(t, b, "t#ephemeral", "ch#ephemeral", 1), subscribe(t, b, "t#ephemeral", "ch#ephemeral", 1)
		normal := subscribe(t, b, "t#ephemeral", "normal", 1)
		other := subscribe(t, b, "keep", "ch#ephemeral", 1)
		if doc := store.document(); strings.Contains(doc, "ephemeral") || !strings.Contains(doc, `"keep"`) {
			t.Fatalf("metadata %s", doc)
		}
		first.disconnect()
		if !exists(b, "t#ephemeral", "ch#ephemeral") {
			t.Fatal("the channel went before its last client")
		}
		second.disconnect()
		if exists(b, "t#ephemeral", "ch#ephemeral") || !exists(b, "t#ephemeral", "normal") {
			t.Fatal("the channel stays without clients, or took the topic along")
		}
		normal.disconnect()
		if !exists(b, "t#ephemeral", "normal") {
			t.Fatal("a normal channel went with its client")
		}
		if err := topicOf(t, b, "t#ephemeral").DeleteChannel("normal"); err != nil {
			t.Fatal(err)
		}
		if exists(b, "t#ephemeral", "") {
			t.Fatal("the ephemeral topic stays without channels")
		}
		other.disconnect()
		if !exists(b, "keep", "") || exists(b, "keep", "ch#ephemeral") {
			t.Fatal("the normal topic does not stay, or its ephemeral channel does")
		}
	})
}

// What never had a client or channel stays, and its messages wait.
func TestEphemeralUnusedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t#ephemeral")
		publish(t, topic, "a")
		channelOf(t, topic, "ch#ephemeral")
		publish(t, topic, "b")
		synctest.Wait()
		c := subscribe(t, b, "t#ephemeral", "ch#ephemeral", 10)
		synctest.Wait()
		wantBodies(t, "delivered", c.bodies(), []string{"a", "b"})
		c.disconnect()
		if exists(b, "t#ephemeral", "") {
			t.Fatal("topic and channel stay after their last client")
		}
	})
}

// What an ephemeral topic or channel has no room for is dropped, acknowledged and counted.
func TestEphemeralDropsWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore(), memory(3))
		topic := topicOf(t, b, "t#ephemeral")
		publish(t, topic, numbered(0, 10)...)
		publishDeferred(t, topic, time.Second, "later")
		if got := b.Stats("t#ephemeral", "")[0]; got.Depth != 3 || got.MessageCount != 11 {
			t.Fatalf("topic: %+v", got)
		}
		other := topicOf(t, b, "other")
		channel := channelOf(t, other, "ch#ephemeral")
		for _, body := range numbered(0, 10) {
			publish(t, other, body)
			synctest.Wait()
		}
		if got := stats(t, b, "other", "ch#ephemeral"); got.Depth != 3 || got.MessageCount != 10 || got.BackendDepth != 0 {
			t.Fatalf("channel: %+v", got)
		}
		c := subscribe(t, b, "other", "ch#ephemeral", 1)
		synctest.Wait()
		publish(t, other, "more") // the place of the one in flight
		synctest.Wait()
		c.sub.SetReady(0)
		if err := c.sub.Requeue(c.last(t).id, 0); err != nil {
			t.Fatal(err)
		}
		if all, _ := channel.queue.depth(); all != 3 {
			t.Fatalf("depth %d after a requeue into a full channel, want 3", all)
		}
	})
}

// Without memory an ephemeral channel keeps what clients with an open window can take, and nothing
// else.
func TestEphemeralWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore(), memory(0))
		for _, name := range []string{"t", "t#ephemeral"} {
			topic := topicOf(t, b, name)
			c := subscribe(t, b, name, "ch#ephemeral", 2)
			synctest.Wait()
			publish(t, topic, "a")
			synctest.Wait()
			publish(t, topic, "b")
			synctest.Wait()
			publish(t, topic, "dropped")
			synctest.Wait()
			c.sub.SetReady(3)
			synctest.Wait()
			publish(t, topic, "c")
			synctest.Wait()
			wantBodies(t, name, c.bodies(), []string{"a", "b", "c"})
			c.disconnect()
		}
	})
}

// A deferred publish to an ephemeral topic waits its time, with memory and without.
func TestEphemeralDeferred(t *testing.T) {
	for _, size := range []int{0, 10} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore(), memory(size))
			c := subscribe(t, b, "t#ephemeral", "ch#ephemeral", 2)
			synctest.Wait()
			due := time.Now().Add(time.Second)
			publishDeferred(t, topicOf(t, b, "t#ephemeral"), time.Second, "later")
			synctest.Wait()
			if got := stats(t, b, "t#ephemeral", "ch#ephemeral"); got.DeferredCount != 1 {
				t.Fatalf("memory %d: %+v", size, got)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			wantAt(t, "deferred", c.last(t).at, due)
		})
	}
}

// The deletion that the last client left behind does not take along who has come since.
func TestUnusedIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		c := subscribe(t, b, "t#ephemeral", "ch#ephemeral", 1)
		topic := c.sub.channel.topic
		if err := topic.deleteChannel(c.sub.channel, true); !errors.Is(err, ErrNotFound) {
			t.Fatalf("a channel with a client: %v", err)
		}
		if err := b.deleteTopic(topic, true); !errors.Is(err, ErrNotFound) {
			t.Fatalf("a topic with a channel: %v", err)
		}
		publish(t, topic, "a")
		synctest.Wait()
		wantBodies(t, "delivered", c.bodies(), []string{"a"})
	})
}

// While last clients leave and new ones come, every client that subscribed has a channel that is
// there and gets what is published.
func TestEphemeralRaceOfLastAndNext(t *testing.T) {
	for _, names := range [][2]string{{"t", "ch#ephemeral"}, {"t#ephemeral", "ch"}, {"t#ephemeral", "ch#ephemeral"}} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore())
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 60 {
						c, err := trySubscribe(b, names[0], names[1], 1000)
						if errors.Is(err, ErrExiting) {
							continue // the other three were faster, three times
						}
						if err != nil {
							t.Errorf("subscribe: %v", err)
							return
						}
						if topic, err := b.FindTopic(names[0]); err != nil || topic != c.sub.channel.topic {
							t.Errorf("a client of a topic that is gone: %v", err)
						} else if channel, err := topic.FindChannel(names[1]); err != nil || channel != c.sub.channel {
							t.Errorf("a client of a channel that is gone: %v", err)
						} else if err := topic.Publish(batchOf("hello")); err != nil {
							t.Errorf("publish: %v", err)
						}
						c.disconnect()
					}
				})
			}
			all.Wait()
			if strings.HasSuffix(names[1], "#ephemeral") && exists(b, names[0], names[1]) {
				t.Error("the channel stays after its last client")
			}
			c := subscribe(t, b, names[0], names[1], 1000)
			publish(t, topicOf(t, b, names[0]), "last")
			synctest.Wait()
			if got := c.last(t); got.body != "last" {
				t.Errorf("got %q", got.body)
			}
		})
	}
}
