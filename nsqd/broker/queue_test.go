package broker

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nsq/internal/diskq"
)

func takeAll(t interface{ Fatalf(string, ...any) }, q *queue) []string {
	var all []string
	for {
		var b Batch
		if err := q.take(&b, 64, new(waiter)); err != nil {
			t.Fatalf("take: %v", err)
		}
		q.arrived(&b)
		if b.Len() == 0 {
			return all
		}
		all = append(all, bodiesOf(b.messages)...)
	}
}

// A put is all or nothing however the overflow fails, a message that was put comes out exactly
// once, memory holds no more than its capacity and one batch, and depth tells the truth.
func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 30
		over := newMemQueue()
		q := &queue{capacity: rapid.SampledFrom([]int{0, 1, 7, 50, 1000}).Draw(t, "capacity"), over: over}
		var kept []string
		next, back := 0, 0
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 30).Draw(t, "op"); {
			case op < 14:
				batch := messages(next, rapid.IntRange(1, most).Draw(t, "n"))
				next += len(batch)
				if err := q.put(batch); err == nil {
					kept = append(kept, bodiesOf(batch)...)
				} else if over.budget < 0 {
					t.Fatalf("put failed on a good disk: %v", err)
				}
			case op < 16:
				batch := messages(next, rapid.IntRange(0, 5).Draw(t, "back"))
				next += len(batch)
				back += len(batch)
				if err := q.putBack(batch); err != nil {
					t.Fatalf("putBack: %v", err)
				}
				kept = append(kept, bodiesOf(batch)...)
			case op < 26:
				var b Batch
				limit := rapid.IntRange(1, 40).Draw(t, "limit")
				if err := q.take(&b, limit, new(waiter)); err != nil || b.Len() > limit {
					t.Fatalf("took %d of %d: %v", b.Len(), limit, err)
				}
				q.arrived(&b)
				if b.Len() == 0 && len(kept) > 0 {
					t.Fatalf("nothing taken where %d wait", len(kept))
				}
				for _, body := range bodiesOf(b.messages) {
					at := slices.Index(kept, body)
					if at < 0 {
						t.Fatalf("took %s, which was never kept or was taken before", body)
					}
					kept = slices.Delete(kept, at, at+1)
				}
			case op < 27 && len(kept) > 200:
				if err := q.empty(); err != nil {
					t.Fatal(err)
				}
				kept = nil
			case op < 28:
				over.failAfter(-1)
			default:
				over.failAfter(rapid.IntRange(0, 12).Draw(t, "fail after"))
			}
			all, overflow := q.depth()
			if all != int64(len(kept)) || overflow != over.Depth() {
				t.Fatalf("depth %d, %d, want %d, %d", all, overflow, len(kept), over.Depth())
			}
			if memory := int(all - overflow); memory > q.capacity+most+back {
				t.Fatalf("memory holds %d messages of %d", memory, q.capacity)
			}
		}
		wantSame2(t, takeAll(t, q), kept)
	})
}

func wantSame2(t *rapid.T, got, want []string) {
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("got %d messages %.200q, want %d %.200q", len(got), got, len(want), want)
	}
}

