package log

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const stampLayout = "2006/01/02 15:04:05.000000"

var allLevels = []Level{Debug, Info, Warn, Error, Fatal}

// A line is prefix, local time, level word and text, written at once.
func TestLine(t *testing.T) {
	words := map[Level]string{Debug: "DEBUG", Info: "INFO", Warn: "WARNING", Error: "ERROR", Fatal: "FATAL"}
	for level, word := range words {
		var out writes
		l := New(&out, "[nsqd] ", Debug)
		before := time.Now().Truncate(time.Microsecond)
		l.Logf(level, "answer %d %s", 42, "%d")
		after := time.Now()

		if len(out.chunks) != 1 {
			t.Fatalf("%s: %d writes", word, len(out.chunks))
		}
		line := out.chunks[0]
		match := regexp.MustCompile(`^\[nsqd\] (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6}) ` + word + `: answer 42 %d\n$`).FindStringSubmatch(line)
		if match == nil {
			t.Errorf("%s: line %q", word, line)
			continue
		}
		at, err := time.ParseInLocation(stampLayout, match[1], time.Local)
		if err != nil || at.Before(before) || at.After(after) {
			t.Errorf("%s: written between %v and %v, says %v, %v", word, before, after, at, err)
		}
	}
}

func TestMethodsWriteTheirLevel(t *testing.T) {
	var out writes
	l := New(&out, "", Debug)
	for _, write := range []func(string, ...any){l.Debugf, l.Infof, l.Warnf, l.Errorf, l.Fatalf} {
		write("n %d", 7)
	}
	want := []string{"DEBUG: n 7\n", "INFO: n 7\n", "WARNING: n 7\n", "ERROR: n 7\n", "FATAL: n 7\n"}
	if len(out.chunks) != len(want) {
		t.Fatalf("%d lines: %q", len(out.chunks), out.chunks)
	}
	for i, line := range out.chunks {
		if line[len(stampLayout)+1:] != want[i] {
			t.Errorf("line %d: %q, want %q", i, line, want[i])
		}
	}
}

func TestLevels(t *testing.T) {
	for _, least := range allLevels {
		var out writes
		l := New(&out, "", Debug)
		l.SetLevel(least)
		if l.Level() != least {
			t.Errorf("level %v, want %v", l.Level(), least)
		}
		for _, level := range allLevels {
			out.chunks = nil
			l.Logf(level, "x")
			if written, want := len(out.chunks) == 1, level >= least; written != want || l.Enabled(level) != want {
				t.Errorf("at %v, %v: written %v, enabled %v", least, level, written, l.Enabled(level))
			}
		}
	}
}

func TestParseLevel(t *testing.T) {
	for name, want := range map[string]Level{
		"debug": Debug, "info": Info, "warn": Warn, "error": Error, "fatal": Fatal, "INFO": Info, "wArN": Warn,
	} {
		if got, err := ParseLevel(name); err != nil || got != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
		if want.String() != strings.ToLower(name) {
			t.Errorf("%v is called %q", name, want)
		}
	}
	for _, name := range []string{"", "warning", " info", "1", "trace"} {
		_, err := ParseLevel(name)
		if err == nil || !strings.Contains(err.Error(), "'"+name+"'") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The numbers are what /config/log_level answers.
func TestLevelNumbers(t *testing.T) {
	for i, level := range allLevels {
		if int(level) != i+1 {
			t.Errorf("%v is %d", level, int(level))
		}
	}
}

// What a peer sent can not make a line of its own.
func TestTextStaysOnItsLine(t *testing.T) {
	var out writes
	New(&out, "", Debug).Errorf("client sent %s", "a\n2026/01/01 00:00:00.000000 FATAL: forged\r\n")
	if len(out.chunks) != 1 || strings.Count(out.chunks[0], "\n") != 1 || strings.Contains(out.chunks[0], "\r") {
		t.Fatalf("%q", out.chunks)
	}
	if want := "ERROR: client sent a 2026/01/01 00:00:00.000000 FATAL: forged  \n"; out.chunks[0][len(stampLayout)+1:] != want {
		t.Errorf("%q", out.chunks[0])
	}
}

func TestDiscard(t *testing.T) {
	l := Discard()
	for _, level := range allLevels {
		if l.Enabled(level) {
			t.Errorf("%v is enabled", level)
		}
		l.Logf(level, "nothing to write to")
	}
	l.SetLevel(Debug)
	l.Errorf("still nothing to write to")
}

// A writer that fails costs its lines and nothing else.
func TestFailingWriter(t *testing.T) {
	failing := &writes{err: io.ErrShortWrite}
	l := New(failing, "", Debug)
	l.Infof("lost")
	failing.err = nil
	l.Infof("kept")
	if len(failing.chunks) != 2 || !strings.HasSuffix(failing.chunks[1], "kept\n") {
		t.Errorf("%q", failing.chunks)
	}
}

// Lines written at the same time, while the level changes, are whole and none is lost.
func TestConcurrentLines(t *testing.T) {
	const writers, lines = 8, 200
	var out writes
	l := New(&out, "p ", Info)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				l.Errorf("%d/%d %s", w, i, strings.Repeat("x", i))
				l.SetLevel(allLevels[i%4])
			}
		})
	}
	all.Wait()
	seen := make(map[string]bool)
	for _, line := range out.chunks {
		_, text, ok := strings.Cut(line, " ERROR: ")
		var w, i int
		if n, err := fmt.Sscanf(text, "%d/%d", &w, &i); !ok || n != 2 || err != nil || text != fmt.Sprintf("%d/%d %s\n", w, i, strings.Repeat("x", i)) {
			t.Fatalf("line %q", line)
		}
		seen[text] = true
	}
	if len(seen) != writers*lines {
		t.Errorf("%d lines of %d", len(seen), writers*lines)
	}
}

// A line that is not written costs no memory.
func TestDisabledLineAllocatesNothing(t *testing.T) {
	l := New(&bytes.Buffer{}, "", Warn)
	if n := testing.AllocsPerRun(100, func() {
		if l.Enabled(Debug) {
			l.Debugf("%d", 1<<40)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// writes keeps what each Write got.
type writes struct {
	chunks []string
	err    error
}

func (w *writes) Write(p []byte) (int, error) {
	w.chunks = append(w.chunks, string(p))
	return len(p), w.err
}

// As JSON a message is one object a line with time, level word and text, whatever the text contains;
// levels are filtered as in text.
func TestJSON(t *testing.T) {
	for _, level := range allLevels {
		var out bytes.Buffer
		l := NewJSON(&out, Debug)
		before := time.Now()
		l.Logf(level, "a %q\nb", "c")
		var object struct {
			Time  time.Time
			Level string
			Msg   string
		}
		decoder := json.NewDecoder(&out)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&object); err != nil {
			t.Fatal(err)
		}
		if object.Level != levels[level].word || object.Msg != "a \"c\"\nb" || object.Time.Before(before) || object.Time.After(time.Now()) {
			t.Errorf("%s: %+v", level, object)
		}
	}
	var out bytes.Buffer
	l := NewJSON(&out, Warn)
	l.Infof("no")
	l.Warnf("yes")
	if strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "no\"") {
		t.Errorf("at level warn: %q", &out)
	}
}
