package metrics_test

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/metrics"
	"nsq/internal/metrics/histogram"
	"nsq/internal/metrics/metricstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scrape(t *testing.T, handler http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer
}

// thing is something of which there are several.
type thing struct {
	name  string
	count float64
	age   float64
}

var things = metrics.Group[thing]{
	{Family: metrics.Counter("x_things_total", "Things.", "thing"), Value: func(th thing) float64 { return th.count }},
	{Family: metrics.Gauge("x_age_seconds", "Age.", "thing"), Greatest: true, Value: func(th thing) float64 { return th.age }},
}

// Things are shown one by one or as one: sums or the greatest, of those that have a value.
func TestGroup(t *testing.T) {
	none := math.NaN()
	for name, test := range map[string]struct {
		each, rest []thing
		want       metricstest.Values
	}{
		"nothing": {nil, nil, metricstest.Values{}},
		"each": {[]thing{{"a", 1, 2}, {"b", 3, none}}, nil, metricstest.Values{
			`x_things_total{thing="a"}`: 1, `x_age_seconds{thing="a"}`: 2, `x_things_total{thing="b"}`: 3}},
		"sum": {nil, []thing{{"a", 1, none}, {"b", 3, 7}, {"c", 5, 6}}, metricstest.Values{
			`x_things_total{thing="_other"}`: 9, `x_age_seconds{thing="_other"}`: 7}},
		"sum of nothing": {nil, []thing{{"a", 1, none}, {"b", 3, none}}, metricstest.Values{`x_things_total{thing="_other"}`: 4}},
		"both":           {[]thing{{"a", 1, 2}}, []thing{{"b", 3, 1}}, metricstest.Values{`x_things_total{thing="a"}`: 1, `x_age_seconds{thing="a"}`: 2, `x_things_total{thing="_other"}`: 3, `x_age_seconds{thing="_other"}`: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := scrape(t, metrics.NewHandler("x", things.Families(), func(s *metrics.Scrape) {
				for _, th := range test.each {
					things.Add(s, th, th.name)
				}
				things.AddSum(s, test.rest, metrics.Other)
			}, log.Discard()))
			got := metricstest.Parse(t, answer.Body.String())
			for key := range got {
				if !strings.HasPrefix(key, "x_things") && !strings.HasPrefix(key, "x_age") {
					delete(got, key)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

// The first ones are shown one by one, but never one whose name is taken.
func TestSplit(t *testing.T) {
	for _, test := range []struct {
		names string
		limit int
		each  string
		rest  string
	}{
		{"", 2, "", ""},
		{"a b", 2, "a b", ""},
		{"a b c", 2, "a b", "c"},
		{"a b", 0, "", "a b"},
		{"a b", -1, "", "a b"},
		{"_other a b", 2, "a b", "_other"},
		{"_other", 2, "", "_other"},
	} {
		each, rest := metrics.Split(strings.Fields(test.names), test.limit, func(name string) string { return name })
		if got := [2]string{strings.Join(each, " "), strings.Join(rest, " ")}; got != [2]string{test.each, test.rest} {
			t.Errorf("%q, limit %d: %q, want %q and %q", test.names, test.limit, got, test.each, test.rest)
		}
	}
}

// A histogram is shown with its buckets, its count and its sum.
func TestHistogram(t *testing.T) {
	family := metrics.Histogram("x_latency_seconds", "Latency.")
	d := histogram.New(time.Millisecond, time.Second)
	for _, took := range []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond, time.Hour} {
		d.Observe(took)
	}
	answer := scrape(t, metrics.NewHandler("x", []*metrics.Family{family}, func(s *metrics.Scrape) {
		s.AddHistogram(family, d.Snapshot())
	}, log.Discard()))
	metricstest.Parse(t, answer.Body.String()).Want(t, metricstest.Values{
		`x_latency_seconds_bucket{le="0.001"}`: 1, `x_latency_seconds_bucket{le="1"}`: 3, `x_latency_seconds_bucket{le="+Inf"}`: 4,
		"x_latency_seconds_count": 4, "x_latency_seconds_sum": 3601,
	})
}

// What cannot be shown costs only itself, and is one line of the log, however much there is of it.
func TestFailedMetrics(t *testing.T) {
	good, bad := metrics.Gauge("x_good", "Good."), metrics.Gauge("x_bad", "Bad.", "label")
	var logged bytes.Buffer
	answer := scrape(t, metrics.NewHandler("x", []*metrics.Family{good, bad}, func(s *metrics.Scrape) {
		s.Add(good, 1)
		for range 500 {
			s.Add(bad, 1) // without its label
			s.Add(bad, 1, "same")
		}
	}, log.New(&logged, "", log.Debug)))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d", answer.Code)
	}
	metricstest.Parse(t, answer.Body.String()).Want(t, metricstest.Values{"x_good": 1, `x_bad{label="same"}`: 1})
	if lines := strings.Count(logged.String(), "\n"); lines != 1 || logged.Len() > 2000 || !strings.Contains(logged.String(), "WARNING: metrics: ") {
		t.Errorf("logged %d lines, %d bytes: %.300s", lines, logged.Len(), logged.String())
	}
}

// A collect that panics costs its own scrape's values, nobody the daemon.
func TestPanic(t *testing.T) {
	var logged bytes.Buffer
	answer := scrape(t, metrics.NewHandler("x", nil, func(*metrics.Scrape) { panic("boom") }, log.New(&logged, "", log.Debug)))
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "go_goroutines") {
		t.Errorf("status %d, %.100s", answer.Code, answer.Body)
	}
	if !strings.Contains(logged.String(), "boom") {
		t.Errorf("logged %q", logged.String())
	}
}

// More scrapes at a time than may be are refused, and those that run are not disturbed.
func TestTooManyScrapes(t *testing.T) {
	const most = 4
	entered, leave := make(chan struct{}, most), make(chan struct{})
	handler := metrics.NewHandler("x", nil, func(*metrics.Scrape) {
		entered <- struct{}{}
		<-leave
	}, log.Discard())
	var codes [most]int
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = scrape(t, handler).Code })
	}
	for range codes {
		<-entered
	}
	if code := scrape(t, handler).Code; code != http.StatusServiceUnavailable {
		t.Errorf("one too many: status %d", code)
	}
	close(leave)
	all.Wait()
	if !slices.Equal(codes[:], []int{200, 200, 200, 200}) {
		t.Errorf("statuses %v", codes)
	}
}

// The names of a table must not contradict each other.
func TestContradiction(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	metrics.NewHandler("x", []*metrics.Family{metrics.Gauge("x_a", "One."), metrics.Gauge("x_a", "Two.")}, func(*metrics.Scrape) {}, log.Discard())
}

// A table in a document has a row for each family.
func TestDocument(t *testing.T) {
	got := metrics.Document([]*metrics.Family{metrics.Counter("x_a_total", "A.", "k", "l"), metrics.Histogram("x_b_seconds", "B.")})
	want := "| name | type | labels | meaning |\n|---|---|---|---|\n" +
		"| `x_a_total` | counter | `k`, `l` | A. |\n| `x_b_seconds` | histogram |  | B. |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
