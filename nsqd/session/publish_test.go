package session

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"nsq/internal/protocol"
)

// A thousand commands in one write are all answered, in their order, and all acted on.
func TestPipelinedCommandsAreAnsweredInOrder(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.dial()
		c.send("SUB s ch\n")
		c.wantOK(1)
		var commands, answers strings.Builder
		messages := map[string]int64{}
		count := func(topic string, n int64) { messages[topic] += n; answers.WriteString(ok) }
		for i := range 1000 {
			unknown := fmt.Sprintf("%016x", i)
			switch topic := fmt.Sprintf("p%d", i/7%3); i % 9 {
			case 0, 1, 2, 3:
				commands.WriteString(pub(topic, fmt.Sprint(i)))
				count(topic, 1)
			case 4:
				commands.WriteString("FIN " + unknown + "\n" + pub(topic, "between") + "FIN " + unknown + "\n" + pub(topic, "behind"))
				failed := frame(protocol.FrameError, "E_FIN_FAILED FIN "+unknown+" failed ID not in flight")
				answers.WriteString(failed)
				count(topic, 1)
				answers.WriteString(failed)
				count(topic, 1)
			case 5:
				commands.WriteString(dpub(topic, "1000", fmt.Sprint(i)))
				count(topic, 1)
			case 6:
				commands.WriteString("NOP\r\nTOUCH " + unknown + "\n")
				answers.WriteString(frame(protocol.FrameError, "E_TOUCH_FAILED TOUCH "+unknown+" failed ID not in flight"))
			case 7:
				commands.WriteString(mpub(topic, "a", "b", "c"))
				count(topic, 3)
			case 8:
				commands.WriteString("REQ " + unknown + " 7\n")
				answers.WriteString(frame(protocol.FrameError, "E_REQ_FAILED REQ "+unknown+" failed ID not in flight"))
			}
		}
		c.send(commands.String())
		c.wantBytes(answers.String())
		for topic, want := range messages {
			if got := n.topicMessages(topic); got != want {
				n.t.Errorf("topic %s has %d messages, want %d", topic, got, want)
			}
		}
		c.wantNothing()
	})
}

// Messages of one connection are queued in the order of their commands.
func TestPublishOrder(t *testing.T) {
	everywhere(t, func(n *node) {
		var commands strings.Builder
		var want []string
		for i := range 300 {
			body := fmt.Sprint(i)
			want = append(want, body)
			if i%50 == 49 {
				commands.WriteString(mpub("o", body))
			} else {
				commands.WriteString(pub("o", body))
			}
		}
		c := n.dial()
		c.send(commands.String())
		c.wantOK(300)
		reader := n.subscribe("o", "ch", 2500)
		for _, body := range want {
			reader.wantMessage(1, body)
		}
	})
}

// What comes in one write is deferred or not by its own command.
func TestDeferredAmongOthers(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.subscribe("t", "ch", 10)
		began := time.Now()
		c.send(dpub("t", "5000", "4") + pub("t", "1") + dpub("t", "0", "2") + pub("t", "3") + dpub("t", "6000", "5"))
		seen := 0
		for range 5 + 3 {
			if kind, data := c.frame(); kind == protocol.FrameMessage {
				seen++
				if want := fmt.Sprint(seen); data[26:] != want {
					t.Errorf("got %q, want %q", data[26:], want)
				}
			}
		}
		wantAfter(t, began, 0, 0)
		c.wantMessage(1, "4")
		wantAfter(t, began, 5*time.Second, 5020*time.Millisecond)
		c.wantMessage(1, "5")
		wantAfter(t, began, 6*time.Second, 6020*time.Millisecond)
	})
}

