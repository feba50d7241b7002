package broker

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The scan visits exactly the channels that are due, the earliest first and no more than asked for,
// and each at the earliest of the times that were registered.
func TestScannerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScanner()
		var entries []*scanEntry
		due := make(map[*Channel]int64)
		for range 20 {
			e := &scanEntry{index: -1, channel: new(Channel)}
			e.registered.Store(never)
			entries = append(entries, e)
		}
		now := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			e := entries[rapid.IntRange(0, len(entries)-1).Draw(t, "entry")]
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0:
				s.forget(e)
				delete(due, e.channel)
			case 1, 2, 3:
				now += rapid.Int64Range(0, 50).Draw(t, "time")
				limit := rapid.IntRange(1, 8).Draw(t, "limit")
				var want []int64
				for _, at := range due {
					if at <= now {
						want = append(want, at)
					}
				}
				slices.Sort(want)
				want = want[:min(limit, len(want))]
				visited, next := s.collect(now, limit)
				var got []int64
				for _, c := range visited {
					got = append(got, due[c])
					delete(due, c)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("visited those due at %d, want %d", got, want)
				}
				least := never
				for _, at := range due {
					least = min(least, at)
				}
				if next != least {
					t.Fatalf("the next is due at %d, want %d", next, least)
				}
			default:
				at := now + rapid.Int64Range(-5, 300).Draw(t, "due")
				first := never
				for _, other := range due {
					first = min(first, other)
				}
				select {
				case <-s.poke:
				default:
				}
				s.schedule(e, at)
				if old, ok := due[e.channel]; !ok || at < old {
					due[e.channel] = at
				}
				if at < first && len(s.poke) == 0 {
					t.Fatalf("the scan sleeps until %d and is not told of %d", first, at)
				}
			}
		}
	})
}

// Of many times that are registered at once the earliest stays.
func TestScannerKeepsTheEarliest(t *testing.T) {
	for range 300 {
		s := newScanner()
		e := &scanEntry{index: -1, channel: new(Channel)}
		e.registered.Store(never)
		start := make(chan struct{})
		var all sync.WaitGroup
		least := never
		for range 4 {
			due := rand.Int64N(1000)
			least = min(least, due)
			all.Go(func() {
				<-start
				s.schedule(e, due)
			})
		}
		close(start)
		all.Wait()
		if got := e.registered.Load(); got != least {
			t.Fatalf("registered for %d, want %d", got, least)
		}
	}
}
