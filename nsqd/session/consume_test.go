package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nsq/internal/protocol"
)

func fin(ids ...string) string { return "FIN " + strings.Join(ids, "\nFIN ") + "\n" }

// RDY is a window: it limits what is in flight, can be lowered below that and closed.
func TestReadyIsAWindow(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 3)
		n.publish("t", "1", "2", "3", "4", "5", "6", "7")
		first, second, third := c.wantMessage(1, "1"), c.wantMessage(1, "2"), c.wantMessage(1, "3")
		c.wantNothing()
		c.send("RDY 1\n" + fin(first, second))
		c.wantNothing() // one is still in flight
		c.send(fin(third))
		fourth := c.wantMessage(1, "4")
		c.wantNothing()
		c.send("RDY 0\n" + fin(fourth))
		c.wantNothing()
		c.send("RDY 2\n")
		c.wantMessage(1, "5")
		c.wantMessage(1, "6")
		c.wantNothing()
		c.send("RDY 3\n")
		c.wantMessage(1, "7")
	})
}

// Touching does not open the window, giving back does.
func TestWhatOpensTheWindow(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 1)
		n.publish("t", "1", "2")
		first := c.wantMessage(1, "1")
		c.send("TOUCH " + first + "\n")
		c.wantNothing()
		c.send("REQ " + first + " 60000\n")
		c.wantMessage(1, "2")
		if stats := n.channel("t", "ch"); stats.DeferredCount != 1 || stats.InFlightCount != 1 || stats.RequeueCount != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

// Ids that are not in flight have an error each, in order, and do not keep the others from being
// finished, however many FINs come at once.
func TestUnknownIDsAmongFins(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.subscribe("t", "ch", 1000)
		var commands, errors strings.Builder
		var bodies []string
		for i := range 600 {
			bodies = append(bodies, fmt.Sprint(i))
		}
		n.publish("t", bodies...)
		for i, body := range bodies {
			commands.WriteString(fin(c.wantMessage(1, body)))
			if i%100 == 50 || i > 590 {
				unknown := fmt.Sprintf("unknown%09d", i)
				commands.WriteString(fin(unknown))
				errors.WriteString(frame(protocol.FrameError, "E_FIN_FAILED FIN "+unknown+" failed ID not in flight"))
			}
		}
		c.send(commands.String())
		c.wantBytes(errors.String())
		c.wantNothing()
		if stats := n.channel("t", "ch"); stats.InFlightCount != 0 || stats.Depth != 0 {
			n.t.Errorf("%d in flight, depth %d", stats.InFlightCount, stats.Depth)
		}
		if client := n.sessions.Clients()[0]; client.FinishCount != 600 || client.MessageCount != 600 || client.InFlightCount != 0 {
			n.t.Errorf("%d finished of %d, %d in flight", client.FinishCount, client.MessageCount, client.InFlightCount)
		}
	})
}

// A message is finished once, also if the client says it twice in one write.
func TestFinishedTwice(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 1)
		n.publish("t", "x")
		id := c.wantMessage(1, "x")
		c.send(fin(id, id) + "REQ " + id + " 0\nTOUCH " + id + "\n")
		c.wantError("E_FIN_FAILED FIN " + id + " failed ID not in flight")
		c.wantError("E_REQ_FAILED REQ " + id + " failed ID not in flight")
		c.wantError("E_TOUCH_FAILED TOUCH " + id + " failed ID not in flight")
		c.wantNothing()
	})
}

// Only its holder may finish, give back or touch a message.
func TestMessageOfAnotherClient(t *testing.T) {
	everywhere(t, func(n *node) {
		holder := n.subscribe("t", "ch", 1)
		n.publish("t", "x")
		id := holder.wantMessage(1, "x")
		other := n.subscribe("t", "ch", 2)
		other.send(fin(id) + "REQ " + id + " 0\nTOUCH " + id + "\n")
		other.wantError("E_FIN_FAILED FIN " + id + " failed client does not own message")
		other.wantError("E_REQ_FAILED REQ " + id + " failed client does not own message")
		other.wantError("E_TOUCH_FAILED TOUCH " + id + " failed client does not own message")
		elsewhere := n.subscribe("t", "else", 0) // another channel has another copy
		elsewhere.send(fin(id))
		elsewhere.wantError("E_FIN_FAILED FIN " + id + " failed ID not in flight")
		holder.send(fin(id))
		holder.wantNothing()
		if stats := n.channel("t", "ch"); stats.InFlightCount != 0 || stats.Depth != 0 {
			n.t.Errorf("%d in flight, depth %d", stats.InFlightCount, stats.Depth)
		}
	})
}

