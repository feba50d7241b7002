package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

const window = 10 * time.Second

func newWindow(t testing.TB, quantiles ...float64) *Window {
	t.Helper()
	return newPlan(t, quantiles...).NewWindow()
}

func newPlan(t testing.TB, quantiles ...float64) *Plan {
	t.Helper()
	p, err := NewPlan(quantiles, window)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPlanRefuses(t *testing.T) {
	for _, q := range []float64{0, -0.5, 1.0000001, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := NewPlan([]float64{0.5, q}, window); err == nil {
			t.Errorf("quantile %v is accepted", q)
		}
	}
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		if _, err := NewPlan([]float64{1}, d); err == nil {
			t.Errorf("window %v is accepted", d)
		}
	}
	for _, d := range []time.Duration{1, math.MaxInt64} { // the least and greatest do not overflow
		p, err := NewPlan([]float64{1}, d)
		if err != nil {
			t.Fatal(err)
		}
		w := p.NewWindow()
		w.Insert(5, []int64{7})
		if got := w.Result(5); got.Count != 1 {
			t.Errorf("window %v: %+v", d, got)
		}
	}
}

// The shapes of results without numbers, with the feature off and on.
func TestEmptyResults(t *testing.T) {
	off, err := NewPlan(nil, 0)
	if off != nil || err != nil {
		t.Fatalf("%v, %v", off, err)
	}
	none := off.NewWindow()
	none.Insert(0, []int64{1})
	on := newWindow(t, 1, 0.99)
	on.Insert(0, nil)
	zeros := Result{Percentiles: []Percentile{{1, 0}, {0.99, 0}}}
	for name, c := range map[string]struct{ got, want Result }{
		"off":             {none.Result(0), Result{}},
		"off, merged":     {Merge(0, none, nil), Result{}},
		"merge of none":   {Merge(0), Result{}},
		"on":              {on.Result(0), zeros},
		"on, merged":      {Merge(0, on, on, nil), zeros},
		"on, much later":  {on.Result(math.MaxInt64), zeros},
		"off among those": {Merge(0, none, on), zeros},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// Every number falls into the one bucket whose range has it, and buckets are narrow.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, math.MaxInt64).Draw(t, "number")
		page, slot := bucketOf(number)
		if page < 0 || page >= pages || slot < 0 || slot >= pageSize {
			t.Fatalf("page %d, slot %d", page, slot)
		}
		least, width := bucketRange(page, slot)
		if number < least || number-least >= width {
			t.Fatalf("%d is not in [%d, +%d)", number, least, width)
		}
		if width > 1 && width > least/128 {
			t.Fatalf("bucket [%d, +%d) is too wide", least, width)
		}
	})
	for number, want := range map[int64][2]int{
		0: {0, 0}, 127: {0, 127}, 128: {1, 0}, 255: {1, 127}, 256: {2, 0}, 257: {2, 0}, 258: {2, 1},
		math.MaxInt64: {pages - 1, pageSize - 1},
	} {
		if page, slot := bucketOf(number); [2]int{page, slot} != want {
			t.Errorf("%d is in page %d, slot %d, want %v", number, page, slot, want)
		}
	}
}

// numbers draws numbers of all magnitudes, with repetitions, and some that are negative.
func numbers(t *rapid.T, label string) []int64 {
	kinds := rapid.OneOf(
		rapid.Int64Range(-10, 300),
		rapid.Int64Range(1e6, 1.01e6),
		rapid.Int64Range(1, 1e12),
		rapid.Int64(),
		rapid.Just(int64(5421387)),
	)
	return rapid.SliceOfN(kinds, 0, 500).Draw(t, label)
}

// Against the sorted numbers: counts and ends are exact, all else is within a bucket.
func TestAgainstExactQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantiles := rapid.SliceOfN(rapid.Float64Range(1e-9, 1), 1, 8).Draw(t, "quantiles")
		plan, err := NewPlan(append(quantiles, 1), window)
		if err != nil {
			t.Fatal(err)
		}
		all := numbers(t, "numbers")
		w := plan.NewWindow()
		for part := range slices.Chunk(all, rapid.IntRange(1, 100).Draw(t, "batch")) {
			w.Insert(0, part)
		}
		got := w.Result(0)
		if got.Count != len(all) || len(got.Percentiles) != len(quantiles)+1 {
			t.Fatalf("%d numbers: %+v", len(all), got)
		}
		sorted := sortedFromZero(all)
		for i, p := range got.Percentiles {
			if p.Quantile != plan.quantiles[i] {
				t.Fatalf("place %d has quantile %v, want %v", i, p.Quantile, plan.quantiles[i])
			}
			want := exact(sorted, p.Quantile)
			allowed := want / 128
			if int(p.Quantile*float64(len(sorted))) >= len(sorted)-1 { // the greatest is known
				allowed = 0
			}
			if p.Value < want-allowed || p.Value-allowed > want {
				t.Fatalf("quantile %v is %d, want %d", p.Quantile, p.Value, want)
			}
		}
	})
}

