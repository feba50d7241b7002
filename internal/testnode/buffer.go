package testnode

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"nsq/internal/testutil"
)

// Buffer is an output that a test reads while a program writes. It is safe for concurrent use.
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
	testutil.Eventually(t, func() error {
		if text := b.String(); !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %q", part, text)
		}
		return nil
	})
}
