package broker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is deferred comes back exactly when it is due, the earliest first, and the next due time is
// always that of the earliest left.
func TestDeferredAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d deferred
		due := make(map[int]int64) // message to due time
		next := 0
		now := int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 30).Draw(t, "op") {
			case 0:
				all := d.drain()
				for _, item := range all {
					if n := int(item.message.off); due[n] != item.due {
						t.Fatalf("drained %d with due time %d, want %d", n, item.due, due[n])
					}
				}
				if len(all) != len(due) {
					t.Fatalf("drained %d messages of %d", len(all), len(due))
				}
				clear(due)
			case 1, 2, 3, 4, 5, 6:
				now += rapid.Int64Range(0, 300).Draw(t, "time")
				expired, earliest := d.expire(nil, now)
				var times []int64
				for _, m := range expired {
					at, ok := due[int(m.off)]
					if !ok || at > now {
						t.Fatalf("message %d expired at %d, due at %d (known: %t)", m.off, now, at, ok)
					}
					times = append(times, at)
					delete(due, int(m.off))
				}
				if !slices.IsSorted(times) {
					t.Fatalf("expired in the order of due times %v", times)
				}
				least := never
				for n, at := range due {
					if at <= now {
						t.Fatalf("message %d is due at %d and did not expire at %d", n, at, now)
					}
					least = min(least, at)
				}
				if earliest != least {
					t.Fatalf("next due at %d, want %d", earliest, least)
				}
			default:
				at := now + rapid.Int64Range(-10, 1000).Draw(t, "delay")
				d.put(Message{off: uint32(next)}, at)
				due[next] = at
				next++
			}
			if d.len() != len(due) {
				t.Fatalf("len = %d, want %d", d.len(), len(due))
			}
		}
	})
}
