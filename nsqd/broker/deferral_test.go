package broker

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/protocol"
)

// A deferred publish is counted at once, waits apart from the depth, and is delivered on time with
// its first attempt: never early, at most one interval of the scan late.
func TestDeferredPublish(t *testing.T) {
	for _, size := range []int{0, 1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemStore()
			b := start(t, store, memory(size))
			topic := topicOf(t, b, "t")
			x, y := subscribe(t, b, "t", "x", 100), subscribe(t, b, "t", "y", 100)
			began := time.Now()
			for _, delay := range []time.Duration{500, 100, 1, 60_000} {
				publishDeferred(t, topic, delay*time.Millisecond, fmt.Sprint(int(delay)))
			}
			publish(t, topic, "0")
			synctest.Wait()
			want := ChannelStats{Name: "x", DeferredCount: 4, ReadyCount: 100, MessageCount: 5, DeliveryCount: 1, InFlightCount: 1, FromMemory: [proximities]uint64{uint64(min(size, 1))}, ClientCount: 1}
			if got := stats(t, b, "t", "x"); !reflect.DeepEqual(got, want) {
				t.Fatalf("deferred: %+v, want %+v", got, want)
			}
			if got := b.Stats("t", "")[0]; got.MessageCount != 5 || got.Depth != 0 || got.BackendDepth != 0 {
				t.Fatalf("topic: %+v", got)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			for _, c := range []*client{x, y} {
				byBody := map[string]delivery{}
				for _, d := range c.deliveries() {
					if byBody[d.body].attempts == 0 {
						byBody[d.body] = d
					}
				}
				for _, delay := range []time.Duration{0, 1, 100, 500, 60_000} {
					d := byBody[fmt.Sprint(int(delay))]
					if d.attempts != 1 {
						t.Fatalf("delay %d: attempts %d of the first delivery", delay, d.attempts)
					}
					wantAt(t, "deferred message", d.at, began.Add(delay*time.Millisecond))
				}
			}
		})
	}
}

// The delay begins at the hand-over: while a topic has no channel or is paused, a deferred message
// waits in the topic, also where memory is full or has no room at all.
func TestDelayBeginsAtHandOver(t *testing.T) {
	for _, size := range []int{0, 2, 1000} {
		for _, paused := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, newMemStore(), memory(size))
				topic := topicOf(t, b, "t")
				if paused {
					channelOf(t, topic, "ch")
					if err := topic.Pause(); err != nil {
						t.Fatal(err)
					}
				}
				publish(t, topic, numbered(0, 5)...)
				publishDeferred(t, topic, time.Minute, "later", "too")
				time.Sleep(time.Hour)
				if got := depthOf(t, b, "t"); got != 7 {
					t.Fatalf("depth %d, want 7", got)
				}
				c := subscribe(t, b, "t", "ch", 100, timeout(time.Hour))
				if err := topic.Unpause(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				due := time.Now().Add(time.Minute)
				wantSame(t, "at once", c.bodies(), numbered(0, 5))
				time.Sleep(time.Minute + scanInterval)
				synctest.Wait()
				wantSame(t, "in the end", c.bodies(), append(numbered(0, 5), "later", "too"))
				wantAt(t, "deferred message", c.last(t).at, due)
			})
		}
	}
}

// A clean restart keeps delays: of a message on a channel the time when it is due, be it after the
// restart or over by then; of one in the topic the whole delay from the hand-over. Two restarts in
// a row change nothing.
func TestDelaySurvivesRestart(t *testing.T) {
	for _, size := range []int{0, 1000} {
		for restarts := range 3 {
			synctest.Test(t, func(t *testing.T) {
				store := newMemStore()
				b := start(t, store, memory(size))
				topic := topicOf(t, b, "t")
				c := subscribe(t, b, "t", "ch", 10)
				began := time.Now()
				publishDeferred(t, topic, time.Minute, "a")
				publishDeferred(t, topic, 10*time.Second, "b")
				publish(t, topic, "c")
				synctest.Wait()
				if err := c.sub.Requeue(c.last(t).id, 2*time.Minute); err != nil {
					t.Fatal(err)
				}
				c.disconnect()
				if err := topic.Pause(); err != nil {
					t.Fatal(err)
				}
				publishDeferred(t, topic, time.Minute, "d")
				publish(t, topic, "e")
				closeBroker(t, b)
				for range restarts {
					time.Sleep(5 * time.Second)
					b = start(t, store, memory(size))
					closeBroker(t, b)
				}

				time.Sleep(10 * time.Second)
				b = start(t, store, memory(size))
				c = subscribe(t, b, "t", "ch", 10, timeout(time.Hour))
				synctest.Wait()
				wantBodies(t, "after the restart", c.bodies(), []string{"b"})
				if got := stats(t, b, "t", "ch"); got.DeferredCount != 2 {
					t.Fatalf("%+v", got)
				}
				handed := time.Now()
				if err := topicOf(t, b, "t").Unpause(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				due := map[string]time.Time{
					"a": began.Add(time.Minute), "c": began.Add(2 * time.Minute), "d": handed.Add(time.Minute), "e": handed,
				}
				var bodies []string
				for _, d := range c.deliveries() {
					bodies = append(bodies, d.body)
					if at, ok := due[d.body]; ok {
						wantAt(t, d.body, d.at, at)
					}
					if want := map[string]uint16{"c": 2}[d.body]; d.attempts != max(want, 1) {
						t.Errorf("%s: attempts %d", d.body, d.attempts)
					}
				}
				wantSame(t, "in the end", bodies, []string{"a", "b", "c", "d", "e"})
				closeBroker(t, b)
				if len(store.delays) != 0 {
					t.Errorf("delays of messages that are gone are kept: %v", store.delays)
				}
			})
		}
	}
}

// Emptying or deleting drops what the store remembers of delays.
func TestDelaysGoWithTheMessages(t *testing.T) {
	for what, drop := range map[string]func(*Topic) error{
		"empty channel":  func(t *Topic) error { return t.Channels()[0].Empty() },
		"delete channel": func(t *Topic) error { return t.DeleteChannel("ch") },
		"delete topic":   func(t *Topic) error { return t.broker.DeleteTopic("t") },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemStore()
			b := start(t, store)
			channelOf(t, topicOf(t, b, "t"), "ch")
			publishDeferred(t, topicOf(t, b, "t"), time.Minute, "a")
			synctest.Wait()
			closeBroker(t, b)
			if len(store.delays) != 1 {
				t.Fatalf("the store remembers delays of %d queues, want 1", len(store.delays))
			}
			b = start(t, store)
			if err := drop(topicOf(t, b, "t")); err != nil {
				t.Fatal(err)
			}
			if len(store.delays) != 0 {
				t.Errorf("%s: delays are kept: %v", what, store.delays)
			}
		})
	}
}