// What is complete is answered although the client has not finished its next command.
func TestAnswersDoNotWaitForAnUnfinishedCommand(t *testing.T) {
	for _, next := range []string{
		"P", "PUB", "PUB t", "PUB t\n", "PUB t\n\x00\x00", "PUB t\n\x00\x00\x00\x05", "PUB t\n\x00\x00\x00\x05hell",
		"PUB other\n\x00\x00\x00\x05hell", "PUB t\n\x00\x0f\x00\x00" + strings.Repeat("x", 70000),
		"DPUB t 5\n\x00\x00\x00\x05hell", "MPUB t\n\x00\x00", "MPUB t\n\x00\x00\x00\x20\x00\x00\x00\x02\x00\x00\x00\x01a",
		"IDENTIFY\n\x00\x00\x00\x05{", "AUTH\n\x00\x00",
	} {
		t.Run(next[:min(20, len(next))], func(t *testing.T) {
			with(t, overTCP, func(n *node) {
				c := n.dial()
				c.send(pub("t", "a") + pub("t", "b") + next)
				c.wantOK(2)
				if got := n.topicMessages("t"); got != 2 {
					t.Errorf("%d messages were published", got)
				}
			})
		})
	}
}

// A conversation does not depend on how its bytes are cut.
func TestOneByteAtATime(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.dial()
		all := "NOP\r\n" + pub("t", "first") + mpub("t", "second", "third") + dpub("t", "0", "fourth") + "SUB t ch\nRDY 5\n"
		if _, err := io.Copy(c.out, iotest.OneByteReader(strings.NewReader(all))); err != nil {
			n.t.Fatal(err)
		}
		c.wantOK(4)
		for _, body := range []string{"first", "second", "third", "fourth"} {
			c.wantMessage(1, body)
		}
	})
}

// Bodies of all sizes around those of the buffers arrive as they were sent.
func TestBodySizes(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.subscribe("big", "ch", 2500)
		for _, size := range []int{1, 4067, 4096, 8157, 8158, 8159, 8192, 16384, 20000, 65501, 65502, 65536, 65537, 300000} {
			body := strings.Repeat("0123456789abcdefg", size/17+1)[:size]
			c.send("NOP\n" + pub("big", body))
			c.expectBoth(body)
		}
	})
}

// expectBoth takes the answer to a publish and its message, which may come in any order.
func (c *conn) expectBoth(body string) {
	c.t.Helper()
	seen := map[protocol.FrameType]bool{}
	for range 2 {
		kind, data := c.frame()
		switch {
		case kind == protocol.FrameResponse && data == "OK":
		case kind == protocol.FrameMessage && data[26:] == body:
		default:
			c.t.Fatalf("got frame %d %.60q of %d bytes", kind, data, len(data))
		}
		seen[kind] = true
	}
	if len(seen) != 2 {
		c.t.Fatalf("one of answer and message is missing")
	}
}

// A body that does not come is an error that says so, whether the client hangs up or falls silent,
// and nothing of it is published.
func TestShortBodies(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"PUB t\n\x00\x00", "E_BAD_MESSAGE PUB failed to read message body size"},
		{"PUB t\n\x00\x00\x00\x05hell", "E_BAD_MESSAGE PUB failed to read message body"},
		{"PUB t\n\x00\x10\x00\x00hell", "E_BAD_MESSAGE PUB failed to read message body"},
		{"DPUB t 5\n\x00", "E_BAD_MESSAGE DPUB failed to read message body size"},
		{"DPUB t 5\n\x00\x00\x00\x05hell", "E_BAD_MESSAGE DPUB failed to read message body"},
		{"MPUB t\n\x00", "E_BAD_BODY MPUB failed to read body size"},
		{"MPUB t\n\x00\x00\x00\x20\x00", "E_BAD_BODY MPUB failed to read message count"},
		{"MPUB t\n\x00\x00\x00\x20\x00\x00\x00\x02\x00\x00\x00\x01a\x00", "E_BAD_MESSAGE MPUB failed to read message(1) body size"},
		{"MPUB t\n\x00\x00\x00\x20\x00\x00\x00\x02\x00\x00\x00\x02a", "E_BAD_MESSAGE MPUB failed to read message body"},
		{"AUTH\n\x00", "E_BAD_BODY AUTH failed to read body size"},
		{"AUTH\n\x00\x00\x00\x05hell", "E_BAD_BODY AUTH failed to read body"},
		{"IDENTIFY\n\x00", "E_BAD_BODY IDENTIFY failed to read body size"},
		{"IDENTIFY\n\x00\x00\x00\x05hell", "E_BAD_BODY IDENTIFY failed to read body"},
	} {
		name := strings.ReplaceAll(test.want, "/", " ")
		t.Run("half-close "+name, func(t *testing.T) {
			with(t, overTCP, func(n *node) {
				c := n.dial()
				c.send(test.text)
				c.closeWrite()
				c.wantFatal(test.want)
				n.wantNotPublished("t")
			})
		})
		t.Run("silence "+name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.dial()
				began := time.Now()
				c.send(test.text)
				c.wantHeartbeats(began, 30*time.Second, 2)
				c.wantFatal(test.want)
				wantAfter(t, began, time.Minute, time.Minute+2*time.Second)
				n.wantNotPublished("t")
			})
		})
	}
}

