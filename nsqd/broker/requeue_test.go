package broker

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/protocol"
)

// wantAt checks that something happened at its due time or within one interval of the scan.
func wantAt(t *testing.T, what string, at, due time.Time) {
	t.Helper()
	if late := at.Sub(due); late < 0 || late > scanInterval {
		t.Fatalf("%s came %v after its time, want 0 to %v", what, late, scanInterval)
	}
}

// Requeue without a delay puts the message at the tail at once, for anyone; its attempts go on.
func TestRequeueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		c := subscribe(t, b, "t", "ch", 1)
		publish(t, topicOf(t, b, "t"), "a", "b")
		synctest.Wait()
		first := c.last(t)
		if err := c.sub.Requeue(first.id, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantBodies(t, "the rest goes first", c.bodies(), []string{"a", "b"})
		c.sub.SetReady(2)
		synctest.Wait()
		if again := c.last(t); again.id != first.id || again.attempts != 2 || again.body != "a" {
			t.Fatalf("redelivered %+v", again)
		}
		if got := stats(t, b, "t", "ch"); got.RequeueCount != 1 || got.InFlightCount != 2 || got.MessageCount != 2 {
			t.Fatalf("%+v", got)
		}
		if got := c.sub.Stats(); got.RequeueCount != 1 || got.MessageCount != 3 {
			t.Fatalf("%+v", got)
		}
	})
}

// Requeue with a delay sets the message aside: counted as deferred, never early, at most one scan
// interval late.
func TestRequeueWithDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		c := subscribe(t, b, "t", "ch", 1)
		publish(t, topicOf(t, b, "t"), "a")
		synctest.Wait()
		for n, delay := range []time.Duration{time.Millisecond, 90 * time.Millisecond, time.Hour} {
			due := time.Now().Add(delay)
			if err := c.sub.Requeue(c.last(t).id, delay); err != nil {
				t.Fatal(err)
			}
			if got := stats(t, b, "t", "ch"); got.DeferredCount != 1 || got.InFlightCount != 0 || got.Depth != 0 {
				t.Fatalf("deferred: %+v", got)
			}
			time.Sleep(delay + scanInterval)
			synctest.Wait()
			if got := c.last(t); int(got.attempts) != n+2 {
				t.Fatalf("after %v: attempts %d, want %d", delay, got.attempts, n+2)
			}
			wantAt(t, delay.String(), c.last(t).at, due)
		}
	})
}

// Finish, requeue and touch work for the holder only, and say who that is.
func TestOnlyTheHolderDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		holder := subscribe(t, b, "t", "ch", 1)
		publish(t, topicOf(t, b, "t"), "a")
		synctest.Wait()
		other, elsewhere := subscribe(t, b, "t", "ch", 1), subscribe(t, b, "t", "x", 1)
		id := holder.last(t).id
		for _, c := range []*client{other, elsewhere} {
			if len(c.sub.Finish([]protocol.ID{id})) != 1 || c.sub.Touch(id) || !errors.Is(c.sub.Requeue(id, 0), ErrNotFound) {
				t.Fatal("one who does not hold the message can act on it")
			}
		}
		if !other.sub.HeldByOther(id) || holder.sub.HeldByOther(id) || elsewhere.sub.HeldByOther(id) || other.sub.HeldByOther(idOf(1)) {
			t.Fatal("wrong about who holds the message")
		}
		if got := stats(t, b, "t", "ch"); got.InFlightCount != 1 || got.RequeueCount != 0 {
			t.Fatalf("%+v", got)
		}
		if !holder.sub.Touch(id) || holder.finishAll() != 0 {
			t.Fatal("the holder can not act on the message")
		}
	})
}

// A message that times out is counted, goes to another client with one attempt more, opens the
// window of the first and is no longer its own.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		slow := subscribe(t, b, "t", "ch", 1, timeout(2*time.Second))
		publish(t, topic, "a")
		synctest.Wait()
		due := time.Now().Add(2 * time.Second)
		other := subscribe(t, b, "t", "ch", 1)
		time.Sleep(2*time.Second + scanInterval)
		synctest.Wait()
		took := other
		if len(other.deliveries()) == 0 {
			took = slow
		}
		if got := took.last(t); got.attempts != 2 {
			t.Fatalf("attempts %d, want 2", got.attempts)
		}
		wantAt(t, "redelivery", took.last(t).at, due)
		if took == other && slow.finishAll() != 1 {
			t.Fatal("a finish after the timeout succeeded")
		}
		if got := stats(t, b, "t", "ch"); got.TimeoutCount != 1 || got.InFlightCount != 1 || got.RequeueCount != 0 {
			t.Fatalf("%+v", got)
		}
		publish(t, topic, "b")
		synctest.Wait()
		if got := len(slow.sub.channel.Subscriptions()); got != 2 || stats(t, b, "t", "ch").Depth != 0 {
			t.Fatal("the window of the one who timed out has not opened again")
		}
	})
}

