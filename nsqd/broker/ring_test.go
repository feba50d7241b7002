package broker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The ring is a FIFO whatever sizes come and go.
func TestRingIsFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var model []Message
		next := uint32(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 600).Draw(t, "n"); rapid.IntRange(0, 20).Draw(t, "op") {
			case 0:
				r.reset()
				model = nil
			case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
				batch := make([]Message, n)
				for i := range batch {
					batch[i].off = next
					next++
				}
				r.push(batch)
				model = append(model, batch...)
			default:
				n = min(n, len(model)+1)
				got := r.pop([]Message{{off: 1 << 31}}, n)
				want := min(n, len(model))
				if got[0].off != 1<<31 || !slices.Equal(got[1:], model[:want]) {
					t.Fatalf("pop(%d) = %d messages, want %d in order", n, len(got)-1, want)
				}
				model = model[want:]
			}
			if r.len() != len(model) {
				t.Fatalf("len = %d, want %d", r.len(), len(model))
			}
		}
		if got := r.pop(nil, len(model)+1); !slices.Equal(got, model) {
			t.Fatalf("at the end %d messages, want %d", len(got), len(model))
		}
	})
}

// A ring that ran empty keeps one segment at most, and no message's memory alive.
func TestRingLetsGo(t *testing.T) {
	var r ring
	for range 10 {
		r.push(messages(1, 1000))
		r.pop(nil, 1000)
		if r.head != r.tail || len(r.head.items) > maxSegment {
			t.Fatal("an empty ring keeps more than one segment")
		}
		for _, m := range r.head.items {
			if m.chunk != nil {
				t.Fatal("an empty ring keeps a message's chunk")
			}
		}
	}
	r.reset()
	if r.head != nil || r.tail != nil {
		t.Fatal("reset keeps memory")
	}
}

// A ring begins small and takes no more memory than messages need, within a factor and a segment.
func TestRingGrowsWithContent(t *testing.T) {
	var r ring
	if r.head != nil {
		t.Fatal("an unused ring has memory")
	}
	for n := 1; n <= 5000; n++ {
		r.push([]Message{{}})
		room := 0
		for s := r.head; s != nil; s = s.next {
			room += len(s.items)
		}
		if room > 2*n+maxSegment && room > leastSegment {
			t.Fatalf("room for %d messages where %d are", room, n)
		}
	}
}
