package broker

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/testutil"
)

// A channel whose overflow fails loses nothing that was acknowledged: the others get theirs, the
// topic keeps the batch and offers it again until the disk takes it.
func TestFanOutFailureLosesNothing(t *testing.T) {
	for _, k := range []int{0, 1, 3} { // the record of the batch at which the write fails
		synctest.Test(t, func(t *testing.T) {
			store, j := newMemStore(), new(testutil.Buffer)
			b := start(t, store, memory(4), logTo(j))
			topic := topicOf(t, b, "t")
			good := subscribe(t, b, "t", "good", 1000)
			bad := channelOf(t, topic, "bad")
			synctest.Wait()
			store.queue("t", "bad").failAfter(k)
			var want []string
			for i := range 3 {
				publish(t, topic, numbered(4*i, 4*i+4)...) // fits in the topic's memory
				want = append(want, numbered(4*i, 4*i+4)...)
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if i == 1 {
					wantBodies(t, "the good channel, while the other fails", good.bodies(), want)
				}
			}
			time.Sleep(3 * diskRetry)
			if k == 0 && !slices.ContainsFunc(j.Logged("ERROR"), func(line string) bool {
				return strings.HasPrefix(line, "CHANNEL(bad): failed to write message to backend - ") && strings.HasSuffix(line, errDisk.Error())
			}) {
				t.Fatalf("not told: %q", j.Logged("ERROR"))
			}
			store.queue("t", "bad").failAfter(-1)
			time.Sleep(2 * diskRetry)
			synctest.Wait()
			if got := depthOf(t, b, "t"); got != 0 {
				t.Fatalf("the topic keeps %d after the disk works again", got)
			}
			wantBodies(t, "good", good.bodies(), want)
			wantSame(t, "bad", takeAll(t, &bad.queue), want)
			if got := bad.messageCount.Load(); got != 12 {
				t.Fatalf("message count %d, want 12", got)
			}
		})
	}
}

// A channel that fails for ever and is deleted lets the topic go on: the others miss nothing.
func TestDeletingTheFailingChannelFreesTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store, memory(4))
		topic := topicOf(t, b, "t")
		good := subscribe(t, b, "t", "good", 1000)
		channelOf(t, topic, "bad")
		store.queue("t", "bad").failAfter(0)
		var want []string
		for i := range 4 {
			publish(t, topic, numbered(3*i, 3*i+3)...)
			want = append(want, numbered(3*i, 3*i+3)...)
			synctest.Wait()
			if i == 2 {
				if err := topic.DeleteChannel("bad"); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(2 * diskRetry)
		synctest.Wait()
		wantSame(t, "good", good.bodies(), want)
		if got := depthOf(t, b, "t"); got != 0 {
			t.Fatalf("the topic keeps %d", got)
		}
	})
}

// While a channel fails, publishers feel it when the topic is full too: they get an error and not a
// silent OK. What was acknowledged is all there when the disk works again, once.
func TestPublishersFeelAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store, memory(3))
		topic := topicOf(t, b, "t")
		channelOf(t, topic, "ch")
		store.queue("t", "ch").failAfter(0)
		store.queue("t", "").failAfter(0)
		var kept []string
		refused := 0
		for _, body := range numbered(0, 40) {
			if err := topic.Publish(batchOf(body)); err == nil {
				kept = append(kept, body)
			} else if !errors.Is(err, errDisk) {
				t.Fatalf("publish: %v", err)
			} else {
				refused++
			}
			synctest.Wait()
		}
		if refused == 0 || len(kept) < 6 {
			t.Fatalf("%d refused, %d kept", refused, len(kept))
		}
		if got := b.Stats("t", "")[0].MessageCount; got != uint64(len(kept)) {
			t.Fatalf("message count %d, %d were acknowledged", got, len(kept))
		}
		store.queue("t", "ch").failAfter(-1)
		store.queue("t", "").failAfter(-1)
		time.Sleep(2 * diskRetry)
		c := subscribe(t, b, "t", "ch", 100)
		synctest.Wait()
		wantSame(t, "delivered", c.bodies(), kept)
	})
}

// A batch that can not be written whole is refused whole or kept whole, whichever record fails.
func TestBatchIsAtomicOnWriteError(t *testing.T) {
	for _, size := range []int{0, 3} {
		for _, withChannel := range []bool{false, true} {
			for k := range 8 {
				synctest.Test(t, func(t *testing.T) {
					store := newMemStore()
					b := start(t, store, memory(size))
					topic := topicOf(t, b, "t")
					channel := ""
					if withChannel {
						channel = channelOf(t, topic, "ch").name
					}
					store.queue("t", channel).failAfter(k)
					err := topic.Publish(batchOf(numbered(0, 8)...))
					store.queue("t", channel).failAfter(-1)
					if (err != nil) != (k == 0) && k < 8-size {
						t.Fatalf("failing at record %d: %v", k, err)
					}
					c := subscribe(t, b, "t", "ch", 100)
					synctest.Wait()
					if err != nil {
						wantBodies(t, "after a refusal", c.bodies(), nil)
					} else {
						wantSame(t, "after an OK", c.bodies(), numbered(0, 8))
					}
				})
			}
		}
	}
}

