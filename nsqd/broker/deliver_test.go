package broker

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/protocol"
)

// A published message reaches the consumer at once with its first attempt, is in flight until it
// is finished, and every counter tells so.
func TestPublishDeliverFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		c := subscribe(t, b, "t", "ch", 10)
		publish(t, topicOf(t, b, "t"), "one", "two!", "three")
		synctest.Wait()
		wantBodies(t, "delivered", c.bodies(), []string{"one", "two!", "three"})
		if c.isDirty() {
			t.Fatal("what was delivered is not flushed")
		}
		if d := c.last(t); d.attempts != 1 {
			t.Fatalf("attempts %d, want 1", d.attempts)
		}
		want := ChannelStats{Name: "ch", InFlightCount: 3, ReadyCount: 10, MessageCount: 3, DeliveryCount: 3,
			FromMemory: [proximities]uint64{3}, ClientCount: 1}
		if got := stats(t, b, "t", "ch"); !reflect.DeepEqual(got, want) {
			t.Fatalf("in flight: %+v, want %+v", got, want)
		}
		ids := []protocol.ID{c.deliveries()[0].id, idOf(1), c.deliveries()[1].id, c.deliveries()[0].id}
		if failed := c.sub.Finish(ids); !slices.Equal(failed, []protocol.ID{ids[1], ids[3]}) {
			t.Fatalf("failed %s, want the unknown and the repeated id", failed)
		}
		wantSub := SubscriptionStats{Topic: "t", Channel: "ch", ReadyCount: 10, InFlightCount: 1, MessageCount: 3, FinishCount: 2}
		if got := c.sub.Stats(); got != wantSub {
			t.Fatalf("client: %+v, want %+v", got, wantSub)
		}
		if got := stats(t, b, "t", "ch").FinishCount; got != 2 {
			t.Fatalf("%d finished on the channel, want 2", got)
		}
		topic := b.Stats("t", "")[0]
		if topic.MessageCount != 3 || topic.MessageBytes != 12 || topic.Depth != 0 {
			t.Fatalf("topic: %+v", topic)
		}
	})
}

// Deliveries from memory are counted apart, redeliveries included; those from disk are not among them.
func TestDeliveriesFromMemoryAreCounted(t *testing.T) {
	for size, want := range map[int]uint64{0: 0, 5: 5, 100: 10} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore(), memory(size))
			topic := topicOf(t, b, "t")
			channelOf(t, topic, "ch")
			publish(t, topic, numbered(0, 10)...)
			synctest.Wait()
			c := subscribe(t, b, "t", "ch", 10)
			synctest.Wait()
			if got := stats(t, b, "t", "ch"); got.InFlightCount != 10 || got.FromMemory[Anywhere] != want {
				t.Fatalf("memory %d: %+v, want %d from memory", size, got, want)
			}
			if err := c.sub.Requeue(c.last(t).id, 0); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := stats(t, b, "t", "ch").FromMemory[Anywhere]; size > 0 && got != want+1 {
				t.Fatalf("memory %d: %d after a redelivery, want %d", size, got, want+1)
			}
		})
	}
}

// RDY is a window: never more than n are in flight, FIN opens it, lowering it below what is in
// flight stops delivery until that has fallen, RDY 0 stops it.
func TestReadyIsAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		c := subscribe(t, b, "t", "ch", 0)
		publish(t, topicOf(t, b, "t"), numbered(0, 20)...)
		step := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			if got := len(c.deliveries()); got != want {
				t.Fatalf("%s: %d delivered, want %d", what, got, want)
			}
		}
		finish := func(from, to int) {
			for _, d := range c.deliveries()[from:to] {
				c.sub.Finish([]protocol.ID{d.id})
			}
		}
		step("without RDY", 0)
		c.sub.SetReady(3)
		step("RDY 3", 3)
		finish(0, 1)
		step("one finished", 4)
		c.sub.SetReady(1)
		finish(1, 3)
		step("RDY lowered to 1 with one left in flight", 4)
		finish(3, 4)
		step("the last of the old window finished", 5)
		c.sub.SetReady(0)
		finish(4, 5)
		step("RDY 0", 5)
		if got := stats(t, b, "t", "ch"); got.InFlightCount != 0 || got.Depth != 15 {
			t.Fatalf("after RDY 0: %+v", got)
		}
		c.sub.SetReady(100)
		step("RDY 100", 20)
	})
}