func (n *node) wantNotPublished(topic string) {
	n.t.Helper()
	if got := n.topicMessages(topic); got > 0 {
		n.t.Errorf("%d messages were published", got)
	}
}

// wantHeartbeats waits for heartbeats at multiples of the interval, in a bubble.
func (c *conn) wantHeartbeats(since time.Time, interval time.Duration, n int) {
	c.t.Helper()
	for i := range n {
		time.Sleep(time.Until(since.Add(time.Duration(i+1) * interval)))
		c.wantResponse("_heartbeat_")
		wantAfter(c.t, since, time.Duration(i+1)*interval, time.Duration(i+1)*interval)
	}
}

// closeWrite ends what the client sends and leaves the other direction open.
func (c *conn) closeWrite() {
	c.t.Helper()
	if err := c.raw.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// A client that ends its side gets the answers to all complete commands before the end.
func TestHalfClose(t *testing.T) {
	for _, by := range []transport{overTCP, {network: "unix"}} {
		t.Run(by.String(), func(t *testing.T) {
			with(t, by, func(n *node) {
				c := n.dial()
				c.send(strings.Repeat(pub("t", "x"), 500) + "PUB t")
				c.closeWrite()
				c.wantOK(500)
				c.wantClosed()
				if got := n.topicMessages("t"); got != 500 {
					t.Errorf("%d messages were published", got)
				}
			})
		})
	}
}

// Commands before a fatal one are acted on and answered before the error, those behind it are not.
func TestFatalErrorAmongPipelinedCommands(t *testing.T) {
	for _, fatal := range []string{"ASDF\n", "PUB t!\n", "RDY 1\n", "PUB t\n\x00\x00\x00\x00", "DPUB t x\n", "CLS\n", "MPUB t\n\x00\x00\x00\x00", "FIN\n", "PUB\n"} {
		t.Run(strings.TrimSpace(fatal), func(t *testing.T) {
			with(t, overTCP, func(n *node) {
				c := n.dial()
				c.send(pub("t", "a") + pub("u", "b") + pub("u", "c") + fatal + pub("t", "d") + pub("u", "d"))
				c.wantOK(3)
				if kind, data := c.frame(); kind != protocol.FrameError || !strings.HasPrefix(data, "E_") {
					t.Fatalf("got %d %q", kind, data)
				}
				c.wantClosed()
				if n.topicMessages("t") != 1 || n.topicMessages("u") != 2 {
					t.Errorf("%d and %d messages were published", n.topicMessages("t"), n.topicMessages("u"))
				}
			})
		})
	}
}

// A topic that is deleted while a client publishes to it is made anew by the next PUB.
func TestPublishToADeletedTopic(t *testing.T) {
	with(t, overTCP, func(n *node) {
		c := n.dial()
		for range 3 {
			c.send(pub("t", "x") + pub("t", "y") + mpub("t", "z"))
			c.wantOK(3)
			if got := n.topicMessages("t"); got != 3 {
				t.Errorf("%d messages were published", got)
			}
			if err := n.broker.DeleteTopic("t"); err != nil {
				t.Fatal(err)
			}
		}
		c.send(mpub("t", "z"))
		c.wantOK(1)
	})
}

// What a client has published is counted by topic.
func TestPubCounts(t *testing.T) {
	with(t, overTCP, func(n *node) {
		c := n.dial()
		c.send(pub("b", "1") + pub("b", "2") + pub("a", "1") + pub("b", "3") + mpub("b", "4", "5") + dpub("a", "1", "2"))
		c.wantOK(6)
		clients := n.sessions.Clients()
		if got := fmt.Sprint(clients[0].PubCounts); len(clients) != 1 || got != "[{a 2} {b 5}]" {
			t.Errorf("%d clients, counts %s", len(clients), got)
		}
	})
}
