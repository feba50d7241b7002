package session

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A message is sent as soon as there is nothing more to send, also into a wide window.
func TestMessageArrivesAtOnce(t *testing.T) {
	for name, members := range map[string][]string{
		"no IDENTIFY":        nil,
		"defaults":           {`"output_buffer_size":16384`, `"output_buffer_timeout":250`},
		"no timeout":         {`"output_buffer_timeout":-1`},
		"no buffer":          {`"output_buffer_size":-1`},
		"neither":            {`"output_buffer_size":-1`, `"output_buffer_timeout":-1`},
		"small buffer":       {`"output_buffer_size":64`},
		"short timeout":      {`"output_buffer_timeout":25`},
		"large, no timeout":  {`"output_buffer_size":65536`, `"output_buffer_timeout":-1`},
		"sample of the most": {`"sample_rate":0`},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.subscribe("t", "ch", 100, members...)
				for _, body := range []string{"x", strings.Repeat("y", 7000), strings.Repeat("z", 20000), strings.Repeat("w", 200000)} {
					began := time.Now()
					n.publish("t", body, "next")
					c.wantMessage(1, body)
					c.wantMessage(1, "next")
					wantAfter(t, began, 0, 0)
					time.Sleep(77 * time.Millisecond)
				}
			})
		})
	}
}

// The node's own default of no timeout is no reason to crash or to hold anything back.
func TestNoDefaultBufferTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, -1} {
		with(t, overPipe, func(n *node) {
			c := n.subscribe("t", "ch", 100)
			began := time.Now()
			n.publish("t", "x")
			c.wantMessage(1, "x")
			wantAfter(t, began, 0, 0)
		}, func(s *setup) { s.limits.OutputBufferTimeout = timeout })
	}
}

// A client that asks for more buffering than others gets it, for not longer than it said.
func TestMoreBuffering(t *testing.T) {
	const asked = 500 * time.Millisecond
	members := []string{`"output_buffer_size":65536`, `"output_buffer_timeout":500`}
	buffering := func(t *testing.T, ready int, talk func(*node, *conn)) {
		with(t, overPipe, func(n *node) { talk(n, n.subscribe("t", "ch", ready, members...)) })
	}
	t.Run("held for its time", func(t *testing.T) {
		buffering(t, 100, func(n *node, c *conn) {
			for range 3 {
				began := time.Now()
				n.publish("t", "x")
				time.Sleep(asked - time.Millisecond)
				c.wantQuiet()
				n.publish("t", "y") // does not begin the time anew
				c.wantQuiet()
				c.wantMessage(1, "x")
				c.wantMessage(1, "y")
				wantAfter(t, began, asked, asked)
			}
		})
	})
	t.Run("at once when the window is full", func(t *testing.T) {
		buffering(t, 3, func(n *node, c *conn) {
			n.publish("t", "1", "2")
			c.wantQuiet()
			began := time.Now()
			n.publish("t", "3")
			for _, body := range []string{"1", "2", "3"} {
				c.wantMessage(1, body)
			}
			wantAfter(t, began, 0, 0)
		})
	})
	t.Run("at once when the buffer is full", func(t *testing.T) {
		buffering(t, 2500, func(n *node, c *conn) {
			began := time.Now()
			body := strings.Repeat("x", 1000)
			for range 100 {
				n.publish("t", body)
			}
			for range 65536 / (1000 + 34) {
				c.wantMessage(1, body)
			}
			wantAfter(t, began, 0, 0)
			c.wantQuiet()
			time.Sleep(asked)
			c.wantMessage(1, body)
		})
	})
	t.Run("at once with a response", func(t *testing.T) {
		buffering(t, 100, func(n *node, c *conn) {
			n.publish("t", "x")
			c.wantQuiet()
			began := time.Now()
			c.send(pub("elsewhere", "x"))
			c.wantMessage(1, "x")
			c.wantOK(1)
			wantAfter(t, began, 0, 0)
		})
	})
	t.Run("only the timeout", func(t *testing.T) {
		with(t, overPipe, func(n *node) {
			c := n.subscribe("t", "ch", 100, `"output_buffer_timeout":2000`)
			began := time.Now()
			n.publish("t", "x")
			c.wantMessage(1, "x")
			wantAfter(t, began, 2*time.Second, 2*time.Second)
		})
	})
}

// The delivered share is the sample rate, and what is left out is gone.
func TestSampleRate(t *testing.T) {
	const messages = 10000
	for rate, within := range map[int]int{1: 50, 99: 50} { // five standard deviations
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			with(t, overTCP, func(n *node) {
				c := n.subscribe("t", "ch", messages, fmt.Sprintf(`"sample_rate":%d`, rate))
				batch := make([]string, 1000)
				for i := range batch {
					batch[i] = "x"
				}
				for range messages / len(batch) {
					c.send(mpub("t", batch...))
				}
				eventually(t, "all are taken", func() bool {
					stats := n.channel("t", "ch")
					return stats.MessageCount == messages && stats.Depth == 0
				})
				got := 0
				eventually(t, "all are delivered", func() bool {
					got = int(n.sessions.Clients()[0].MessageCount)
					return n.channel("t", "ch").InFlightCount == int64(got) && got > 0
				})
				if want := messages * rate / 100; got < want-within || got > want+within {
					t.Errorf("%d of %d delivered, want about %d", got, messages, want)
				}
			}, func(s *setup) { s.limits.MaxRdyCount = messages })
		})
	}
}

// Under load every message is delivered exactly once, with its own body, to one of the consumers.
func TestEveryMessageArrivesOnce(t *testing.T) {
	const messages, consumers = 200, 3
	everywhere(t, func(n *node) {
		got := make(chan string)
		for i := range consumers {
			c := n.subscribe("t", "ch", 20+i)
			go func() {
				for {
					header, err := c.in.take(34, time.Hour)
					if err != nil {
						return
					}
					size := int(header[2])<<8 | int(header[3])
					body, err := c.in.take(size-30, time.Hour)
					if err != nil {
						return
					}
					got <- body
					if c.trySend(fin(header[18:34])) != nil {
						return
					}
				}
			}()
		}
		publisher := n.dial()
		want := map[string]bool{}
		for i := range messages / 10 {
			var batch []string
			for j := range 10 {
				batch = append(batch, fmt.Sprintf("%d %s", i*10+j, strings.Repeat("x", (i*10+j)%50*10)))
				want[batch[j]] = true
			}
			publisher.send(mpub("t", batch...))
		}
		publisher.wantOK(messages / 10)
		for range messages {
			body := <-got
			if !want[body] {
				n.t.Fatalf("%.40q came twice, or was never published", body)
			}
			delete(want, body)
		}
		eventually(n.t, "all are finished", func() bool {
			stats := n.channel("t", "ch")
			return stats.InFlightCount == 0 && stats.Depth == 0
		})
	})
}
