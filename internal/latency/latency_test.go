package latency

import (
	"log"
	"slices"
	"strings"
	"testing"
	"time"
)

func logger(out *strings.Builder) *log.Logger { return log.New(out, "", 0) }

// The first line comes with the first value after a full ring, then there is one a round; it is about
// the last values.
func TestLines(t *testing.T) {
	var out strings.Builder
	b := NewBoard([]string{"a:1"}, 100, logger(&out))
	for i := range 301 {
		before := out.Len()
		took := time.Duration(i) * time.Millisecond
		b.Record(0, took)
		if printed, want := out.Len() > before, i == 100 || i == 200 || i == 300; printed != want {
			t.Errorf("value %d printed: %v", i+1, printed)
		}
	}
	want := []string{
		"[aggregate]: finished 100 - 99th: 100.00ms - 95th: 97.00ms - avg: 50.50ms",
		"[aggregate]: finished 100 - 99th: 200.00ms - 95th: 197.00ms - avg: 150.50ms",
		"[aggregate]: finished 100 - 99th: 300.00ms - 95th: 297.00ms - avg: 250.50ms",
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("lines %q\nwant  %q", got, want)
	}
}

// Several addresses have a timer each besides the common one; too few values are warned of, once a timer.
func TestAddresses(t *testing.T) {
	var out strings.Builder
	b := NewBoard([]string{"a:1", "b:2"}, 1, logger(&out))
	const warning = "Warning: use more than 100 status values for accurate percentiles (configured with 1)\n"
	if out.String() != strings.Repeat(warning, 3) {
		t.Errorf("warnings %q", out.String())
	}
	out.Reset()
	b.Record(0, time.Millisecond)
	b.Record(1, 2*time.Millisecond)
	b.Record(1, 1234567*time.Nanosecond)
	b.RecordOne(0, 4*time.Millisecond)
	b.RecordAll(5 * time.Millisecond)
	const line = " finished 1 - 99th: Xms - 95th: Xms - avg: Xms\n"
	want := strings.ReplaceAll("[aggregate]:"+line, "X", "2.00") +
		strings.ReplaceAll("[aggregate]:"+line, "X", "1.23") + strings.ReplaceAll("[b:2]:"+line, "X", "1.23") +
		strings.ReplaceAll("[a:1]:"+line, "X", "4.00") + strings.ReplaceAll("[aggregate]:"+line, "X", "5.00")
	if out.String() != want {
		t.Errorf("lines %q\nwant  %q", out.String(), want)
	}
}

// Nothing is printed, and nothing kept, where there is to be no line.
func TestOff(t *testing.T) {
	var out strings.Builder
	for _, every := range []int{0, -5} {
		b := NewBoard([]string{"a:1", "b:2"}, every, logger(&out))
		for range 10 {
			b.Record(1, time.Second)
		}
		if out.Len() > 0 || len(b.all.ring) > 0 {
			t.Errorf("every %d: %q, %d values", every, out.String(), len(b.all.ring))
		}
	}
}