func sortedFromZero(numbers []int64) []int64 {
	sorted := slices.Clone(numbers)
	for i := range sorted {
		sorted[i] = max(sorted[i], 0)
	}
	slices.Sort(sorted)
	return sorted
}

func exact(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Where numbers are spread smoothly, the rank of an answer is wrong by less than 1 %, be the spread
// wide or so narrow that few buckets have it all.
func TestRankError(t *testing.T) {
	const n = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() float64{
		"uniform":     random.Float64,
		"exponential": random.ExpFloat64,
		"log-normal":  func() float64 { return math.Exp(2 * random.NormFloat64()) },
		"narrow":      func() float64 { return 50 + 5*random.Float64() },
		"two kinds":   func() float64 { return random.ExpFloat64() * float64(1+99*random.IntN(2)) },
	} {
		w := newWindow(t, 1, 0.999, 0.99, 0.95, 0.75, 0.5, 0.1)
		all := make([]int64, n)
		for i := range all {
			all[i] = int64(draw() * 1e7)
		}
		w.Insert(0, all)
		slices.Sort(all)
		for _, p := range w.Result(0).Percentiles {
			above, _ := slices.BinarySearch(all, p.Value+1)
			if rank := float64(above) / n; math.Abs(rank-p.Quantile) > 0.01 {
				t.Errorf("%s: %v has rank %.4f", name, p.Quantile, rank)
			}
		}
	}
}

// Few numbers far apart are read as the classic daemon reads them: 20 of them, evenly spaced.
func TestRankOfFewNumbers(t *testing.T) {
	w := newWindow(t, 0.1, 0.5, 0.95, 0.99, 1)
	for i := range int64(20) {
		w.Insert(0, []int64{(20 - i) * 10})
	}
	want := Result{Count: 20, Percentiles: []Percentile{{0.1, 30}, {0.5, 110}, {0.95, 200}, {0.99, 200}, {1, 200}}}
	if diff := cmp.Diff(want, w.Result(0)); diff != "" {
		t.Error(diff)
	}
}

// A single number is answered to the nanosecond for every quantile.
func TestOneNumber(t *testing.T) {
	w := newWindow(t, 1, 0.99, 0.5)
	w.Insert(0, []int64{5421387})
	want := Result{Count: 1, Percentiles: []Percentile{{1, 5421387}, {0.99, 5421387}, {0.5, 5421387}}}
	if diff := cmp.Diff(want, w.Result(0)); diff != "" {
		t.Error(diff)
	}
}

// Numbers spread over windows and over halves give the very result of one window.
func TestMergeIsAsOneWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan, err := NewPlan([]float64{1, 0.999, 0.9, 0.5, 0.01}, window)
		if err != nil {
			t.Fatal(err)
		}
		whole := plan.NewWindow()
		windows := make([]*Window, rapid.IntRange(1, 5).Draw(t, "windows"))
		for i := range windows {
			windows[i] = plan.NewWindow()
		}
		for _, now := range []int64{0, int64(window) / 2} { // into one half, into the other
			for i, w := range windows {
				part := numbers(t, "part")
				w.Insert(now, part)
				whole.Insert(0, part)
				if i == 0 {
					w.Insert(now, nil)
				}
			}
		}
		if diff := cmp.Diff(whole.Result(0), Merge(int64(window)/2, windows...)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A number is seen for half a window at least and for a whole one at most.
func TestWindowTurns(t *testing.T) {
	const half = int64(window / 2)
	type at struct{ now, number int64 }
	for _, c := range []struct {
		name    string
		inserts []at
		read    int64
		count   int
		max     int64
	}{
		{"same half", []at{{0, 3}, {1, 1}}, half - 1, 2, 3},
		{"half before", []at{{0, 3}, {1, 1}}, half, 2, 3},
		{"end of the half before", []at{{0, 3}, {half, 1}}, 2*half - 1, 2, 3},
		{"gone with its half", []at{{0, 3}, {half, 1}}, 2 * half, 1, 1},
		{"idle for a window", []at{{0, 3}, {1, 1}}, 2 * half, 0, 0},
		{"idle for long", []at{{0, 3}}, 1000 * half, 0, 0},
		{"after an idle time", []at{{0, 3}, {1000 * half, 1}}, 1000 * half, 1, 1},
		{"reused halves are empty", []at{{0, 9}, {half, 8}, {2 * half, 7}, {3 * half, 1}}, 3 * half, 2, 7},
		{"clock set back", []at{{5 * half, 3}, {0, 1}}, half - 1, 2, 3},
		{"goes on from a clock set back", []at{{5 * half, 3}, {0, 1}}, 2 * half, 0, 0},
		{"before the clock's zero", []at{{-5 * half, 3}}, -4 * half, 1, 3},
	} {
		w := newWindow(t, 1)
		for _, i := range c.inserts {
			w.Insert(i.now, []int64{i.number})
		}
		want := Result{Count: c.count, Percentiles: []Percentile{{1, c.max}}}
		if diff := cmp.Diff(want, w.Result(c.read)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestIdleWindowGivesItsMemoryBack(t *testing.T) {
	w := newWindow(t, 1)
	w.Insert(0, []int64{1})
	w.Insert(int64(window)/2, []int64{1})
	if w.running == nil || w.before == nil {
		t.Fatal("numbers are held elsewhere")
	}
	w.Result(3 * int64(window))
	if w.running != nil || w.before != nil {
		t.Error("memory is held")
	}
}

// A bucket that is full stays full: it does not begin again at 0.
func TestFullBucket(t *testing.T) {
	w := newWindow(t, 0.5)
	w.Insert(0, []int64{5})
	w.running.pages[0][5] = math.MaxUint32
	w.running.n = math.MaxUint32
	w.Insert(0, []int64{5})
	want := Result{Count: math.MaxUint32, Percentiles: []Percentile{{0.5, 5}}}
	if diff := cmp.Diff(want, Merge(0, w)); diff != "" {
		t.Error(diff)
	}
	if got := Merge(0, w, w).Count; got != 2*math.MaxUint32 {
		t.Errorf("sum of two is %d", got)
	}
}

// Inserting and reading from many goroutines loses nothing.
func TestConcurrentUse(t *testing.T) {
	plan := newPlan(t, 1, 0.5)
	windows := []*Window{plan.NewWindow(), plan.NewWindow()}
	const goroutines, batches, batch = 8, 50, 20
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			numbers := make([]int64, batch)
			for i := range batches {
				for k := range numbers {
					numbers[k] = int64(g*batches*batch + i*batch + k)
				}
				windows[i%2].Insert(0, numbers)
				if got := Merge(0, windows...); got.Count < batch {
					t.Errorf("%d numbers after an insert of %d", got.Count, batch)
				}
			}
		})
	}
	done.Wait()
	const all = goroutines * batches * batch
	if got := Merge(0, windows...); got.Count != all || got.Percentiles[0].Value != all-1 {
		t.Errorf("%+v, want %d numbers up to %d", got, all, all-1)
	}
}

func TestInsertDoesNotAllocate(t *testing.T) {
	w := newWindow(t, 1)
	w.Insert(0, []int64{1e6})
	if n := testing.AllocsPerRun(100, func() { w.Insert(0, []int64{1e6, 1e6 + 1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkInsert(b *testing.B) {
	for name, size := range map[string]int{"one": 1, "batch of 128": 128} {
		b.Run(name, func(b *testing.B) {
			w := newWindow(b, 1, 0.99)
			random := rand.New(rand.NewPCG(1, 2))
			numbers := make([]int64, size)
			for i := range numbers {
				numbers[i] = int64(math.Exp(random.NormFloat64()) * 1e7)
			}
			b.ReportAllocs()
			for b.Loop() {
				w.Insert(0, numbers)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/number")
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	for name, size := range map[string]int{"1 window": 1, "100 windows": 100} {
		b.Run(name, func(b *testing.B) {
			plan := newPlan(b, 1, 0.99, 0.95, 0.5)
			random := rand.New(rand.NewPCG(1, 2))
			windows := make([]*Window, size)
			for i := range windows {
				windows[i] = plan.NewWindow()
				for range 10_000 {
					windows[i].Insert(0, []int64{int64(math.Exp(random.NormFloat64()) * 1e7)})
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				Merge(0, windows...)
			}
		})
	}
}
