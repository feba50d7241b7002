package netserver

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer is a log.
type logBuffer struct{ testutil.Buffer }

func (b *logBuffer) logger() *log.Logger { return log.New(b, "", log.Info) }

func (b *logBuffer) count(text string) (n int) {
	for _, line := range b.Log() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (b *logBuffer) mustHave(t *testing.T, line string) {
	t.Helper()
	eventually(t, "log line "+line, func() bool {
		for _, have := range b.Log() {
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
