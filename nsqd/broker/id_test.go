package broker

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The layout is that of the specification: its example, decoded and made again.
func TestIDLayout(t *testing.T) {
	const example = 0x18aeebb2a0c01000
	now := int64(example>>22+1288834974288) << 20
	if seconds := float64(now) / 1e9; seconds < 1796095935.81 || seconds > 1796095935.83 {
		t.Fatalf("the example is at %f s", seconds)
	}
	s := idSource{node: 1}
	run := s.take(now, 2)
	if first, second := run.next(), run.next(); first != example || second != example+1 {
		t.Fatalf("ids %x, %x, want %x and the one after", first, second, example)
	}
}

// Whatever the clock does, ids only grow, no two are the same, and none is behind the clock.
func TestIDsGrowWhateverTheClockDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := idSource{node: uint64(rapid.IntRange(0, 1023).Draw(t, "node"))}
		clock := int64(1_796_095_935_000_000_000)
		last := uint64(0)
		for range rapid.IntRange(1, 50).Draw(t, "takes") {
			clock += rapid.Int64Range(-5_000_000, 10_000_000).Draw(t, "step")
			if rapid.IntRange(0, 20).Draw(t, "jump") == 0 {
				clock += rapid.Int64Range(-3600e9, 3600e9).Draw(t, "by")
			}
			n := rapid.IntRange(1, 10_000).Draw(t, "n")
			run := s.take(clock, n)
			for range n {
				id := run.next()
				if id <= last {
					t.Fatalf("id %x after %x", id, last)
				}
				if id>>12&1023 != s.node {
					t.Fatalf("id %x is not of node %d", id, s.node)
				}
				if int64(id>>22)+1288834974288 < clock>>20 {
					t.Fatalf("id %x is behind the clock", id)
				}
				last = id
			}
		}
	})
}

// A clock before the epoch of ids, or before 1970, makes no negative time.
func TestIDBeforeEpoch(t *testing.T) {
	for _, now := range []int64{0, -1, -1 << 63, 1 << 20} {
		var s idSource
		run := s.take(now, 1)
		if id := run.next(); id != 0 {
			t.Errorf("at %d the id is %x, want 0", now, id)
		}
	}
}

// Runs that are taken at the same time by many share no id.
func TestIDRunsDoNotOverlap(t *testing.T) {
	var s idSource
	var all []uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var mine []uint64
			for i := range 200 {
				run := s.take(int64(1_796_095_935_000_000_000), 1+(g+i)%40)
				for range 1 + (g+i)%40 {
					mine = append(mine, run.next())
				}
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	total := len(all)
	slices.Sort(all)
	if unique := len(slices.Compact(all)); unique != total {
		t.Fatalf("%d ids of %d are repeated", total-unique, total)
	}
}
