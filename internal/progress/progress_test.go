package progress

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The line is written again and again, and has the last word when it stops.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		var c Counters
		line := Start(&out, true, "published", &c)
		c.Done.Add(10)
		c.Bytes.Add(100)
		time.Sleep(period + period/2)
		c.Done.Add(5)
		c.Failed.Add(2)
		time.Sleep(period / 2)
		time.Sleep(time.Millisecond)
		line.Stop()
		lines := strings.Split(out.String(), "\r")[1:]
		if len(lines) != 3 || lines[0] != "published 10 messages, 100 bytes, 20/s\x1b[K" ||
			lines[1] != "published 15 messages, 100 bytes, 15/s, 2 failed\x1b[K" || lines[2] != lines[1]+"\n" {
			t.Errorf("lines %q", lines)
		}
	})
}

// Without a terminal nothing is written.
func TestNoTerminal(t *testing.T) {
	var out strings.Builder
	line := Start(&out, IsTerminal(&out), "published", new(Counters))
	line.Stop()
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if out.Len() > 0 || IsTerminal(f) {
		t.Errorf("%q was written; a file is a terminal: %v", out.String(), IsTerminal(f))
	}
}
