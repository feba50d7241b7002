package testutil

import (
	"testing"
	"time"
)

const (
	// Patience is how long a test waits for what must happen. It is long, since machines may be slow;
	// only a test that fails waits so long.
	Patience = 30 * time.Second
	// pollInterval is the time between two looks.
	pollInterval = 10 * time.Millisecond
)

// Eventually waits until look returns nil, and ends the test with its last error if that does not
// happen in time.
func Eventually(t testing.TB, look func() error) {
	t.Helper()
	Within(t, Patience, look)
}

// Within is Eventually with a limit of its own, for what is promised to happen so soon.
func Within(t testing.TB, limit time.Duration, look func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", limit, err)
		}
		time.Sleep(pollInterval)
	}
}