// What times out or is due while the disk fails stays in memory and is delivered.
func TestReturningMessagesSurviveAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store, memory(0))
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 100, timeout(time.Second))
		publish(t, topic, "times out", "requeued", "held")
		publishDeferred(t, topic, time.Second, "due")
		synctest.Wait()
		c.sub.SetReady(0)
		store.queue("t", "ch").failAfter(0)
		if err := c.sub.Requeue(c.deliveries()[1].id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		c.disconnect()
		next := subscribe(t, b, "t", "ch", 100)
		synctest.Wait()
		wantSame(t, "delivered", next.bodies(), []string{"times out", "requeued", "held", "due"})
	})
}

// A topic that stops while a channel can not store its batch gives it what the disk does not take,
// and a delayed message among it keeps its delay.
func TestStopDuringHandOverKeepsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store)
		topic := topicOf(t, b, "t")
		publish(t, topic, "now")
		publishDeferred(t, topic, time.Minute, "later")
		closeBroker(t, b)

		// The records of both come from the topic's overflow now, in one batch.
		b = start(t, store, memory(0))
		topic = topicOf(t, b, "t")
		store.opened = func(_ string, q *memQueue) { q.budget = 0 }
		channelOf(t, topic, "ch")
		time.Sleep(3*diskRetry + diskRetry/2)
		store.queue("t", "ch").failAfter(-1)
		handed := time.Now()
		closeBroker(t, b)
		store.opened = nil

		b = start(t, store)
		c := subscribe(t, b, "t", "ch", 100)
		synctest.Wait()
		wantBodies(t, "after the restart", c.bodies(), []string{"now"})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for _, d := range c.deliveries() {
			if d.body == "later" {
				wantAt(t, "later", d.at, handed.Add(time.Minute))
				return
			}
		}
		t.Fatal("the delayed message is lost")
	})
}

// An overflow that can not be read costs a try now and then, not a spinning pump; when it can be
// read again, everything is delivered. That holds for a channel as for a topic.
func TestUnreadableOverflow(t *testing.T) {
	for _, where := range []string{"channel", "topic"} {
		store, j := newMemStore(), new(testutil.Buffer)
		b := start(t, store, memory(0), logTo(j))
		topic := topicOf(t, b, "t")
		queue := store.queue("t", "")
		if where == "channel" {
			channelOf(t, topic, "ch")
			queue = store.queue("t", "ch")
		}
		publish(t, topic, numbered(0, 5)...)
		eventually(t, "a backlog", func() bool { return queue.Depth() == 5 })
		queue.failTake(errors.New("input/output error"))
		c := subscribe(t, b, "t", "ch", 100)
		eventually(t, "an attempt", func() bool { return queue.takeCount() > 0 })
		time.Sleep(3 * time.Millisecond) // a spinning pump makes thousands of attempts in this time
		if n := queue.takeCount(); n > 100 {
			t.Errorf("%s: %d attempts to read in a moment", where, n)
		}
		if lines := j.Logged("ERROR"); len(lines) == 0 || !strings.HasSuffix(lines[0], "failed to read messages from backend - input/output error") {
			t.Errorf("%s: not told: %.2q", where, lines)
		}
		queue.failTake(nil)
		eventually(t, "all deliveries", func() bool { return len(c.deliveries()) == 5 })
		closeBroker(t, b)
	}
}

// A record on disk that is no message is reported and costs only itself.
func TestDamagedRecordCostsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, j := newMemStore(), new(testutil.Buffer)
		b := start(t, store, memory(0), logTo(j))
		topic := topicOf(t, b, "t")
		channelOf(t, topic, "ch")
		publish(t, topic, "a", "b")
		synctest.Wait()
		if _, err := store.queue("t", "ch").Put([][]byte{[]byte("not a message")}); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, "c")
		c := subscribe(t, b, "t", "ch", 100)
		synctest.Wait()
		wantBodies(t, "delivered", c.bodies(), []string{"a", "b", "c"})
		if lines := j.Logged("ERROR"); len(lines) != 1 || !strings.Contains(lines[0], "failed to read messages from backend - decode message: invalid message buffer size (13)") {
			t.Fatalf("log %q", lines)
		}
	})
}