// The file of delays survives what happens to files: lines that make no sense cost only themselves,
// and no message goes without its file.
func TestDelaysFile(t *testing.T) {
	store := onDisk(t.TempDir())
	id := func(s string) protocol.ID { return protocol.ID([]byte(s)) }
	want := map[protocol.ID]int64{id("0123456789abcdef"): 5, id("fedcba9876543210"): -1 << 60}
	if err := store.SaveDelays("t", "ch", want); err != nil {
		t.Fatal(err)
	}
	if got, err := store.LoadDelays("t", "ch"); err != nil || len(got) != 2 || got[id("0123456789abcdef")] != 5 || got[id("fedcba9876543210")] != -1<<60 {
		t.Fatalf("loaded %v, %v", got, err)
	}
	if got, err := store.LoadDelays("t", ""); err != nil || got != nil {
		t.Fatalf("of another queue: %v, %v", got, err)
	}
	write(t, store.Path, "t:ch.deferred.dat", "\n \nshort 5\n0123456789abcdef 7\n0123456789abcdeg x\n"+
		"0123456789abcdeh 99999999999999999999\n0123456789abcdei\n0123456789abcdej 3 4\nfedcba9876543210 8")
	got, err := store.LoadDelays("t", "ch")
	if err != nil || len(got) != 2 || got[id("0123456789abcdef")] != 7 || got[id("fedcba9876543210")] != 8 {
		t.Fatalf("damaged: %v, %v", got, err)
	}
	for range 2 {
		if err := store.SaveDelays("t", "ch", nil); err != nil {
			t.Fatal(err)
		}
		if names := fileNames(t, store.Path); len(names) != 0 {
			t.Fatalf("files left: %q", names)
		}
	}
}

// The timers of a channel that was made this moment are on time.
func TestNewChannelIsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		time.Sleep(1234 * time.Millisecond)
		c := subscribe(t, b, "t", "ch", 1, timeout(2*time.Second))
		due := time.Now().Add(100 * time.Millisecond)
		publishDeferred(t, topicOf(t, b, "t"), 100*time.Millisecond, "a")
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		wantAt(t, "deferred message", c.last(t).at, due)
		due = c.last(t).at.Add(2 * time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c.last(t).attempts != 2 {
			t.Fatal("the timeout has not come")
		}
		wantAt(t, "timeout", c.last(t).at, due)
	})
}

// With 500 channels every timer is on time, whatever the order in which they were set.
func TestManyChannelsAreOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		b := start(t, newMemStore(), memory(10))
		var clients []*client
		var due []time.Time
		for i := range n {
			name := fmt.Sprint("t", i)
			topic := topicOf(t, b, name)
			clients = append(clients, subscribe(t, b, name, "ch", 1))
			delay := time.Duration(100+(i*7919)%900) * time.Millisecond
			due = append(due, time.Now().Add(delay))
			publishDeferred(t, topic, delay, name)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for i, c := range clients {
			wantAt(t, c.sub.channel.topic.name, c.last(t).at, due[i])
		}
	})
}

// A shorter deadline that comes after a longer one is not held up by it, in one channel and
// between channels.
func TestEarlierTimerIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		for _, name := range []string{"t", "u"} {
			c := subscribe(t, b, name, "ch", 10)
			publishDeferred(t, topicOf(t, b, name), time.Hour, "late")
			time.Sleep(time.Second)
			due := time.Now().Add(50 * time.Millisecond)
			publishDeferred(t, topicOf(t, b, name), 50*time.Millisecond, "soon")
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			wantAt(t, "soon", c.last(t).at, due)
		}
	})
}

// Nothing that waits for the scan costs a wake-up before its time: a broker whose next timer is an
// hour away sleeps for an hour.
func TestScanSleepsUntilDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		b := start(t, newMemStore(), func(c *Config) {
			c.Now = func() time.Time { readings.Add(1); return time.Now() }
		})
		channelOf(t, topicOf(t, b, "t"), "ch")
		publishDeferred(t, topicOf(t, b, "t"), time.Hour, "late")
		time.Sleep(time.Second)
		synctest.Wait()
		before := readings.Load()
		time.Sleep(time.Hour - 2*time.Second)
		synctest.Wait()
		if n := readings.Load() - before; n != 0 {
			t.Fatalf("the clock was read %d times in an idle hour", n)
		}
	})
}