// A FIN that comes too late does not finish the next attempt, which somebody else holds.
func TestLateFin(t *testing.T) {
	with(t, overPipe, func(n *node) {
		late := n.subscribe("t", "ch", 1, `"msg_timeout":1000`)
		n.publish("t", "x")
		id := late.wantMessage(1, "x")
		late.send("RDY 0\n")
		other := n.subscribe("t", "ch", 1)
		time.Sleep(1100 * time.Millisecond)
		if again := other.wantMessage(2, "x"); again != id {
			t.Errorf("message %s came back as %s", id, again)
		}
		late.send(fin(id))
		late.wantError("E_FIN_FAILED FIN " + id + " failed client does not own message")
		if stats := n.channel("t", "ch"); stats.InFlightCount != 1 || stats.TimeoutCount != 1 {
			t.Errorf("%+v", stats)
		}
		other.send(fin(id))
		other.wantNothing()
		if stats := n.channel("t", "ch"); stats.InFlightCount != 0 {
			t.Errorf("%d in flight", stats.InFlightCount)
		}
	})
}

// A message comes back after the delay of its REQ, at most the largest one however large the
// number, and never before.
func TestRequeueDelay(t *testing.T) {
	for delay, want := range map[string]time.Duration{
		"0": 0, "": 0, "500": 500 * time.Millisecond, "2000": 2 * time.Second,
		"2001": 2 * time.Second, "10000": 2 * time.Second,
		"9223372036855":        2 * time.Second, // in nanoseconds beyond 2^63
		"18446744073710":       2 * time.Second,
		"18446744073709551616": 2 * time.Second, // 2^64
	} {
		t.Run(delay, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.subscribe("t", "ch", 1)
				n.publish("t", "x")
				id := c.wantMessage(1, "x")
				began := time.Now()
				c.send("REQ " + id + " " + delay + "\n")
				c.wantMessage(2, "x")
				wantAfter(t, began, want, want+20*time.Millisecond)
			}, func(s *setup) { s.limits.MaxReqTimeout = 2 * time.Second })
		})
	}
}

// DPUB with its largest delay is delivered then.
func TestDeferredPublish(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 1)
		began := time.Now()
		c.send(dpub("t", "2000", "x"))
		c.wantOK(1)
		c.wantNothing()
		c.wantMessage(1, "x")
		wantAfter(t, began, 2*time.Second, 2*time.Second+20*time.Millisecond)
	}, func(s *setup) { s.limits.MaxReqTimeout = 2 * time.Second })
}

// TOUCH gives the whole timeout anew, but not beyond the largest one from the delivery.
func TestTouch(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 1, `"msg_timeout":1000`)
		n.publish("t", "x")
		id := c.wantMessage(1, "x")
		began := time.Now()
		for time.Since(began) < 4900*time.Millisecond {
			time.Sleep(490 * time.Millisecond)
			c.send("TOUCH " + id + "\n")
			c.wantQuiet()
		}
		c.wantMessage(2, "x")
		wantAfter(t, began, 5*time.Second, 5*time.Second+20*time.Millisecond)
	}, func(s *setup) { s.limits.MaxMsgTimeout = 5 * time.Second })
}

// After CLS nothing more is delivered, but what is in flight can be dealt with in every way.
func TestClosing(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.subscribe("t", "ch", 3)
		n.publish("t", "1", "2", "3")
		first, second, third := c.wantMessage(1, "1"), c.wantMessage(1, "2"), c.wantMessage(1, "3")
		c.send("CLS\n")
		c.wantResponse("CLOSE_WAIT")
		c.send("RDY 99999\nRDY x\nTOUCH " + first + "\n" + fin(first) + "REQ " + second + " 0\n" + pub("t", "4"))
		c.wantOK(1)
		c.wantNothing()
		eventually(n.t, "two wait", func() bool { return n.channel("t", "ch").Depth == 2 })
		if stats := n.channel("t", "ch"); stats.InFlightCount != 1 {
			n.t.Errorf("%d in flight", stats.InFlightCount)
		}
		c.send(fin(third))
		c.wantNothing()
		if client := n.sessions.Clients()[0]; client.State != 4 || client.ReadyCount != 0 || client.FinishCount != 2 || client.RequeueCount != 1 {
			n.t.Errorf("%+v", client)
		}
	})
}

// What was dropped is no longer in flight, and its room in the window is free. A pause keeps what
// is not delivered yet, and nothing else.
func TestEmptiedAndPausedChannel(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 1)
		n.publish("t", "1", "2")
		id := c.wantMessage(1, "1")
		topic, err := n.broker.FindTopic("t")
		if err != nil {
			t.Fatal(err)
		}
		channel, err := topic.FindChannel("ch")
		if err != nil {
			t.Fatal(err)
		}
		if err := channel.Empty(); err != nil {
			t.Fatal(err)
		}
		c.send(fin(id))
		c.wantError("E_FIN_FAILED FIN " + id + " failed ID not in flight")
		n.publish("t", "3")
		third := c.wantMessage(1, "3")

		if err := channel.Pause(); err != nil {
			t.Fatal(err)
		}
		n.publish("t", "4")
		c.send("RDY 2\n" + fin(third))
		c.wantNothing()
		if err := channel.Unpause(); err != nil {
			t.Fatal(err)
		}
		c.wantMessage(1, "4")
	})
}

