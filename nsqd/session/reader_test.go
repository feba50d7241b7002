package session

import (
	"bytes"
	"io"
	"testing"
)

// The buffer begins small, grows while reads fill it, and not beyond its limit, whether commands
// end with the buffer or not.
func TestReadBufferGrowsWithTheTraffic(t *testing.T) {
	for _, command := range []string{"NOP\n", "NOP x\n"} {
		traffic := bytes.Repeat([]byte(command), 200000)
		reads, largest := 0, 0
		source := bytes.NewReader(traffic)
		in := reader{source: source, beforeRead: func() error { reads++; return nil }}
		lines := 0
		for {
			_, ok, err := in.line()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				lines++
				continue
			}
			if err := in.fill(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if largest = max(largest, len(in.buf)); reads == 1 && len(in.buf) != leastReadBuffer {
				t.Errorf("begins with %d bytes", len(in.buf))
			}
		}
		if lines != 200000 || largest != maxReadBuffer {
			t.Errorf("%d lines, buffer of %d bytes", lines, largest)
		}
		if most := len(traffic)/maxReadBuffer + 10; reads > most {
			t.Errorf("%d reads, want at most %d", reads, most)
		}
	}
}
