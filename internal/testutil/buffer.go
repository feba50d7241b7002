package testutil

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Buffer is an output, or a log, that a test reads while others write. It is safe for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write adds to the text.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is the text so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Await waits until the text has a part.
func (b *Buffer) Await(t testing.TB, part string) {
	t.Helper()
	Eventually(t, func() error {
		if text := b.String(); !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %q", part, text)
		}
		return nil
	})
}

// Log are the lines of a daemon's log that has no prefix, from the level on.
func (b *Buffer) Log() (lines []string) {
	for line := range strings.Lines(b.String()) {
		const stamp = len("2006/01/02 15:04:05.000000 ")
		lines = append(lines, strings.TrimSuffix(line[stamp:], "\n"))
	}
	return lines
}

// Logged are the texts that a daemon's log has of a level.
func (b *Buffer) Logged(level string) (texts []string) {
	for _, line := range b.Log() {
		if text, ok := strings.CutPrefix(line, level+": "); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
