package broker

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nsq/internal/protocol"
)

// held is a message in flight as the model knows it.
type held struct {
	id, attempts   int
	deadline, sent int64
}

// flightModel is a flight without a table: a list in the order of deadlines, of equal ones the
// first linked first.
type flightModel struct {
	list  []held
	ready int64
}

func (m *flightModel) insert(h held) {
	at := len(m.list)
	for at > 0 && m.list[at-1].deadline > h.deadline {
		at--
	}
	m.list = slices.Insert(m.list, at, h)
}

func (m *flightModel) index(id int) int {
	return slices.IndexFunc(m.list, func(h held) bool { return h.id == id })
}

func (m *flightModel) remove(id int) (held, bool) {
	at := m.index(id)
	if at < 0 {
		return held{}, false
	}
	h := m.list[at]
	m.list = slices.Delete(m.list, at, at+1)
	return h, true
}

func (m *flightModel) due() int64 {
	if len(m.list) == 0 {
		return never
	}
	return m.list[0].deadline
}

func newFlight() *flight {
	f := new(flight)
	f.init()
	return f
}

// verify checks the flight's own order: list, table, free slots and count agree.
func (f *flight) verify() error {
	linked, last := 0, none
	for s := f.first; s != none; s = f.slots[s].next {
		if f.slots[s].prev != last {
			return fmt.Errorf("slot %d follows %d and says %d", s, last, f.slots[s].prev)
		}
		if last != none && f.slots[last].deadline > f.slots[s].deadline {
			return fmt.Errorf("deadline %d before %d", f.slots[last].deadline, f.slots[s].deadline)
		}
		if at, ok := f.find(f.slots[s].id); !ok || f.slots[f.table[at]-1].id != f.slots[s].id {
			return fmt.Errorf("id %s of slot %d is not found", f.slots[s].id, s)
		}
		last = s
		linked++
	}
	if f.last != last {
		return fmt.Errorf("last is %d, want %d", f.last, last)
	}
	entries := 0
	for _, entry := range f.table {
		if entry != 0 {
			entries++
		}
	}
	free := 0
	for s := f.free; s != none; s = f.slots[s].next {
		if f.slots[s].message.chunk != nil {
			return fmt.Errorf("free slot %d keeps a message", s)
		}
		free++
	}
	if linked != entries || linked+free != len(f.slots) || int64(linked) != f.count.Load() {
		return fmt.Errorf("%d linked, %d in the table, %d free of %d slots, count %d",
			linked, entries, free, len(f.slots), f.count.Load())
	}
	return nil
}

// Every transition of a flight does what a plain ordered list does, through growth of slots and
// table and through removal from the middle of collisions.
func TestFlightAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, m := newFlight(), flightModel{}
		now, next := int64(0), 0
		known := func() int { return rapid.IntRange(max(0, next-60), next).Draw(t, "id") }
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now += rapid.Int64Range(0, 20).Draw(t, "time")
			switch op := rapid.IntRange(0, 40).Draw(t, "op"); {
			case op < 12:
				n := rapid.IntRange(0, 40).Draw(t, "n")
				timeout := rapid.Int64Range(1, 200).Draw(t, "timeout")
				taken, due := f.deliver(messages(next, n), now, timeout)
				if want := max(0, min(n, int(m.ready)-len(m.list))); taken != want {
					t.Fatalf("took %d, want %d", taken, want)
				}
				for i := range taken {
					m.insert(held{id: next + i, attempts: 1, deadline: now + timeout, sent: now})
				}
				next += n
				if due != m.due() {
					t.Fatalf("due %d, want %d", due, m.due())
				}
			case op < 18:
				var ids, absent []protocol.ID
				want := 0
				for range rapid.IntRange(0, 10).Draw(t, "finishes") {
					id := known()
					ids = append(ids, idOf(id))
					if _, ok := m.remove(id); ok {
						want++
					} else {
						absent = append(absent, idOf(id))
					}
				}
				finished, missing := f.finish(ids, nil)
				if finished != want || !slices.Equal(missing, absent) {
					t.Fatalf("finished %d, missing %s; want %d, %s", finished, missing, want, absent)
				}
			case op < 22:
				id := known()
				want, ok := m.remove(id)
				got, found := f.requeue(idOf(id))
				if found != ok || ok && (got.id() != idOf(want.id) || int(got.attempts) != want.attempts) {
					t.Fatalf("requeue of %d: %t, want %t", id, found, ok)
				}
			case op < 30:
				id := known()
				timeout, limit := rapid.Int64Range(1, 200).Draw(t, "timeout"), rapid.Int64Range(200, 400).Draw(t, "limit")
				h, ok := m.remove(id)
				if ok {
					h.deadline = min(now+timeout, h.sent+limit)
					m.insert(h)
				}
				if got := f.touch(idOf(id), now, timeout, limit); got != ok {
					t.Fatalf("touch of %d: %t, want %t", id, got, ok)
				}
			case op < 36:
				expired, due := f.expire(nil, now)
				want := slices.IndexFunc(m.list, func(h held) bool { return h.deadline > now })
				if want < 0 {
					want = len(m.list)
				}
				if len(expired) != want {
					t.Fatalf("%d expired, want %d", len(expired), want)
				}
				for i := range expired {
					if expired[i].id() != idOf(m.list[i].id) {
						t.Fatalf("%s expired as number %d, want %d", expired[i].id(), i, m.list[i].id)
					}
				}
				m.list = slices.Delete(m.list, 0, want)
				if due != m.due() {
					t.Fatalf("due %d, want %d", due, m.due())
				}
			case op < 37:
				all := f.drain(nil)
				for i := range all {
					if i >= len(m.list) || all[i].id() != idOf(m.list[i].id) {
						t.Fatalf("drained %s as number %d", all[i].id(), i)
					}
				}
				if len(all) != len(m.list) {
					t.Fatalf("drained %d, want %d", len(all), len(m.list))
				}
				m.list = nil
			default:
				m.ready = rapid.Int64Range(0, 300).Draw(t, "ready")
				f.setReady(m.ready)
			}
			if err := f.verify(); err != nil {
				t.Fatal(err)
			}
			if want := max(0, m.ready-int64(len(m.list))); f.window() != want || f.readyCount() != m.ready {
				t.Fatalf("window %d of %d, want %d of %d", f.window(), f.readyCount(), want, m.ready)
			}
			if id := known(); f.holds(idOf(id)) != (m.index(id) >= 0) {
				t.Fatalf("holds(%d) = %t", id, f.holds(idOf(id)))
			}
		}
	})
}