// Messages of one client time out on time, each at its own deadline, though the timeouts of two
// clients differ.
func TestTimeoutsOfDifferentLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		topic := topicOf(t, b, "t")
		long, short := subscribe(t, b, "t", "ch", 5, timeout(10*time.Second)), subscribe(t, b, "t", "ch", 0, timeout(time.Second))
		publish(t, topic, numbered(0, 5)...)
		synctest.Wait()
		began := time.Now()
		time.Sleep(time.Second)
		short.sub.SetReady(5)
		publish(t, topic, "short")
		synctest.Wait()
		long.sub.SetReady(0)
		time.Sleep(time.Second + scanInterval)
		synctest.Wait()
		if got := short.last(t); got.body != "short" || got.attempts != 2 {
			t.Fatalf("the short timeout waits for the long one: %+v", got)
		}
		wantAt(t, "short", short.last(t).at, began.Add(2*time.Second))
		short.finishAll()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		wantSame(t, "long", short.bodies(), numbered(0, 5))
		wantAt(t, "long", short.last(t).at, began.Add(10*time.Second))
	})
}

// TOUCH begins the timeout anew, and can not go beyond the maximum: touched every half second with
// a maximum of 5 s, the message comes back after 5 s.
func TestTouchExtendsUpToTheMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore(), func(c *Config) { c.MaxMsgTimeout = 5 * time.Second })
		c := subscribe(t, b, "t", "ch", 1, timeout(time.Second))
		publish(t, topicOf(t, b, "t"), "a")
		synctest.Wait()
		began := c.last(t).at
		for range 9 {
			time.Sleep(500 * time.Millisecond)
			if !c.sub.Touch(c.last(t).id) {
				t.Fatalf("touch after %v failed", time.Since(began))
			}
		}
		if got := c.last(t); got.attempts != 1 {
			t.Fatal("it timed out though it was touched")
		}
		time.Sleep(500*time.Millisecond + scanInterval)
		synctest.Wait()
		if got := c.last(t); got.attempts != 2 {
			t.Fatalf("attempts %d, want 2", got.attempts)
		}
		wantAt(t, "redelivery", c.last(t).at, began.Add(5*time.Second))
	})
}

// What a client held when its connection was lost goes to others at once, with its attempts, and
// what is deferred stays so.
func TestDisconnectRequeuesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		lost := subscribe(t, b, "t", "ch", 100)
		publish(t, topicOf(t, b, "t"), numbered(0, 50)...)
		synctest.Wait()
		if err := lost.sub.Requeue(lost.deliveries()[0].id, time.Minute); err != nil {
			t.Fatal(err)
		}
		other := subscribe(t, b, "t", "ch", 100)
		synctest.Wait()
		gone := time.Now()
		lost.disconnect()
		synctest.Wait()
		wantSame(t, "the other client", other.bodies(), numbered(1, 50))
		for _, d := range other.deliveries() {
			if d.attempts != 2 || !d.at.Equal(gone) {
				t.Fatalf("attempts %d, %v after the disconnect", d.attempts, d.at.Sub(gone))
			}
		}
		if got := stats(t, b, "t", "ch"); got.DeferredCount != 1 || got.ClientCount != 1 || got.TimeoutCount != 0 || got.RequeueCount != 1 {
			t.Fatalf("%+v", got)
		}
		if err := lost.sub.Requeue(other.deliveries()[0].id, 0); !errors.Is(err, ErrNotFound) {
			t.Fatalf("the lost client requeues what it does not hold: %v", err)
		}
	})
}

// What was taken for a window that has closed in the meantime goes back, with no attempt counted.
func TestWindowClosesDuringDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		c := subscribe(t, b, "t", "ch", 0)
		publish(t, topicOf(t, b, "t"), numbered(0, 5)...)
		synctest.Wait()
		var batch Batch
		c.sub.channel.take(&batch, 5, &c.sub.waiter)
		if err := c.sub.deliver(&batch); err != nil {
			t.Fatal(err)
		}
		if got := stats(t, b, "t", "ch"); got.Depth != 5 || got.InFlightCount != 0 || len(c.deliveries()) != 0 {
			t.Fatalf("%+v", got)
		}
		c.sub.SetReady(5)
		synctest.Wait()
		if wantBodies(t, "later", c.bodies(), numbered(0, 5)); c.last(t).attempts != 1 {
			t.Fatalf("attempts %d, want 1", c.last(t).attempts)
		}
	})
}

// Attempts go on over requeue, timeout and disconnect.
func TestAttemptsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore(), memory(0))
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 1, timeout(time.Second))
		publish(t, topic, "a")
		synctest.Wait()
		if err := c.sub.Requeue(c.last(t).id, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second + scanInterval)
		synctest.Wait()
		if err := c.sub.Requeue(c.last(t).id, time.Second/2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second/2 + scanInterval)
		synctest.Wait()
		c.disconnect()
		next := subscribe(t, b, "t", "ch", 1)
		synctest.Wait()
		var got []uint16
		for _, d := range append(c.deliveries(), next.deliveries()...) {
			got = append(got, d.attempts)
		}
		if !slices.Equal(got, []uint16{1, 2, 3, 4, 5}) {
			t.Fatalf("attempts %d, want 1 to 5", got)
		}
	})
}
