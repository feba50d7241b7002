package session

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The log tells a client that says nothing from one that takes nothing.
func TestLogOfTimeouts(t *testing.T) {
	const (
		silent = "nothing heard for two heartbeat intervals: "
		stuck  = "client did not take what was sent in time: "
	)
	t.Run("silent", func(t *testing.T) {
		with(t, overPipe, func(n *node) {
			c := n.dial(everySecond)
			c.wantHeartbeats(time.Now(), time.Second, 2)
			c.wantClosed()
			settled()
			if !n.journal.has(silent) || n.journal.has(stuck) {
				t.Errorf("log:\n%s", n.journal)
			}
		})
	})
	for _, by := range []transport{overTCP, overTLS} {
		t.Run("stuck "+by.String(), func(t *testing.T) {
			t.Parallel()
			with(t, by, func(n *node) {
				for range 12 { // more than the system buffers
					n.publish("t", noise(1<<20))
				}
				c := n.raw()
				c.send("  V2")
				if by.upgrades() {
					c.upgrade([]string{everySecond})
				} else {
					c.send(identify("{" + everySecond + "}"))
					c.readFrame(c.raw)
				}
				c.send("SUB t ch\nRDY 100\n")
				eventually(t, "the client is gone", func() bool {
					c.trySend("NOP\n") // it is heard all the time
					return len(n.sessions.Clients()) == 0
				})
				if !n.journal.has(stuck) || n.journal.has(silent) {
					t.Errorf("log:\n%s", n.journal)
				}
			})
		})
	}
}

// noise does not become smaller by compression.
func noise(size int) string {
	text := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(text)
	return string(text)
}