// One who takes leaves something for those who wait: its first batch is its share and no more, and
// the next one is woken for the rest.
func TestFairShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		hold := make(chan struct{})
		var clients []*client
		for range 4 {
			clients = append(clients, subscribe(t, b, "t", "ch", 100, func(c *client, _ *SubscriptionConfig) { c.hold = hold }))
		}
		synctest.Wait()
		publish(t, topicOf(t, b, "t"), numbered(0, 40)...)
		synctest.Wait() // each is stuck with its first batch
		close(hold)
		synctest.Wait()
		var all []string
		for i, c := range clients {
			if len(c.batchSizes()) == 0 || c.batchSizes()[0] > 11 || len(c.bodies()) < 5 {
				t.Errorf("client %d got batches of %v of 40", i, c.batchSizes())
			}
			all = append(all, c.bodies()...)
		}
		wantSame(t, "all together", all, numbered(0, 40))
	})
}

// A message goes past a client whose window is closed to one whose window is open, for each of many
// messages and whoever waits longer.
func TestClosedWindowTakesNoWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		closed, open := subscribe(t, b, "t", "ch", 5), subscribe(t, b, "t", "ch", 1, finishing)
		synctest.Wait()
		closed.sub.SetReady(0) // it waits for the queue at this moment
		for i := range 50 {
			publish(t, topic, numbered(i, i+1)...)
			synctest.Wait()
			wantBodies(t, "open window", open.bodies(), numbered(0, i+1))
		}
		wantBodies(t, "closed window", closed.bodies(), nil)
	})
}

// Every channel gets every message, and the bodies are one memory for all of them.
func TestFanOutSharesBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		for i := range 5 {
			channelOf(t, topic, fmt.Sprint("ch", i))
		}
		publish(t, topic, numbered(0, 10)...)
		synctest.Wait()
		var first Batch
		for i, c := range topic.Channels() {
			var batch Batch
			c.take(&batch, 100, new(waiter))
			wantBodies(t, c.name, bodiesOf(batch.messages), numbered(0, 10))
			if i == 0 {
				first = batch
			}
			for n := range batch.messages {
				if &batch.messages[n].Body()[0] != &first.messages[n].Body()[0] {
					t.Fatalf("channel %d has a body of its own", i)
				}
			}
		}
	})
}

// Attempts belong to the channel: a redelivery on one is no attempt on another.
func TestChannelsCountAttemptsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		x, y := subscribe(t, b, "t", "x", 1), subscribe(t, b, "t", "y", 0)
		publish(t, topicOf(t, b, "t"), "m")
		for range 3 {
			synctest.Wait()
			if err := x.sub.Requeue(x.last(t).id, 0); err != nil {
				t.Fatal(err)
			}
		}
		y.sub.SetReady(1)
		synctest.Wait()
		if got := x.last(t); got.attempts != 4 {
			t.Errorf("x: attempts %d, want 4", got.attempts)
		}
		if got := y.last(t); got.attempts != 1 || got.id != x.last(t).id {
			t.Errorf("y: attempts %d, want 1", got.attempts)
		}
	})
}

// The first channel gets what the topic has gathered, a later one only what comes later.
func TestFirstChannelGetsBacklog(t *testing.T) {
	for _, size := range []int{0, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore(), memory(size))
			topic := topicOf(t, b, "t")
			for i := range 10 {
				publish(t, topic, numbered(5*i, 5*i+5)...)
			}
			if got := depthOf(t, b, "t"); got != 50 {
				t.Fatalf("backlog %d, want 50", got)
			}
			first := subscribe(t, b, "t", "first", 1000)
			synctest.Wait()
			second := subscribe(t, b, "t", "second", 1000)
			publish(t, topic, numbered(50, 60)...)
			synctest.Wait()
			wantSame(t, "first", first.bodies(), numbered(0, 60))
			wantSame(t, "second", second.bodies(), numbered(50, 60))
			if got := depthOf(t, b, "t"); got != 0 {
				t.Fatalf("the topic keeps %d", got)
			}
		})
	}
}

// Deliveries come in batches of at most 128, flushed once, when nothing more is ready.
func TestFlushWhenNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		channelOf(t, topic, "ch")
		publish(t, topic, numbered(0, 300)...)
		synctest.Wait()
		c := subscribe(t, b, "t", "ch", 0)
		synctest.Wait()
		before := c.flushCount()
		c.sub.SetReady(1000)
		synctest.Wait()
		if !slices.Equal(c.batchSizes(), []int{128, 128, 44}) || c.flushCount() != before+1 || c.isDirty() {
			t.Fatalf("batches %v, %d flushes", c.batchSizes(), c.flushCount()-before)
		}
	})
}

