package consume

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
)

// quick makes messages that failed come again soon.
var quick = []string{"--consumer-opt=default_requeue_delay,1ms", "--consumer-opt=max_backoff_duration,0"}

// inbox is a handler that fails as often as it is told for each message.
type inbox struct {
	failures int

	mu   sync.Mutex
	got  []string
	seen map[string]int
}

func (in *inbox) HandleMessage(m *nsq.Message) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.seen == nil {
		in.seen = make(map[string]int)
	}
	body := string(m.Body)
	if in.seen[body]++; in.seen[body] <= in.failures {
		return errors.New("not yet")
	}
	in.got = append(in.got, body)
	return nil
}

func (in *inbox) await(t *testing.T, bodies ...string) {
	t.Helper()
	testutil.Eventually(t, func() error {
		in.mu.Lock()
		defer in.mu.Unlock()
		got := slices.Clone(in.got)
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, bodies) {
			return fmt.Errorf("got %q, want %q", got, bodies)
		}
		return nil
	})
}

// start connects a consumer, which is stopped with the test.
func start(t *testing.T, handler nsq.Handler, logs *testutil.Buffer, args ...string) *Consumer {
	t.Helper()
	flags := parse(t, args...)
	if err := errors.Join(flags.CheckSources(), flags.Check()); err != nil {
		t.Fatal(err)
	}
	c, err := flags.NewConsumer("t", "c", handler, 1, log.New(logs, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	return c
}

// A message that fails many times is neither discarded nor finished before it succeeds.
func TestAttemptsAreUnlimited(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Publish("t", "a")
	in := &inbox{failures: 9}
	start(t, in, new(testutil.Buffer), append(quick, "--nsqd-tcp-address="+n.TCP)...)
	in.await(t, "a")
	n.AwaitChannel("t", "c", testnode.Drained)
}

// With a limit, what exceeds it is in the dead-letter topic and finished; the rest is not concerned.
func TestDeadLetters(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Create("dead", "d")
	n.Publish("t", "poison")
	var logs testutil.Buffer
	in := &inbox{failures: 1 << 30}
	start(t, in, &logs, append(quick, "--nsqd-tcp-address="+n.TCP, "--max-attempts=3", "--dead-letter-topic=dead")...)
	n.AwaitChannel("t", "c", testnode.Drained)
	in.mu.Lock()
	tries := in.seen["poison"]
	in.mu.Unlock()
	if tries != 3 {
		t.Errorf("%d attempts, want 3", tries)
	}
	if c := n.AwaitChannel("dead", "d", func(c api.ChannelStats) bool { return c.MessageCount > 0 }); c.MessageCount != 1 {
		t.Errorf("%d messages in the dead-letter topic", c.MessageCount)
	}
	logs.Await(t, " attempted 4 times, moved to topic dead\n")
}

// Only the option of the client, given on purpose, has messages discarded, and that is said.
func TestDiscardOnPurpose(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Publish("t", "poison")
	var logs testutil.Buffer
	in := &inbox{failures: 1 << 30}
	start(t, in, &logs, append(quick, "--nsqd-tcp-address="+n.TCP, "--consumer-opt=max_attempts,2")...)
	n.AwaitChannel("t", "c", testnode.Drained)
	logs.Await(t, "WARNING: max_attempts,2 has messages discarded")
	logs.Await(t, "attempted 3 times, giving up")
}

// A message that cannot be moved aside is not finished either.
func TestDeadLetterNotPublished(t *testing.T) {
	next := nsq.HandlerFunc(func(*nsq.Message) error { return errors.New("never") })
	flags := parse(t, "--max-attempts=1", "--dead-letter-topic=dead")
	d := newDeadLetters(flags, flags.config(), next, log.New(new(testutil.Buffer), "", 0))
	defer d.stop()
	m := nsq.NewMessage(nsq.MessageID{}, []byte("x"))
	m.NSQDAddress = "127.0.0.1:1"
	for attempt, want := range []string{"", "never", "move to topic dead: dial tcp 127.0.0.1:1: connect: connection refused"} {
		if m.Attempts = uint16(attempt); attempt == 0 {
			continue
		}
		if err := d.HandleMessage(m); err == nil || err.Error() != want {
			t.Errorf("attempt %d: error %v, want %q", attempt, err, want)
		}
	}
}

// A nsqd that goes away and comes back is read again within seconds, and nothing is lost.
func TestOutage(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Publish("t", "a")
	in := &inbox{}
	start(t, in, new(testutil.Buffer), "--nsqd-tcp-address="+n.TCP)
	in.await(t, "a")
	n.AwaitChannel("t", "c", testnode.Drained)
	n.Stop()
	n.Start()
	n.Publish("t", "b")
	in.await(t, "a", "b")
	n.AwaitChannel("t", "c", testnode.Drained)
}

// A topic that comes into being later, on a nsqd that only the second nsqlookupd knows, is found within
// seconds.
func TestLookup(t *testing.T) {
	first, second := testnode.StartLookupd(t), testnode.StartLookupd(t)
	n := testnode.StartNSQD(t, second)
	in := &inbox{}
	start(t, in, new(testutil.Buffer), "--lookupd-http-address="+first.HTTP, "--lookupd-http-address="+second.HTTP)
	n.Publish("t", "a")
	in.await(t, "a")
	n.AwaitChannel("t", "c", testnode.Drained)
}

// Mistakes of the user are told at once.
func TestConnectRefuses(t *testing.T) {
	n := testnode.StartNSQD(t)
	for want, args := range map[string][]string{
		"dial tcp 127.0.0.1:1: connect: connection refused": {"--nsqd-tcp-address=127.0.0.1:1"},
		"already connected": {"--nsqd-tcp-address=" + n.TCP, "--nsqd-tcp-address=" + n.TCP},
		"missing port":      {"--lookupd-http-address=127.0.0.1:1", "--lookupd-http-address=localhost"},
	} {
		c, err := parse(t, args...).NewConsumer("t", "c", &inbox{}, 1, discard())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Connect(); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// Wrong names and options are errors with the client's words.
func TestNewConsumerRefuses(t *testing.T) {
	for _, test := range []struct{ topic, channel, arg, want string }{
		{"t$", "c", "--max-in-flight=1", "invalid topic name"},
		{"t", "c$", "--max-in-flight=1", "invalid channel name"},
		{"t", "c", "--max-in-flight=-1", "invalid MaxInFlight ! -1 < 0"},
		{"t", "c", "--consumer-opt=read_timeout,1s", "HeartbeatInterval 30s must be less than ReadTimeout 1s"},
	} {
		if _, err := parse(t, test.arg).NewConsumer(test.topic, test.channel, &inbox{}, 1, discard()); err == nil || err.Error() != test.want {
			t.Errorf("%+v: error %v", test, err)
		}
	}
}

// A handler that does not come back makes the stop a forced one, and its message goes to somebody else.
func TestForcedStop(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Publish("t", "a")
	busy, release := make(chan struct{}), make(chan struct{})
	flags := parse(t, "--nsqd-tcp-address="+n.TCP)
	c, err := flags.NewConsumer("t", "c", nsq.HandlerFunc(func(*nsq.Message) error {
		close(busy)
		<-release
		return nil
	}), 1, discard())
	if err != nil {
		t.Fatal(err)
	}
	c.limit = 50 * time.Millisecond
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	<-busy
	if err := StopAll(c); !errors.Is(err, ErrForced) || err.Error() != "stop topic t: "+ErrForced.Error() {
		t.Errorf("error %v", err)
	}
	if s, err := n.Channel("t", "c"); err != nil || s.InFlightCount != 1 {
		t.Errorf("channel is %+v, error %v", s, err)
	}
	close(release)
	n.AwaitChannel("t", "c", testnode.Drained)
	<-c.lib.StopChan
}
