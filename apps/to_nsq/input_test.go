package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"nsq/internal/pace"
	"nsq/internal/progress"
)

// split cuts the text, handed in parts of that size, as strings.
func split(t testing.TB, separator byte, text []byte, size int) (pieces []string) {
	t.Helper()
	s := splitter{separator: separator}
	for len(text) > 0 {
		n := min(size, len(text))
		more, err := s.add(bytes.Clone(text[:n]))
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range more {
			pieces = append(pieces, string(piece))
		}
		text = text[n:]
	}
	if piece := s.last(); piece != nil {
		pieces = append(pieces, string(piece))
	}
	return pieces
}

// What is between delimiters is a piece; nothing is cut off the last one that belongs to it.
func TestSplit(t *testing.T) {
	for _, test := range []struct {
		separator byte
		text      string
		want      []string
	}{
		{'\n', "", nil},
		{'\n', "\n\n", nil},
		{'\n', "abc", []string{"abc"}},
		{'\n', "x", []string{"x"}},
		{'\n', "a\nb\n", []string{"a", "b"}},
		{'\n', "a\n\n\nb", []string{"a", "b"}},
		{'\n', "a\r\n\x00\xff\n", []string{"a\r", "\x00\xff"}},
		{',', "one,two,three\n", []string{"one", "two", "three"}},
		{',', "one,two,three\n\n", []string{"one", "two", "three\n"}},
		{',', "one,two,\n", []string{"one", "two"}},
		{',', "a\n,b", []string{"a\n", "b"}},
		{0, "a\x00b\x00", []string{"a", "b"}},
	} {
		for size := 1; size <= len(test.text)+1; size++ {
			if got := split(t, test.separator, []byte(test.text), size); !slices.Equal(got, test.want) {
				t.Errorf("%q in parts of %d: %q, want %q", test.text, size, got, test.want)
			}
		}
	}
}

// However the input comes, the pieces are what is between the delimiters.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a,b\n,c"), byte(','), 2)
	f.Add([]byte("a\n\nb"), byte('\n'), 1)
	f.Fuzz(func(t *testing.T, text []byte, separator byte, size int) {
		if size < 1 {
			return
		}
		whole := text
		if separator != '\n' {
			whole = bytes.TrimSuffix(whole, []byte("\n"))
		}
		var want []string
		for _, piece := range bytes.Split(whole, []byte{separator}) {
			if len(piece) > 0 {
				want = append(want, string(piece))
			}
		}
		if got := split(t, separator, text, size); !slices.Equal(got, want) {
			t.Errorf("%q in parts of %d: %q, want %q", text, size, got, want)
		}
	})
}

// One byte, as it is or escaped, is a delimiter.
func TestParseDelimiter(t *testing.T) {
	for text, want := range map[string]byte{
		"\n": '\n', ",": ',', `\`: '\\', `"`: '"', `\n`: '\n', `\t`: '\t', `\0`: 0, `\x1f`: 0x1f, `\\`: '\\', "\xff": 0xff,
	} {
		if got, err := parseDelimiter(text); err != nil || got != want {
			t.Errorf("%q: %q, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "ab", "ä", `\u00e4`, `\x`, `\q`, "\r\n", `\n"+"`} {
		if got, err := parseDelimiter(text); err == nil || err.Error() != "--delimiter must be a single byte" {
			t.Errorf("%q: %q, error %v", text, got, err)
		}
	}
}

// notes is a sender that keeps what it gets.
type notes struct {
	batches [][]string
	when    []time.Time
	err     error
}

func (n *notes) send(_ context.Context, batch [][]byte) (int, error) {
	var texts []string
	for _, piece := range batch {
		texts = append(texts, string(piece))
	}
	n.batches, n.when = append(n.batches, texts), append(n.when, time.Now())
	return len(batch), n.err
}

func (n *notes) missing() error { return nil }

func newFeed(ctx context.Context, in io.Reader, out sender, batch int, rate int64) (*feed, *strings.Builder) {
	var logged strings.Builder
	return &feed{
		chunks: readChunks(ctx, in), split: splitter{separator: '\n'}, batch: batch, throttle: pace.NewThrottle(rate),
		sender: out, log: log.New(&logged, "", 0), counters: new(progress.Counters),
	}, &logged
}

// Batches are as large as allowed and as there is input; none waits for more.
func TestFeedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		out := new(notes)
		f, _ := newFeed(t.Context(), r, out, 3, 0)
		ended := make(chan error)
		go func() { ended <- f.run(t.Context()) }()
		io.WriteString(w, "1\n2\n3\n4\n5")
		synctest.Wait()
		if len(out.batches) != 2 {
			t.Errorf("batches %q before the input goes on", out.batches)
		}
		io.WriteString(w, "6\n7")
		w.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := [][]string{{"1", "2", "3"}, {"4"}, {"56"}, {"7"}}
		if !slices.EqualFunc(out.batches, want, slices.Equal) {
			t.Errorf("batches %q, want %q", out.batches, want)
		}
		if done, size := f.counters.Done.Load(), f.counters.Bytes.Load(); done != 6 || size != 7 {
			t.Errorf("%d messages, %d bytes", done, size)
		}
	})
}