// Two messages of one id, as a crash of an old release can leave them, are two messages: each is
// finished, requeued or expired on its own, and the count comes back to 0.
func TestFlightKeepsDuplicatesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFlight()
		f.setReady(1 << 30)
		copies := make(map[int]int)
		total := 0
		now := int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now++
			id := rapid.IntRange(0, 12).Draw(t, "id")
			switch op := rapid.IntRange(0, 11).Draw(t, "op"); {
			case op < 6:
				f.deliver(messages(id, 1), now, rapid.Int64Range(1, 50).Draw(t, "timeout"))
				copies[id]++
				total++
			case op < 8:
				finished, missing := f.finish([]protocol.ID{idOf(id)}, nil)
				if want := min(copies[id], 1); finished != want || len(missing) != 1-want {
					t.Fatalf("finish of %d copies: %d, missing %d", copies[id], finished, len(missing))
				}
				copies[id] -= finished
				total -= finished
			case op < 9:
				if _, ok := f.requeue(idOf(id)); ok != (copies[id] > 0) {
					t.Fatalf("requeue of %d copies: %t", copies[id], ok)
				} else if ok {
					copies[id]--
					total--
				}
			case op < 10:
				if ok := f.touch(idOf(id), now, 50, 100); ok != (copies[id] > 0) {
					t.Fatalf("touch of %d copies: %t", copies[id], ok)
				}
			default:
				expired, _ := f.expire(nil, now)
				for i := range expired {
					for id := range copies {
						if idOf(id) == expired[i].id() {
							copies[id]--
						}
					}
				}
				total -= len(expired)
			}
			if err := f.verify(); err != nil {
				t.Fatal(err)
			}
			if f.count.Load() != int64(total) || copies[id] < 0 {
				t.Fatalf("count %d, want %d (%d of this id)", f.count.Load(), total, copies[id])
			}
		}
		if expired, due := f.expire(nil, never-1); len(expired) != total || due != never || f.count.Load() != 0 {
			t.Fatalf("at the end %d expired of %d, %d left", len(expired), total, f.count.Load())
		}
	})
}

// Ids that share their home in the table are all found, whichever of them goes first: removal
// moves up those that had to go past it, also around the end of the table.
func TestFlightRemovalAmongCollisions(t *testing.T) {
	const mask = leastTable - 1
	for start := range leastTable {
		var same []int
		for n := 1; len(same) < 5; n++ {
			if h := home(idOf(n), mask); h == start || h == (start+1)&mask {
				same = append(same, n)
			}
		}
		for first := range same {
			f := newFlight()
			f.setReady(10)
			for _, n := range same {
				f.deliver(messages(n, 1), 0, 10)
			}
			if len(f.table) != leastTable {
				t.Fatalf("the table has %d places, the test means %d", len(f.table), leastTable)
			}
			for i := range same {
				n := same[(first+i)%len(same)]
				if finished, _ := f.finish([]protocol.ID{idOf(n)}, nil); finished != 1 {
					t.Fatalf("home %d: message %d of %v is not found", start, n, same)
				}
				if err := f.verify(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// The number of attempts stays at the most that the wire can say.
func TestFlightAttemptsSaturate(t *testing.T) {
	f := newFlight()
	f.setReady(1)
	m := messages(1, 1)
	m[0].attempts = maxAttempts - 1
	for range 3 {
		f.deliver(m, 0, 1)
		got, ok := f.requeue(idOf(1))
		if !ok || got.attempts != 65535 {
			t.Fatalf("attempts %d, want 65535", got.attempts)
		}
		m[0] = got
	}
}

// TOUCH never brings a deadline nearer, and stops at the limit from the delivery.
func TestFlightTouchLimit(t *testing.T) {
	f := newFlight()
	f.setReady(1)
	f.deliver(messages(1, 1), 1000, 50)
	for _, step := range []struct{ now, want int64 }{{1000, 1050}, {1040, 1090}, {1080, 1130}, {1120, 1150}, {1140, 1150}} {
		if !f.touch(idOf(1), step.now, 50, 150) {
			t.Fatalf("touch at %d failed", step.now)
		}
		if got, due := f.expire(nil, step.want-1); len(got) != 0 || due != step.want {
			t.Fatalf("touched at %d the deadline is %d, want %d", step.now, due, step.want)
		}
	}
}