// Health names the first thing that is unwell, and is nil when everything works again or is gone.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, health := newMemStore(), new(Health)
		b := start(t, store, func(c *Config) { c.Health = health })
		if err := b.Health(); err != nil {
			t.Fatalf("healthy: %v", err)
		}
		topic := topicOf(t, b, "t")
		channelOf(t, topic, "a")
		channelOf(t, topic, "b")
		for _, queue := range []string{"t:b", "t:a", "t"} {
			health.Set(queue, errDisk)
		}
		if err := b.Health(); !errors.Is(err, errDisk) || err.Error() != errDisk.Error()+" (t, and 2 more)" {
			t.Fatalf("three unwell: %v", err)
		}
		health.Set("t", nil)
		if err := topic.DeleteChannel("a"); err != nil {
			t.Fatal(err)
		}
		if err := b.Health(); err == nil || err.Error() != errDisk.Error() {
			t.Fatalf("one unwell: %v", err)
		}
		if err := b.DeleteTopic("t"); err != nil {
			t.Fatal(err)
		}
		if err := b.Health(); err != nil {
			t.Fatalf("the rest is gone: %v", err)
		}
		store.failSave(errDisk)
		if err := topicOf(t, b, "u").Pause(); !errors.Is(err, errDisk) {
			t.Fatalf("pause that is not durable: %v", err)
		}
		if err := b.Health(); !errors.Is(err, errDisk) {
			t.Fatalf("metadata unwell: %v", err)
		}
		store.failSave(nil)
		time.Sleep(metadataRetry + time.Millisecond)
		synctest.Wait()
		if err := b.Health(); err != nil || !strings.Contains(store.document(), `{"name":"u","paused":true`) {
			t.Fatalf("the metadata is not written again: %v, %s", err, store.document())
		}
	})
}

// Close tells what the disk did not take.
func TestCloseTellsWhatIsLost(t *testing.T) {
	store := newMemStore()
	b, err := New(testConfig(store))
	if err != nil {
		t.Fatal(err)
	}
	topic := topicOf(t, b, "t")
	c := channelOf(t, topic, "ch")
	publish(t, topic, numbered(0, 5)...)
	eventually(t, "the hand-over", func() bool { return c.messageCount.Load() == 5 })
	store.queue("t", "ch").failAfter(2)
	err = b.Close()
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "close channel ch of topic t: 3 messages lost: ") {
		t.Fatalf("Close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatalf("the second Close: %v", err)
	}
}

// After Close everything is refused, and nothing waits for ever.
func TestClosedBrokerRefuses(t *testing.T) {
	b := start(t, newMemStore())
	topic := topicOf(t, b, "t")
	c := subscribe(t, b, "t", "ch", 1)
	publish(t, topic, "a")
	eventually(t, "a delivery", func() bool { return len(c.deliveries()) == 1 })
	closeBroker(t, b)
	<-c.done
	_, topicErr := b.Topic("u")
	_, channelErr := topic.Channel("x")
	_, subErr := trySubscribe(b, "t", "ch", 1)
	_, ephemeralErr := trySubscribe(b, "t#ephemeral", "ch#ephemeral", 1)
	for what, err := range map[string]error{
		"topic": topicErr, "channel": channelErr, "subscribe": subErr, "subscribe to an ephemeral one": ephemeralErr,
		"publish": topic.Publish(batchOf("b")), "requeue": c.sub.Requeue(c.last(t).id, 0),
	} {
		if !errors.Is(err, ErrExiting) {
			t.Errorf("%s: %v, want %v", what, err, ErrExiting)
		}
	}
}

// While publishers publish, Close keeps all that was acknowledged: nothing between.
func TestCloseKeepsWhatIsAcknowledged(t *testing.T) {
	for _, size := range []int{0, 20, 100_000} {
		store := newMemStore()
		b := start(t, store, memory(size))
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 50)
		var acked atomic.Int64
		var publishers sync.WaitGroup
		for range 4 {
			publishers.Go(func() {
				for {
					if err := topic.Publish(batchOf("a", "b", "c")); err != nil {
						if !errors.Is(err, ErrExiting) {
							t.Errorf("publish: %v", err)
						}
						return
					}
					acked.Add(3)
				}
			})
		}
		eventually(t, "messages", func() bool { return acked.Load() > 500 })
		closeBroker(t, b)
		publishers.Wait()
		<-c.done
		if kept := store.queue("t", "ch").Depth() + store.queue("t", "").Depth(); kept != acked.Load() {
			t.Fatalf("memory %d: %d kept, %d acknowledged", size, kept, acked.Load())
		}
	}
}
