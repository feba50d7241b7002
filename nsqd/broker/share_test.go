package broker

import "testing"

// waiting returns a queue with room and waiters of the given proximities, in that order.
func waiting(t *testing.T, proximities ...Proximity) (*queue, []*waiter) {
	t.Helper()
	q := &queue{capacity: 1000, over: newMemQueue()}
	var all []*waiter
	for _, p := range proximities {
		w := newWaiter(p)
		if !q.await(&w, 100) {
			t.Fatal("an empty queue has something to take")
		}
		all = append(all, &w)
	}
	return q, all
}

func wokenAmong(all []*waiter) (woken []int) {
	for i, w := range all {
		select {
		case <-w.wake:
			woken = append(woken, i)
		default:
		}
	}
	return woken
}

func takeOne(t *testing.T, q *queue, w *waiter) int {
	t.Helper()
	var b Batch
	if err := q.take(&b, 100, w); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// A burst is shared evenly among all who waited for it, although each is woken only when the one
// before has taken: who was woken and has not come yet still counts.
func TestBurstIsSharedEvenly(t *testing.T) {
	q, all := waiting(t, Anywhere, Anywhere, Anywhere, Anywhere)
	if err := q.put(messages(0, 40)); err != nil {
		t.Fatal(err)
	}
	// The first comes and goes on at once, before the second has had the chance to run.
	if first, second := takeOne(t, q, all[0]), takeOne(t, q, all[0]); first != 11 || second > 8 {
		t.Errorf("the first took %d and %d of 40 with three others woken or waiting", first, second)
	}
	if got := takeOne(t, q, all[1]); got < 6 {
		t.Errorf("the second got %d", got)
	}
}

// Whoever is nearest is woken, in the order of waiting among equals; the others only when the near
// ones have their hands full.
func TestNearestIsWokenFirst(t *testing.T) {
	q, all := waiting(t, Anywhere, SameRegion, SameZone, SameZone)
	for _, want := range []int{2, 3, 1, 0} {
		if err := q.put(messages(0, 1)); err != nil {
			t.Fatal(err)
		}
		if woken := wokenAmong(all); len(woken) != 1 || woken[0] != want {
			t.Fatalf("woken: %v, want %d", woken, want)
		}
	}
}

// A near one does not leave a share to those who are farther away, and these do for it.
func TestSharesByProximity(t *testing.T) {
	for _, test := range []struct {
		taker, other Proximity
		want         int
	}{
		{SameZone, Anywhere, 11},
		{SameRegion, Anywhere, 11},
		{SameZone, SameZone, 6},
		{Anywhere, SameZone, 6},
		{SameRegion, SameZone, 6},
	} {
		q, _ := waiting(t, test.other)
		taker := newWaiter(test.taker)
		if err := q.put(messages(0, 10)); err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := q.take(&b, 100, &taker); err != nil {
			t.Fatal(err)
		}
		if want := min(test.want, 10); b.Len() != want {
			t.Errorf("%d takes %d of 10 beside %d, want %d", test.taker, b.Len(), test.other, want)
		}
	}
}

// One that was woken and leaves is no sharer any more, and what it was woken for wakes another.
func TestLeavingPassesTheWakeUpOn(t *testing.T) {
	q, all := waiting(t, Anywhere, Anywhere)
	if err := q.put(messages(0, 1)); err != nil {
		t.Fatal(err)
	}
	q.leave(all[0])
	if q.woken != [proximities]int{Anywhere: 1} || !all[1].woken {
		t.Errorf("woken: %v, want the second", q.woken)
	}
	takeOne(t, q, all[1])
	if q.woken != [proximities]int{} {
		t.Errorf("woken: %v, want nobody", q.woken)
	}
}