// A consumer of a channel that is deleted is closed without an error; so is one of its topic.
func TestDeletedChannel(t *testing.T) {
	everywhere(t, func(n *node) {
		of, ofTopic := n.subscribe("t", "ch", 1), n.subscribe("t", "other", 1)
		publisher := n.dial()
		publisher.send(pub("t", "x"))
		publisher.wantOK(1)
		of.wantMessage(1, "x")
		ofTopic.wantMessage(1, "x")
		topic, err := n.broker.FindTopic("t")
		if err != nil {
			n.t.Fatal(err)
		}
		if err := topic.DeleteChannel("ch"); err != nil {
			n.t.Fatal(err)
		}
		of.wantClosed()
		ofTopic.wantNothing()
		if err := n.broker.DeleteTopic("t"); err != nil {
			n.t.Fatal(err)
		}
		ofTopic.wantClosed()
		publisher.wantNothing()
	})
}

// What a client held goes to the next one at once when it leaves, in whatever way.
func TestDisconnectRequeuesAtOnce(t *testing.T) {
	for name, leave := range map[string]func(*conn){
		"closes":        func(c *conn) { c.raw.Close() },
		"fatal error":   func(c *conn) { c.send("NONSENSE\n"); c.wantFatal("E_INVALID invalid command NONSENSE") },
		"CLS and close": func(c *conn) { c.send("CLS\n"); c.wantResponse("CLOSE_WAIT"); c.raw.Close() },
	} {
		run := everywhere
		if name != "closes" {
			run = func(t *testing.T, test func(*node), _ ...func(*setup)) { with(t, overTCP, test) }
		}
		t.Run(name, func(t *testing.T) {
			run(t, func(n *node) {
				c := n.subscribe("t", "ch", 3)
				n.publish("t", "1", "2", "3")
				first := c.wantMessage(1, "1")
				c.wantMessage(1, "2")
				c.wantMessage(1, "3")
				c.send(fin(first))
				c.wantNothing()
				began := time.Now()
				leave(c)
				next := n.subscribe("t", "ch", 3)
				next.wantMessage(2, "2")
				next.wantMessage(2, "3")
				if waited := time.Since(began); waited > patience/2 {
					n.t.Errorf("after %v", waited)
				}
				eventually(n.t, "the first one is gone", func() bool { return n.channel("t", "ch").ClientCount == 1 })
			})
		})
	}
}

// An ephemeral channel goes with its last client, and can be made anew.
func TestEphemeralChannelGoesWithItsClient(t *testing.T) {
	with(t, overTCP, func(n *node) {
		for range 3 {
			c := n.subscribe("t", "ch#ephemeral", 1)
			c.raw.Close()
			eventually(t, "the channel is gone", func() bool { return len(n.broker.Stats("t", "ch#ephemeral")) == 0 })
		}
	})
}

// A message that is given back while the disk is broken is kept, and the window is opened.
func TestRequeueOntoABrokenDisk(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 1)
		n.publish("t", "1")
		first := c.wantMessage(1, "1")
		n.publish("t", "2") // fills the memory of the channel
		c.wantNothing()
		c.send("REQ " + first + " 0\n")
		second := c.wantMessage(1, "2")
		c.send(fin(second))
		c.wantMessage(2, "1")
		if client := n.sessions.Clients()[0]; client.InFlightCount != 1 {
			t.Errorf("%d in flight", client.InFlightCount)
		}
		c.send(fin(first)) // the disk is still broken when the node stops
		c.wantNothing()
	}, func(s *setup) { s.memory = 1 }, failing(errors.New("broken")))
}

// Once the broker is closed, publishers and consumers are told so.
func TestExiting(t *testing.T) {
	with(t, overTCP, func(n *node) {
		commands := map[string]string{
			pub("t", "x"):       "E_PUB_FAILED PUB failed exiting",
			mpub("t", "x"):      "E_MPUB_FAILED MPUB failed exiting",
			dpub("t", "5", "x"): "E_DPUB_FAILED DPUB failed exiting",
			"SUB t ch\n":        "E_SUB_FAILED SUB failed exiting",
			"SUB new ch\n":      "E_SUB_FAILED SUB failed exiting",
		}
		clients := map[string]*conn{}
		for command := range commands {
			clients[command] = n.dial()
			clients[command].send(pub("t", "x"))
			clients[command].wantOK(1)
		}
		if err := n.broker.Close(); err != nil {
			t.Fatal(err)
		}
		for command, want := range commands {
			clients[command].send(command)
			clients[command].wantFatal(want)
		}
	})
}
