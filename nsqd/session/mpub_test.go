package session

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"nsq/internal/diskq"
	"nsq/nsqd/broker"
)

// A body that is wrong publishes nothing, and does not even create its topic.
func TestBadMPubPublishesNothing(t *testing.T) {
	const two = "\x00\x00\x00\x02"
	for _, test := range []struct{ name, body, want string }{
		{"size 0", "\x00\x00\x00\x00", "E_BAD_BODY MPUB invalid body size 0"},
		{"negative size", "\xff\xff\xff\xff", "E_BAD_BODY MPUB invalid body size -1"},
		{"size over the limit", "\x00\x50\x00\x01", "E_BAD_BODY MPUB body too big 5242881 > 5242880"},
		{"huge size", "\x7f\xff\xff\xff", "E_BAD_BODY MPUB body too big 2147483647 > 5242880"},
		{"no room for the count", sized("\x00\x00\x00"), "E_BAD_BODY MPUB failed to read message count"},
		{"count 0", sized("\x00\x00\x00\x00"), "E_BAD_BODY MPUB invalid message count 0"},
		{"negative count", sized("\x80\x00\x00\x00"), "E_BAD_BODY MPUB invalid message count -2147483648"},
		{"count over any body", sized("\x00\x10\x00\x00"), "E_BAD_BODY MPUB invalid message count 1048576"},
		{"empty message", sized(two + sized("a") + sized("")), "E_BAD_MESSAGE MPUB invalid message(1) body size 0"},
		{"negative message", sized(two + sized("a") + "\xff\xff\xff\xff"), "E_BAD_MESSAGE MPUB invalid message(1) body size -1"},
		{"message over the limit", sized(two + sized("a") + "\x00\x10\x00\x01"), "E_BAD_MESSAGE MPUB message too big 1048577 > 1048576"},
		{"fewer messages than bytes", sized(two + sized("a") + sized("b") + "rest"), "E_BAD_BODY MPUB body size 18 does not match its 2 messages"},
		{"more messages than bytes", sized("\x00\x00\x00\x03" + sized("a") + sized("b")), "E_BAD_BODY MPUB body size 14 does not match its 3 messages"},
		{"last message over the end", "\x00\x00\x00\x0d" + two + sized("a") + sized("bc"), "E_BAD_BODY MPUB body size 13 does not match its 2 messages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with(t, overTCP, func(n *node) {
				c := n.dial()
				c.send("MPUB new\n" + test.body)
				c.wantFatal(test.want)
				if n.topicMessages("new") != -1 {
					t.Error("the topic was created")
				}
				old := n.dial()
				old.send(pub("old", "x") + "MPUB old\n" + test.body)
				old.wantOK(1)
				old.wantFatal(test.want)
				if got := n.topicMessages("old"); got != 1 {
					t.Errorf("the topic has %d messages", got)
				}
			})
		})
	}
}

// A full body, with one message and with many, is taken.
func TestFullMPub(t *testing.T) {
	with(t, overTCP, func(n *node) {
		c := n.dial()
		quarter := strings.Repeat("x", (5242880-4)/5-4)
		c.send(mpub("t", quarter, quarter, quarter, quarter, quarter))
		c.wantOK(1)
		many := make([]string, 5000)
		for i := range many {
			many[i] = "m"
		}
		c.send(mpub("t", many...) + pub("t", "last"))
		c.wantOK(2)
		if got := n.topicMessages("t"); got != 5+5000+1 {
			t.Errorf("%d messages were published", got)
		}
	})
}

// A batch that the disk does not take is refused as a whole.
func TestMPubIsAllOrNothing(t *testing.T) {
	with(t, overTCP, func(n *node) {
		c := n.dial()
		c.send(mpub("t", "a", "b", "c"))
		c.wantFatal("E_MPUB_FAILED MPUB failed storage error")
		if stats := n.broker.Stats("t", "")[0]; stats.Depth != 0 || stats.MessageCount != 0 {
			t.Errorf("depth %d, %d messages", stats.Depth, stats.MessageCount)
		}
	}, func(s *setup) { s.memory = 2 }, failing(errors.New("broken at /secret/path")))
}

// The count and the sizes that a client announces reserve no memory before it has sent something.
func TestAnnouncedSizesReserveNoMemory(t *testing.T) {
	const clients = 64
	with(t, overTCP, func(n *node) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range clients {
			c := n.dial()
			switch i % 4 {
			case 0: // an MPUB of a million messages
				c.send(pub("t", "x") + "MPUB t\n\x00\x50\x00\x00\x00\x0f\xff\xff\x00\x00\x00\x01a")
			case 1: // an MPUB of one message of a MiB
				c.send(pub("t", "x") + "MPUB t\n\x00\x50\x00\x00\x00\x00\x00\x01\x00\x10\x00\x00a")
			case 2: // a PUB of a MiB
				c.send(pub("t", "x") + "PUB t\n\x00\x10\x00\x00a")
			case 3: // an AUTH of five
				c.send(pub("t", "x") + "AUTH\n\x00\x50\x00\x00a")
			}
			c.wantOK(1)
		}
		runtime.ReadMemStats(&after)
		if grown := int64(after.TotalAlloc-before.TotalAlloc) / clients; grown > 512<<10 {
			t.Errorf("%d bytes a client", grown)
		}
	})
}

// failing makes every write to an overflow fail.
func failing(err error) func(*setup) {
	return func(s *setup) {
		s.store = func(classic *broker.ClassicStore) broker.Store { return failingStore{classic, err} }
	}
}

type failingStore struct {
	broker.Store
	err error
}

func (s failingStore) OpenQueue(topic, channel string) (diskq.Queue, error) {
	q, err := s.Store.OpenQueue(topic, channel)
	return failingQueue{q, s.err}, err
}

type failingQueue struct {
	diskq.Queue
	err error
}

func (q failingQueue) Put([][]byte) (int, error) { return 0, q.err }
