package destination

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that a test sets.
type clock struct{ time.Time }

func (c *clock) now() time.Time       { return c.Time }
func (c *clock) pass(d time.Duration) { c.Time = c.Add(d) }
func newClock() *clock                { return &clock{time.Unix(1_800_000_000, 0)} }
func never() float64                  { return 0.999999 } // does not explore, and picks the last host
func addresses(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

// use gives out n turns and ends each as alive says, and returns the places in order.
func use(p *Pool, n int, alive func(i int) bool) string {
	var places []string
	for range n {
		turn := p.Next()
		if turn.Address != fmt.Sprint(turn.Index) {
			panic("address and place do not belong together")
		}
		turn.Done(alive(turn.Index))
		places = append(places, turn.Address)
	}
	return strings.Join(places, "")
}

func all(int) bool { return true }

// Round-robin begins with the second address and does not care what becomes of messages.
func TestRoundRobin(t *testing.T) {
	p := New(RoundRobin, addresses(3))
	if got := use(p, 7, func(i int) bool { return i != 2 }); got != "1201201" {
		t.Errorf("turns %s", got)
	}
}

// Hostpool begins with the first address and leaves a dead one alone: 30 s, then twice as long each
// time up to 15 minutes, until it is well again.
func TestHostPool(t *testing.T) {
	c := newClock()
	p := newPool(HostPool, addresses(3), c.now, never)
	if got := use(p, 4, all); got != "0120" {
		t.Errorf("turns %s of healthy hosts", got)
	}
	not1 := func(i int) bool { return i != 1 }
	if got := use(p, 5, not1); got != "12020" {
		t.Errorf("turns %s with a host that dies", got)
	}
	for _, wait := range []time.Duration{30, 60, 120, 240, 480, 900, 900} {
		c.pass(wait*time.Second - 1)
		if got := use(p, 4, not1); strings.Contains(got, "1") {
			t.Errorf("turns %s before %d s", got, wait)
		}
		c.pass(1)
		if got := use(p, 4, not1); strings.Count(got, "1") != 1 {
			t.Errorf("turns %s after %d s, want one for the dead host", got, wait)
		}
	}
	c.pass(900 * time.Second)
	use(p, 3, all)
	if got := use(p, 3, not1); strings.Count(got, "1") != 1 {
		t.Errorf("turns %s: host 1 did not come back", got)
	}
	c.pass(30 * time.Second)
	if got := use(p, 3, not1); strings.Count(got, "1") != 1 {
		t.Errorf("turns %s: the wait did not begin with 30 s again", got)
	}
}

// If all are dead, all are tried again, the first one first; a single address is always used.
func TestAllDead(t *testing.T) {
	for n, want := range map[int]string{1: "000000", 2: "010101", 3: "012012"} {
		p := newPool(HostPool, addresses(n), newClock().now, never)
		if got := use(p, 6, func(int) bool { return false }); got != want {
			t.Errorf("%d hosts: turns %s, want %s", n, got, want)
		}
	}
}

// Epsilon-greedy gives turns in proportion to speed, down to far less than a millisecond, and none to
// the dead.
func TestEpsilonGreedy(t *testing.T) {
	c := newClock()
	random := rand.New(rand.NewPCG(1, 2))
	p := newPool(EpsilonGreedy, addresses(3), c.now, random.Float64)
	took := []time.Duration{100 * time.Microsecond, 400 * time.Microsecond, time.Millisecond}
	count := make([]int, 3)
	for range 20_000 {
		turn := p.Next()
		c.pass(took[turn.Index])
		turn.Done(true)
		count[turn.Index]++
	}
	// Weights are 10 : 2.5 : 1, the exploring percent aside.
	for i, want := range []float64{0.74, 0.185, 0.075} {
		if got := float64(count[i]) / 20_000; got < want-0.03 || got > want+0.03 {
			t.Errorf("host %d has %.3f of the turns, want %.3f", i, got, want)
		}
	}
	for { // the fastest one dies
		if turn := p.Next(); turn.Index == 0 {
			turn.Done(false)
			break
		}
	}
	if got := use(p, 500, all); strings.Contains(got, "0") {
		t.Error("a dead host gets turns")
	}
}

// Each host is measured before any is preferred.
func TestGreedyMeasuresAll(t *testing.T) {
	p := newPool(EpsilonGreedy, addresses(4), newClock().now, never)
	if got := use(p, 4, all); got != "0123" {
		t.Errorf("turns %s", got)
	}
}

// What was measured is forgotten after five minutes; before, it weighs less and less.
func TestSpeedForgets(t *testing.T) {
	c := newClock()
	var s speed
	if _, known := s.mean(c.now()); known {
		t.Error("speed is known from the start")
	}
	s.add(c.now(), time.Second)
	c.pass(150 * time.Second)
	s.add(c.now(), 3*time.Second)
	middle, _ := s.mean(c.now())
	c.pass(100 * time.Second)
	late, _ := s.mean(c.now())
	if middle <= time.Second || late <= middle || late >= 3*time.Second {
		t.Errorf("mean %v, then %v", middle, late)
	}
	c.pass(300 * time.Second)
	if mean, known := s.mean(c.now()); known {
		t.Errorf("mean %v after five idle minutes", mean)
	}
}

// Whatever happens, a turn is given, and not to a host in its first 30 s of death while another one lives.
func TestPoolAlwaysChooses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		n := rapid.IntRange(1, 5).Draw(t, "hosts")
		mode := rapid.SampledFrom([]Mode{HostPool, EpsilonGreedy}).Draw(t, "mode")
		chance := rapid.Float64Range(0, 0.999)
		p := newPool(mode, addresses(n), c.now, func() float64 { return chance.Draw(t, "random") })
		died := make([]time.Time, n) // zero: alive
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			c.pass(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			living := 0
			for _, at := range died {
				if at.IsZero() {
					living++
				}
			}
			turn := p.Next()
			if at := died[turn.Index]; living > 0 && !at.IsZero() && c.Sub(at) < firstRetry {
				t.Fatalf("host %d has a turn %v after its death, %d live", turn.Index, c.Sub(at), living)
			}
			if living == 0 {
				for i, h := range p.hosts { // all may have been given another chance
					if !h.dead {
						died[i] = time.Time{}
					}
				}
			}
			if rapid.Bool().Draw(t, "alive") {
				died[turn.Index] = time.Time{}
				turn.Done(true)
				continue
			}
			if died[turn.Index].IsZero() {
				died[turn.Index] = c.now()
			}
			turn.Done(false)
		}
	})
}

// Only what is a mode is one.
func TestParseMode(t *testing.T) {
	for _, text := range []string{"hostpool", "round-robin", "epsilon-greedy"} {
		if mode, err := ParseMode(text); err != nil || string(mode) != text {
			t.Errorf("%s: mode %q, error %v", text, mode, err)
		}
	}
	if mode, err := ParseMode("roundrobin"); err == nil {
		t.Errorf("mode %q of a typo", mode)
	}
}
