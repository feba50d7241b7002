// Package progress shows on a terminal how far a program has come, in one line that it writes over
// again and again. Where there is no terminal it shows nothing.
//
// It knows numbers, not what they count.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// period is the time between two looks at the numbers.
const period = 500 * time.Millisecond

// Counters are how far the program has come. Any goroutine may add to them.
type Counters struct {
	Done, Bytes, Failed atomic.Int64
}

// Line is the line on the terminal.
type Line struct {
	out      io.Writer
	verb     string
	counters *Counters
	start    time.Time
	stop     chan struct{} // closed: stop
	stopped  sync.WaitGroup
}

// IsTerminal says whether a stream is one that a person looks at.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Start shows the counters, "<verb> N messages ...", until Stop. show says whether there is somebody to
// look at it; if not, nothing is written.
func Start(out io.Writer, show bool, verb string, counters *Counters) *Line {
	l := &Line{out: out, verb: verb, counters: counters, start: time.Now(), stop: make(chan struct{})}
	if !show {
		return l
	}
	l.stopped.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.write("\r")
			case <-l.stop:
				l.write("\r")
				io.WriteString(l.out, "\n") // where the terminal is gone nobody looks
				return
			}
		}
	})
	return l
}

// Stop writes the line for the last time.
func (l *Line) Stop() {
	close(l.stop)
	l.stopped.Wait()
}

func (l *Line) write(begin string) {
	io.WriteString(l.out, begin+l.text(time.Since(l.start))+"\x1b[K")
}

// text is the line after so long.
func (l *Line) text(elapsed time.Duration) string {
	done := l.counters.Done.Load()
	rate := 0.0
	if seconds := elapsed.Seconds(); seconds > 0 {
		rate = float64(done) / seconds
	}
	text := fmt.Sprintf("%s %d messages, %d bytes, %.0f/s", l.verb, done, l.counters.Bytes.Load(), rate)
	if failed := l.counters.Failed.Load(); failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}
