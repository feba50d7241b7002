package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nsqio/go-nsq"

	"nsq/internal/destination"
	"nsq/internal/latency"
	"nsq/internal/publish"
	"nsq/internal/testutil"
	"nsq/internal/utility"
)

// node is a fake nsqd.
type node struct {
	hold chan struct{} // nil, or what each command waits for
	err  error         // of each command

	mu       sync.Mutex
	commands []string // topic and messages
	open     int
}

func (n *node) connect() (publish.Producer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open++
	return n, nil
}

func (n *node) Publish(topic string, body []byte) error { return n.MultiPublish(topic, [][]byte{body}) }

func (n *node) MultiPublish(topic string, bodies [][]byte) error {
	var texts []string
	for _, body := range bodies {
		texts = append(texts, string(body[:min(len(body), 10)]))
	}
	n.mu.Lock()
	n.commands = append(n.commands, topic+" "+strings.Join(texts, ","))
	n.mu.Unlock()
	if n.hold != nil {
		<-n.hold
	}
	return n.err
}

func (n *node) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open--
}

// bench is a relay to fake nsqd.
type bench struct {
	*relay
	logs testutil.Buffer

	mu       sync.Mutex
	outcomes map[string]outcome
}

func newBench(t *testing.T, mode destination.Mode, batch int, nodes ...*node) *bench {
	b := &bench{outcomes: map[string]outcome{}}
	var addresses []string
	var targets []*publish.Target
	for i, n := range nodes {
		addresses = append(addresses, fmt.Sprintf("nsqd%d:1", i))
		target, err := publish.NewTarget(n.connect)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
	}
	logger := utility.NewLog(&b.logs)
	b.relay = newRelay(destination.New(mode, addresses), targets, batch, latency.NewBoard(addresses, 1, logger), logger)
	return b
}

func (b *bench) give(topic string, bodies ...string) {
	for _, body := range bodies {
		b.send(&job{topic: topic, body: []byte(body), done: func(o outcome) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if _, again := b.outcomes[body]; again {
				panic("done is called again")
			}
			b.outcomes[body] = o
		}})
	}
}

func (b *bench) all(want outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.outcomes {
		if o != want {
			return false
		}
	}
	return true
}

// While a command is on its way messages gather for the next one: of one topic, in their order, up to the
// limits of number and size.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{hold: make(chan struct{})}
		b := newBench(t, destination.HostPool, 3, n)
		b.give("t", "first")
		synctest.Wait()
		large := func(name string) string { return name + strings.Repeat(".", maxBatch/2) }
		b.give("t", "1", "2")
		b.give("u", "a", "b")
		b.give("t", "3", "4", large("5"), large("6"), "7")
		b.give("u", "c")
		for range 20 {
			select {
			case n.hold <- struct{}{}:
				synctest.Wait()
			default:
			}
		}
		want := []string{"t first", "t 1,2,3", "u a,b,c", "t 4,5.........", "t 6.........,7"}
		if !slices.Equal(n.commands, want) {
			t.Errorf("commands %q, want %q", n.commands, want)
		}
		if len(b.outcomes) != 11 || !b.all(published) {
			t.Errorf("outcomes %v", b.outcomes)
		}
		b.stop()
		if n.open != 0 {
			t.Errorf("%d connections are left", n.open)
		}
	})
}

// What one destination loses the others get, and it gets no more for a while.
func TestFailover(t *testing.T) {
	for _, mode := range []destination.Mode{destination.HostPool, destination.RoundRobin, destination.EpsilonGreedy} {
		synctest.Test(t, func(t *testing.T) {
			nodes := []*node{{}, {err: errors.New("no connection")}, {}}
			b := newBench(t, mode, 5, nodes...)
			for i := range 12 {
				b.give("t", fmt.Sprint(i))
				synctest.Wait()
			}
			b.stop()
			if len(b.outcomes) != 12 || !b.all(published) {
				t.Errorf("%s: outcomes %v", mode, b.outcomes)
			}
			if dead := len(nodes[1].commands); dead == 0 || dead > 1 && mode != destination.RoundRobin {
				t.Errorf("%s: the dead one was tried %d times", mode, dead)
			}
			if log := b.logs.String(); !strings.Contains(log, " ERROR: 1 of 1 messages not published to nsqd1:1 - no connection\n") {
				t.Errorf("%s: log %s", mode, log)
			}
		})
	}
}

// The outcome if no destination takes a message: when all are lost each has been tried, a refusal is not
// repeated, and is no reason to leave the destination alone.
func TestNotPublished(t *testing.T) {
	for _, test := range []struct {
		err      error
		outcome  outcome
		attempts int
		timed    bool
	}{
		{errors.New("lost"), failed, 2, false},
		{nsq.ErrNotConnected, failed, 2, false},
		{nsq.ErrProtocol{Reason: "E_PUB_FAILED PUB failed"}, failed, 2, true},
		{nsq.ErrProtocol{Reason: "E_UNAUTHORIZED AUTH failed"}, failed, 2, true},
		{nsq.ErrProtocol{Reason: "E_BAD_MESSAGE PUB message too big 2 > 1"}, refused, 1, true},
		{nsq.ErrProtocol{Reason: `E_BAD_TOPIC PUB topic name "b@d" is not valid`}, refused, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes := []*node{{err: test.err}, {err: test.err}}
			b := newBench(t, destination.RoundRobin, 1, nodes...)
			b.give("t", "m")
			synctest.Wait()
			b.give("t", "n", "o", "p") // a second value makes a line of the timers
			synctest.Wait()
			b.stop()
			attempts := len(nodes[0].commands) + len(nodes[1].commands)
			if len(b.outcomes) != 4 || !b.all(test.outcome) || attempts != 4*test.attempts {
				t.Errorf("%v: outcomes %v, %d attempts", test.err, b.outcomes, attempts)
			}
			if timed := strings.Contains(b.logs.String(), "[aggregate]: finished"); timed != test.timed {
				t.Errorf("%v: timed %v; log %s", test.err, timed, b.logs.String())
			}
		})
	}
}