// A client that asks for more buffering gets it, but never beyond its delay and not when its window
// is closed.
func TestFlushDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 3, func(_ *client, config *SubscriptionConfig) {
			config.FlushDelay = 250 * time.Millisecond
		})
		synctest.Wait()
		publish(t, topic, "a")
		time.Sleep(200 * time.Millisecond)
		publish(t, topic, "b")
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		if len(c.deliveries()) != 2 || !c.isDirty() {
			t.Fatalf("%d delivered, unflushed %t; want 2 that wait for their flush", len(c.deliveries()), c.isDirty())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if c.isDirty() {
			t.Fatal("not flushed when the delay of the oldest frame was over")
		}
		publish(t, topic, "c")
		synctest.Wait()
		if len(c.deliveries()) != 3 || c.isDirty() {
			t.Fatal("not flushed though the window is closed")
		}
	})
}

// A client that fails to write is closed with its error, and what it held goes to another.
func TestFailingConsumerIsClosed(t *testing.T) {
	for _, when := range []string{"deliver", "flush"} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore())
			topic := topicOf(t, b, "t")
			broken := errors.New("broken pipe")
			bad := subscribe(t, b, "t", "ch", 10)
			synctest.Wait()
			publish(t, topic, "before")
			synctest.Wait()
			bad.setFail(broken)
			if when == "deliver" {
				publish(t, topic, "after")
			} else {
				bad.sub.SetReady(1) // the window is closed: the pump flushes before it rests
				bad.finishAll()
				publish(t, topic, "after")
			}
			synctest.Wait()
			if bad.closeReason() != broken {
				t.Fatalf("closed with %v, want %v", bad.closeReason(), broken)
			}
			good := subscribe(t, b, "t", "ch", 10)
			synctest.Wait()
			if got := good.bodies(); !slices.Contains(got, "after") {
				t.Fatalf("the other client got %q", got)
			}
			if got := stats(t, b, "t", "ch"); got.ClientCount != 1 {
				t.Fatalf("%d clients, want 1", got.ClientCount)
			}
		})
	}
}

// A client that does not read holds up nobody but itself.
func TestBlockedConsumerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		blocked := subscribe(t, b, "t", "ch", 1, func(c *client, _ *SubscriptionConfig) { c.hold = make(chan struct{}) })
		synctest.Wait()
		publish(t, topic, "first") // is stuck with the one who waits
		synctest.Wait()
		other := subscribe(t, b, "t", "ch", 10)
		publish(t, topic, numbered(0, 30)...)
		synctest.Wait()
		if got := len(other.bodies()); got != 10 {
			t.Fatalf("the other client got %d, want 10", got)
		}
		other.finishAll()
		synctest.Wait()
		blocked.disconnect()
		for range 3 {
			other.finishAll()
			synctest.Wait()
		}
		if got := stats(t, b, "t", "ch"); got.Depth != 0 || got.InFlightCount != int64(len(other.bodies())) {
			t.Fatalf("at the end %+v", got)
		}
	})
}

// A channel takes no more clients than it may have, and takes another when one has left.
func TestConsumerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore(), func(c *Config) { c.MaxChannelConsumers = 2 })
		first := subscribe(t, b, "t", "ch", 1)
		subscribe(t, b, "t", "ch", 1)
		if _, err := trySubscribe(b, "t", "ch", 1); !errors.Is(err, ErrTooManyConsumers) {
			t.Fatalf("the third client: %v", err)
		}
		subscribe(t, b, "t", "other", 1)
		first.disconnect()
		subscribe(t, b, "t", "ch", 1)
	})
}

// A sample rate is a share of exactly so many percent; what it leaves out is gone for the channel.
// The tolerance is five standard deviations.
func TestSampling(t *testing.T) {
	const n = 20_000
	for _, rate := range []int32{0, 1, 50, 99} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newMemStore(), memory(n))
			topic := topicOf(t, b, "t")
			c := subscribe(t, b, "t", "ch", n, func(_ *client, config *SubscriptionConfig) { config.SampleRate = rate })
			for i := range 10 {
				publish(t, topic, numbered(i*n/10, (i+1)*n/10)...)
			}
			synctest.Wait()
			share := float64(rate) / 100
			if rate == 0 {
				share = 1
			}
			got, want := float64(len(c.deliveries())), n*share
			if math.Abs(got-want) > 5*math.Sqrt(n*share*(1-share)) {
				t.Errorf("rate %d: %.0f of %d delivered, want about %.0f", rate, got, n, want)
			}
			s := stats(t, b, "t", "ch")
			if s.Depth != 0 || s.InFlightCount != int64(len(c.deliveries())) || s.RequeueCount != 0 || s.MessageCount != n {
				t.Errorf("rate %d: %+v", rate, s)
			}
		})
	}
}