// With a rate, messages are published at their time.
func TestFeedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(notes)
		f, _ := newFeed(t.Context(), strings.NewReader(strings.Repeat("x\n", 21)), out, 1, 10)
		start := time.Now()
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, at := range out.when {
			if want := time.Duration(i) * 100 * time.Millisecond; (at.Sub(start) - want).Abs() > time.Millisecond {
				t.Errorf("message %d after %v, want %v", i, at.Sub(start), want)
			}
		}
		if len(out.when) != 21 {
			t.Errorf("%d messages", len(out.when))
		}
	})
}

// When it is stopped while the input is silent it ends at once and without an error; the beginning of a
// message is not published.
func TestFeedStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		out := new(notes)
		f, logged := newFeed(ctx, r, out, 10, 0)
		ended := make(chan error)
		go func() { ended <- f.run(ctx) }()
		io.WriteString(w, "1\n2")
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.Close()
		if len(out.batches) != 1 || logged.String() != "stopped before the end of the input, 1 messages are published\n" {
			t.Errorf("batches %q, log %q", out.batches, logged.String())
		}
	})
}

// When it is stopped while the rate holds messages back, they are not published, and that is no error.
func TestFeedStoppedWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		out := new(notes)
		f, logged := newFeed(ctx, strings.NewReader("1\n2\n3\n4\n"), out, 10, 1)
		f.batch = 1
		if err := f.run(ctx); err != nil {
			t.Error(err)
		}
		if len(out.batches) != 2 || logged.String() != "stopped before the end of the input, 2 messages are published\n" {
			t.Errorf("batches %q, log %q", out.batches, logged.String())
		}
	})
}

// An input that breaks off is an error, after all that is complete was published.
func TestFeedInputFails(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("1\n2\nha"), iotest.ErrReader(errors.New("bad disk")))
	out := new(notes)
	f, _ := newFeed(t.Context(), broken, out, 10, 0)
	if err := f.run(t.Context()); err == nil || err.Error() != "failed to read the input - bad disk" {
		t.Errorf("error %v", err)
	}
	if len(out.batches) != 1 || !slices.Equal(out.batches[0], []string{"1", "2"}) {
		t.Errorf("batches %q", out.batches)
	}
}

// When nothing can be published any more it does not read on.
func TestFeedSenderFails(t *testing.T) {
	out := &notes{err: errors.New("no nsqd")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f, _ := newFeed(ctx, strings.NewReader("1\n2\n3\n"), out, 1, 0)
	if err := f.run(ctx); !errors.Is(err, out.err) || len(out.batches) != 1 {
		t.Errorf("error %v after batches %q", err, out.batches)
	}
}