// While everything fits in memory, and while nothing does, messages come out in the order in which
// they were put.
func TestQueueKeepsOrder(t *testing.T) {
	for _, capacity := range []int{0, 10_000} {
		q := &queue{capacity: capacity, over: newMemQueue()}
		for i := range 20 {
			if err := q.put(messages(1000*i, 10)); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for i := range 20 {
			want = append(want, bodiesOf(messages(1000*i, 10))...)
		}
		wantBodies(t, "order", takeAll(t, q), want)
	}
}

// Neither memory nor overflow waits for the other to run dry.
func TestQueueTakesInTurn(t *testing.T) {
	q := &queue{capacity: 100, over: newMemQueue()}
	if err := q.put(messages(0, 200)); err != nil {
		t.Fatal(err)
	}
	var memory, disk int
	for range 8 {
		var b Batch
		if err := q.take(&b, 10, new(waiter)); err != nil {
			t.Fatal(err)
		}
		q.arrived(&b)
		if len(b.messages[0].Body()) < 3 { // of the first hundred
			memory += b.Len()
		} else {
			disk += b.Len()
		}
	}
	if memory != 40 || disk != 40 {
		t.Fatalf("took %d from memory and %d from the overflow, want 40 of each", memory, disk)
	}
}

// The overflow failing at record k of a batch: at the first record the put fails and leaves no
// trace, later it succeeds, with the rest in memory.
func TestQueueOverflowFailsAtRecord(t *testing.T) {
	for k := range 6 {
		over := newMemQueue()
		q := &queue{capacity: 3, over: over}
		over.failAfter(k)
		err := q.put(messages(0, 8)) // 3 fit, 5 are written
		all, disk := q.depth()
		if k == 0 {
			if !errors.Is(err, errDisk) || all != 0 {
				t.Errorf("failing at record 0: %v, %d kept", err, all)
			}
			if room := q.room(); room != 3 {
				t.Errorf("failing at record 0: room for %d, want 3", room)
			}
			continue
		}
		if err != nil || all != 8 || disk != int64(k) {
			t.Errorf("failing at record %d: %v, %d kept, %d of them on disk", k, err, all, disk)
		}
		wantSame(t, "kept", takeAll(t, q), bodiesOf(messages(0, 8)))
	}
}

// While memory holds more than it may, because the disk failed, batches are refused as long as the
// disk fails, and accepted from the moment it works, though nobody took anything in the meantime.
func TestQueueRecoversWithoutConsumers(t *testing.T) {
	for _, capacity := range []int{0, 4} {
		over := newMemQueue()
		q := &queue{capacity: capacity, over: over}
		over.failAfter(1)
		if err := q.put(messages(0, 10)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := q.put(messages(10, 5)); err == nil {
				t.Fatal("a batch is accepted beyond the bound")
			}
		}
		if all, _ := q.depth(); all != 10 {
			t.Fatalf("depth %d, want 10", all)
		}
		over.failAfter(-1)
		if err := q.put(messages(10, 5)); err != nil {
			t.Fatalf("capacity %d: the disk works again and the queue refuses: %v", capacity, err)
		}
		if all, disk := q.depth(); all != 15 || all-disk > int64(capacity) {
			t.Fatalf("depth %d, of them %d on disk: memory holds more than %d", all, disk, capacity)
		}
		wantSame(t, "kept", takeAll(t, q), bodiesOf(messages(0, 15)))
	}
}

// What comes back is kept in memory where the disk fails, and is never refused.
func TestQueuePutBackNeverLoses(t *testing.T) {
	over := newMemQueue()
	q := &queue{capacity: 0, over: over}
	over.failAfter(0)
	for i := range 5 {
		if err := q.putBack(messages(i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	wantSame(t, "kept", takeAll(t, q), bodiesOf(messages(0, 5)))
}

// Closing moves memory, and what the caller adds, behind what the overflow holds; what does not
// fit is counted.
func TestQueueClose(t *testing.T) {
	over := newMemQueue()
	q := &queue{capacity: 5, over: over}
	if err := q.put(messages(0, 8)); err != nil {
		t.Fatal(err)
	}
	lost, err := q.close(messages(8, 2))
	if lost != 0 || err != nil || !over.closed {
		t.Fatalf("close: %d lost, %v", lost, err)
	}
	wantBodies(t, "overflow", over.bodies(), []string{"5", "6", "7", "0", "1", "2", "3", "4", "8", "9"})
	for what, err := range map[string]error{"put": q.put(messages(0, 1)), "putBack": q.putBack(messages(0, 1))} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}

	over = newMemQueue()
	q = &queue{capacity: 10, over: over}
	if err := q.put(messages(0, 8)); err != nil {
		t.Fatal(err)
	}
	over.failAfter(3)
	if lost, err := q.close(nil); lost != 5 || !errors.Is(err, errDisk) || !over.closed {
		t.Fatalf("close on a full disk: %d lost, %v", lost, err)
	}
}

// One who was woken and does not take passes the wake-up on.
func TestQueueWakeUpIsPassedOn(t *testing.T) {
	q := &queue{capacity: 10, over: newMemQueue()}
	first, second := newWaiter(Anywhere), newWaiter(Anywhere)
	for _, w := range []*waiter{&first, &second, &first} { // to wait twice is to wait once
		if !q.await(w, 1) {
			t.Fatal("an empty queue has something to take")
		}
	}
	if err := q.put(messages(0, 1)); err != nil {
		t.Fatal(err)
	}
	if len(first.wake) != 1 || len(second.wake) != 0 {
		t.Fatal("not exactly the one who waits longest is woken")
	}
	q.leave(&first)
	if len(second.wake) != 1 {
		t.Fatal("the message lies there and nobody is woken for it")
	}
	if q.await(&second, 1) {
		t.Fatal("one may wait though there is something to take")
	}
}

// With many takers and putters, small windows, a small memory and an overflow that fails now and
// then, everything arrives once: no wake-up is lost and nobody sleeps for ever.
func TestQueueStress(t *testing.T) {
	for _, capacity := range []int{0, 3, 100} {
		const putters, each, takers = 6, 1500, 6
		over := newMemQueue()
		q := &queue{capacity: capacity, over: over}
		var taken atomic.Int64
		var seen [putters * each]atomic.Int32
		done := make(chan struct{})
		var all sync.WaitGroup
		for p := range putters {
			all.Go(func() {
				for i := 0; i < each; {
					n := min(1+(i+p)%7, each-i)
					if p == 0 && i%50 == 0 {
						over.failAfter(2)
					}
					if err := q.put(messages(p*each+i, n)); err != nil {
						over.failAfter(-1)
						continue
					}
					i += n
				}
				over.failAfter(-1)
			})
		}
		for k := range takers {
			all.Go(func() {
				w := newWaiter(Anywhere)
				defer q.leave(&w)
				var b Batch
				for {
					b.Reset()
					if err := q.take(&b, 1+k, &w); err != nil {
						t.Errorf("take: %v", err)
						return
					}
					q.arrived(&b)
					for i := range b.messages {
						n := 0
						for _, digit := range b.messages[i].Body() {
							n = 10*n + int(digit-'0')
						}
						seen[n].Add(1)
					}
					if b.Len() > 0 && taken.Add(int64(b.Len())) == putters*each {
						close(done)
					}
					if b.Len() > 0 || !q.await(&w, int64(1+k)) {
						continue
					}
					select {
					case <-w.wake:
					case <-done:
						return
					}
				}
			})
		}
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			depth, disk := q.depth()
			t.Fatalf("capacity %d: %d of %d arrived, depth %d (%d on disk)", capacity, taken.Load(), putters*each, depth, disk)
		}
		all.Wait()
		for n := range seen {
			if got := seen[n].Load(); got != 1 {
				t.Fatalf("message %d arrived %d times", n, got)
			}
		}
	}
}

// A queue without memory that keeps only what waiters can take accepts exactly that.
func TestQueueOnlyToWaiters(t *testing.T) {
	q := &queue{capacity: 0, over: diskq.Discard(), onlyToWaiters: true}
	if err := q.put(messages(0, 3)); err != nil {
		t.Fatal(err)
	}
	if all, _ := q.depth(); all != 0 {
		t.Fatalf("%d kept for nobody", all)
	}
	w := newWaiter(Anywhere)
	q.await(&w, 2)
	if err := q.put(messages(3, 3)); err != nil {
		t.Fatal(err)
	}
	wantBodies(t, "kept", takeAll(t, q), []string{"3", "4"})
}
