package netserver

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer collects log lines, without their time.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) logger() *log.Logger { return log.New(b, "", log.Info) }

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for line := range strings.Lines(b.buf.String()) {
		const stamp = len("2006/01/02 15:04:05.000000 ")
		lines = append(lines, strings.TrimSuffix(line[stamp:], "\n"))
	}
	return lines
}

func (b *logBuffer) count(text string) (n int) {
	for _, line := range b.lines() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (b *logBuffer) mustHave(t *testing.T, line string) {
	t.Helper()
	eventually(t, "log line "+line, func() bool {
		for _, have := range b.lines() {
			if have == line {
				return true
			}
		}
		return false
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}
