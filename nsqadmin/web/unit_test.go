package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/nsqadmin/monitor"
)

// Numbers are written for people: exact where that is short, never negative zero or "0ns" more.
func TestFormats(t *testing.T) {
	tests := []struct{ got, want string }{
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1,000"}, {count(-1234567), "-1,234,567"},
		{count(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"}, {count(int64(math.MinInt64)), "-9,223,372,036,854,775,808"},
		{rate(0), "0"}, {rate(0.04), "<0.1"}, {rate(2.5), "2.5"}, {rate(3), "3"}, {rate(99.97), "100"}, {rate(151.25), "151"}, {rate(12345.6), "12,346"},
		{rate(math.NaN()), none}, {rate(-1), none}, {rate(math.Inf(1)), none}, {rate(1e300), "1,152,921,504,606,846,976"},
		{span(0), "0s"}, {span(-time.Second), "0s"}, {span(5*time.Minute + 19*time.Second), "5m19s"}, {span(time.Minute), "1m0s"},
		{span(31156 * time.Millisecond), "31.16s"}, {span(245372 * time.Microsecond), "245.37ms"}, {span(26*time.Hour + time.Minute), "1d2h"}, {span(90 * time.Minute), "1h30m"},
		{percentile(0.99), "99%"}, {percentile(0.999), "99.9%"}, {percentile(1), "100%"},
		{many(1, "message", "messages"), "1 message"}, {many(1200, "message", "messages"), "1,200 messages"},
		{clip("short"), "short"}, {clip(strings.Repeat("é", 200)), strings.Repeat("é", 150) + "…"},
		{rangeName(5 * time.Minute), "5m"}, {rangeName(time.Hour), "1h"}, {rangeName(90 * time.Second), "1m30s"},
		{short(0), "0"}, {short(1500), "1.5k"}, {short(2e7), "20M"},
		{webAddress("https://id/x"), "https://id/x"}, {webAddress("javascript:alert(1)"), ""}, {webAddress("//x"), ""}, {webAddress(":"), ""},
	}
	for i, test := range tests {
		if test.got != test.want {
			t.Errorf("%d: got %q, want %q", i, test.got, test.want)
		}
	}
}

// A name is one segment of an address, whatever is in it, and the base path stands before all.
func TestLinks(t *testing.T) {
	for base, prefix := range map[string]string{"/": "", "/foo/bar": "/foo/bar"} {
		l := newLinks(base)
		for got, want := range map[string]string{
			l.To("/topics"): "/topics", l.Static("a.css"): "/static/a.css", l.topic("a#ephemeral"): "/topics/a%23ephemeral",
			l.channel("a/b", "?c"): "/topics/a%2Fb/%3Fc", l.node("[::1]:4151"): "/nodes/%5B::1%5D:4151",
		} {
			if got != prefix+want {
				t.Errorf("got %q, want %q", got, prefix+want)
			}
		}
	}
	if root, sub := newLinks("/").To("/"), newLinks("/b").To("/"); root != "/" || sub != "/b" {
		t.Errorf("home is %q and %q", root, sub)
	}
}

// numbers is a table of the numbers below n, to be shown as a view asks.
func numbers(n int, query string) table {
	values, err := url.ParseQuery(query)
	if err != nil {
		panic(err)
	}
	var rows []int
	for i := range n {
		rows = append(rows, (i*7+3)%n)
	}
	same := func(i int) int64 { return int64(i % 2) }
	return build(view{"/x", values}, spec[int]{
		id: "t", title: "Numbers", empty: "None.", order: "name",
		key:     func(i int) string { return fmt.Sprintf("%05d", i) },
		matches: func(i int, text string) bool { return strings.Contains(fmt.Sprintf("n%05d", i), text) },
		columns: []column[int]{
			{key: "name", title: "Name", compare: by(func(i int) string { return fmt.Sprintf("%05d", i) }), cell: func(i int) cell { return cell{Text: fmt.Sprint(i)} }},
			number("odd", "Odd", same),
		},
		total: func() []cell { return []cell{{Text: "Total"}, {Text: "x"}} },
	}, rows)
}

func shown(t table) []string {
	var out []string
	for _, r := range t.Rows {
		out = append(out, r.Cells[0].Text)
	}
	return out
}

// A table is sorted, searched and paged by its own parameters, whatever stands in them.
func TestTable(t *testing.T) {
	tests := []struct {
		query string
		want  []string
	}{
		{"", []string{"0", "1", "2", "3", "4"}},
		{"t-sort=name&t-dir=desc", []string{"4", "3", "2", "1", "0"}},
		{"t-sort=odd", []string{"1", "3", "0", "2", "4"}}, // numbers from the largest, equal ones by name
		{"t-sort=odd&t-dir=asc", []string{"0", "2", "4", "1", "3"}},
		{"t-sort=none&t-dir=x", []string{"0", "1", "2", "3", "4"}},
		{"sort=name&dir=desc&q=3&page=2", []string{"0", "1", "2", "3", "4"}}, // of another table
		{"t-q=N00003", []string{"3"}},
		{"t-q=x", nil},
		{"t-page=-9", []string{"0", "1", "2", "3", "4"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, shown(numbers(5, test.query))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.query, diff)
		}
	}
}

// Each row is on one page, in order; a page beyond the last is the last.
func TestPaging(t *testing.T) {
	const rows = 2*pageRows + 10
	var all []string
	query := ""
	for range 3 {
		page := numbers(rows, query)
		all = append(all, shown(page)...)
		_, query, _ = strings.Cut(page.Pager.Next, "?")
	}
	if len(all) != rows || !slices.IsSortedFunc(all, func(a, b string) int { return cmpLength(a, b) }) {
		t.Errorf("pages show %d rows: %q", len(all), all)
	}
	for _, beyond := range []string{"t-page=4", "t-page=99999", "t-page=99999999999999999999"} {
		page := numbers(rows, beyond)
		if beyond == "t-page=99999999999999999999" { // no number: the first
			if page.Pager.Page != "1" {
				t.Errorf("%s: page %s", beyond, page.Pager.Page)
			}
			continue
		}
		if page.Pager.Page != "3" || page.Pager.Next != "" || len(page.Rows) != 10 {
			t.Errorf("%s: page %s, %d rows, next %q", beyond, page.Pager.Page, len(page.Rows), page.Pager.Next)
		}
	}
	if numbers(pageRows, "").Pager != nil {
		t.Error("one page has a pager")
	}
}

func cmpLength(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Sorting works on a copy: the rows belong to a snapshot that others read.
func TestSortLeavesRows(t *testing.T) {
	rows := []*monitor.Topic{topicOf("b", 0), topicOf("a", 0)}
	s := &site{}
	build(view{"/topics", nil}, s.topicTable(""), rows)
	if rows[0].TopicName != "b" {
		t.Error("the snapshot was sorted")
	}
}

// Links of a table keep what the other tables of the page show; a new order begins at the first page.
func TestTableLinks(t *testing.T) {
	page := numbers(300, "t-page=2&other-sort=x&range=5m&fragment=1")
	if got, want := page.Headers[0].Href, "/x?other-sort=x&range=5m&t-dir=desc&t-sort=name"; got != want {
		t.Errorf("sort: %q, want %q", got, want)
	}
	if got, want := page.Pager.Next, "/x?other-sort=x&range=5m&t-page=3"; got != want {
		t.Errorf("next: %q, want %q", got, want)
	}
	if diff := cmp.Diff([]field{{"other-sort", "x"}, {"range", "5m"}}, page.Search.Hidden); diff != "" {
		t.Errorf("search keeps (-want +got):\n%s", diff)
	}
}

// A chart has round marks up to what it shows, a line with gaps where nothing was measured, and says the
// same in words.
func TestChart(t *testing.T) {
	nan := math.NaN()
	times := make([]time.Time, 5)
	for i := range times {
		times[i] = time.Date(2026, 1, 2, 3, 4+i, 0, 0, time.UTC)
	}
	c := draw(0, series{title: "Depth", values: []float64{0, 100, nan, 50, nan}}, times)
	if want := "M48.0 106.0L124.0 8.0M276.0 57.0h1"; c.Line != want {
		t.Errorf("line %q, want %q", c.Line, want)
	}
	if want := "Depth: now 50, lowest 0, highest 100"; c.Text != want || c.Last != "50" {
		t.Errorf("text %q, want %q; last %q", c.Text, want, c.Last)
	}
	var marks []string
	for _, m := range append(c.YTicks, c.XTicks...) {
		marks = append(marks, m.Text)
	}
	if diff := cmp.Diff([]string{"0", "50", "100", "03:04", "03:05", "03:06", "03:08"}, marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if empty := draw(0, series{title: "Depth", values: []float64{nan, nan}}, times[:2]); empty.Line != "" || empty.Text != "Depth: nothing measured yet" {
		t.Errorf("empty: %+v", empty)
	}
}

// Whatever is measured, an axis has few marks, and its top is not below the highest value.
func TestScale(t *testing.T) {
	for _, highest := range []float64{0, 0.3, 1, 1.5, 7, 10, 99, 101, 12345, 1e9, math.MaxInt64, 1e300} {
		top, step := scale([]float64{1, highest, math.NaN(), math.Inf(1)})
		if marks := top / step; top < highest || marks < 1 || marks > 4.001 || step <= 0 {
			t.Errorf("%g: top %g, step %g", highest, top, step)
		}
	}
}

// A history has at most so many values, over the time that was asked for, in slots that do not move; a
// gap in the samples is a gap in it.
func TestHistory(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := newFake()
	f.config.History = fakeHistory{now}
	s := &site{Config: f.config}
	for query, want := range map[string]struct {
		step string
		rows int
	}{"": {"15s", 60}, "range=5m": {"10s", 30}, "range=1h": {"1m0s", 60}, "range=9y": {"15s", 60}, "range=24h": {"15s", 60}} {
		values, _ := url.ParseQuery(query)
		h := s.history(request{view: view{"/x", values}}, monitor.Key{})
		if h.Step != want.step || len(h.Rows) != want.rows || len(h.Charts) != len(measures) {
			t.Errorf("%q: step %s, %d rows, %d charts", query, h.Step, len(h.Rows), len(h.Charts))
		}
		gaps := 0
		for _, r := range h.Rows {
			if r.Cells[1].Text == none {
				gaps++
			}
		}
		if gap := query != "range=5m"; gap != (gaps > 0) || gaps > 12 {
			t.Errorf("%q: %d gaps", query, gaps)
		}
	}
	// Samples that come a little late or early leave no gap.
	f.config.History = uneven{fakeHistory{now}}
	s = &site{Config: f.config}
	for _, r := range s.history(request{view: view{"/x", url.Values{"range": {"5m"}}}}, monitor.Key{}).Rows {
		if r.Cells[1].Text == none {
			t.Errorf("a gap at %s", r.Cells[0].Text)
		}
	}
	if s.history(request{view: view{"/x", nil}}, monitor.Key{Topic: "new"}) != nil {
		t.Error("a history of nothing")
	}
}

// A slot has the mean of its rates and its latest number of things, of its own samples and no others.
func TestSlots(t *testing.T) {
	start, nan := time.Unix(100, 0), math.NaN()
	var samples []monitor.Sample
	for _, s := range [][2]int64{{99, 1000}, {100, 2}, {101, 4}, {102, 9}, {110, 8}, {139, 16}, {140, 32}} {
		samples = append(samples, monitor.Sample{At: time.Unix(s[0], 0), Depth: s[1], Rates: monitor.Rates{Known: s[0] != 110, Publish: float64(s[1])}})
	}
	same := func(a, b float64) bool { return a == b || a != a && b != b }
	for i, want := range [][]float64{{9, 8, nan, 16}, {5, nan, nan, 16}} {
		if got := measures[i].values(samples, start, 10*time.Second, 4); !slices.EqualFunc(got, want, same) {
			t.Errorf("%s: got %v, want %v", measures[i].title, got, want)
		}
	}
}

// Everything that is unwell is on the overview or counted there.
func TestProblemsAreBounded(t *testing.T) {
	snapshot := &monitor.Snapshot{Seq: 1}
	for i := range 50 {
		snapshot.Topics = append(snapshot.Topics, topicOf(fmt.Sprint("t", i), 1))
	}
	p := (&site{}).problems(snapshot)
	if len(p.List) != maxProblems || p.Title != "50 things are unwell" || p.Rest != "And 20 more." {
		t.Errorf("%d listed under %q, then %q", len(p.List), p.Title, p.Rest)
	}
}

// What keeps messages from being finished is told from what is merely busy.
func TestStuck(t *testing.T) {
	channel := func(depth int64, clients int, change func(*monitor.Channel)) *monitor.Channel {
		c := sum(part("n1", "t", "c", depth, clients))
		change(c)
		return c
	}
	tests := []struct {
		name    string
		channel *monitor.Channel
		kind    string
		text    string
	}{
		{"empty", channel(0, 0, func(*monitor.Channel) {}), "", ""},
		{"busy", channel(9, 2, func(*monitor.Channel) {}), "", ""},
		{"alone", channel(9, 0, func(*monitor.Channel) {}), "bad", "no consumer while 9 messages wait"},
		{"paused", channel(9, 0, func(c *monitor.Channel) { c.Nodes[0].Paused = true }), "warn", "paused"},
		{"not ready", channel(9, 1, func(*monitor.Channel) {}), "bad", "RDY 0"},
		{"timing out", channel(0, 2, func(c *monitor.Channel) { c.Totals.Timeout = 2.5 }), "bad", "2.5 a second"},
		{"requeued", channel(0, 2, func(c *monitor.Channel) { c.Totals.Requeue = 100 }), "warn", "requeued"},
		{"some requeued", channel(0, 2, func(c *monitor.Channel) { c.Totals.Requeue = 10 }), "", ""},
	}
	for _, test := range tests {
		if kind, text := stuck(test.channel); kind != test.kind || !strings.Contains(text, test.text) {
			t.Errorf("%s: %q %q", test.name, kind, text)
		}
	}
}

// uneven is a history whose samples are late and early in turn.
type uneven struct{ fakeHistory }

func (u uneven) Samples(key monitor.Key) []monitor.Sample {
	samples := u.fakeHistory.Samples(key)
	for i := range samples {
		samples[i].At = samples[i].At.Add(time.Duration(i%2*2-1) * 300 * time.Millisecond)
	}
	return samples
}
