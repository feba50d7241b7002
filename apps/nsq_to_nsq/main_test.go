package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nsqio/go-nsq"
	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/consume"
	"nsq/internal/destination"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
	"nsq/internal/touch"
	"nsq/internal/utility"
	"nsq/internal/utility/utilitytest"
	"nsq/internal/version"
)

// asProgram makes the test binary the program itself, for tests that need a process.
const asProgram = "TEST_AS_NSQ_TO_NSQ"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	// After a lost connection go-nsq sleeps for lookupd_poll_interval, whatever happens.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/nsqio/go-nsq.(*Consumer).onConnClose.func1"))
}

// start runs it for topic t, with requeued messages that come again at once.
func start(t *testing.T, source *testnode.Node, args ...string) *utilitytest.Running {
	t.Helper()
	source.Create("t", name)
	return execute(t, append([]string{"--topic=t", "--nsqd-tcp-address=" + source.TCP, "--consumer-opt=default_requeue_delay,10ms",
		"--consumer-opt=max_backoff_duration,20ms", "--consumer-opt=backoff_multiplier,1ms"}, args...)...)
}

func execute(t *testing.T, args ...string) *utilitytest.Running {
	return utilitytest.Start(t, newCopier().program(), args...)
}

// reader enters what it reads from channel c of a topic into a ledger.
type reader struct {
	ledger *testutil.Ledger
	name   string

	mu     sync.Mutex
	bodies []string
}

func (r *reader) HandleMessage(m *nsq.Message) error {
	r.ledger.Finished(r.name, string(m.Body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(m.Body))
	return nil
}

// read reads from a nsqd until it has got all that was acknowledged, or so many messages.
func (r *reader) read(t *testing.T, n *testnode.Node, topic string, messages int) {
	t.Helper()
	consumer, err := nsq.NewConsumer(topic, "c", nsq.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLoggerLevel(nsq.LogLevelMax)
	consumer.ChangeMaxInFlight(100)
	consumer.AddHandler(r)
	if err := consumer.ConnectToNSQD(n.TCP); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if left := r.ledger.Left(r.name); left > 0 || len(r.bodies) < messages {
			return fmt.Errorf("%d messages, want %d; %d are missing", len(r.bodies), messages, left)
		}
		return nil
	})
	n.AwaitChannel(topic, "c", testnode.Drained)
	consumer.Stop()
	<-consumer.StopChan
}

// got reads the messages that a nsqd has, at least so many, and sorts them.
func got(t *testing.T, n *testnode.Node, topic string, messages int) []string {
	t.Helper()
	r := &reader{ledger: testutil.NewLedger(""), name: ""}
	r.read(t, n, topic, messages)
	slices.Sort(r.bodies)
	return r.bodies
}

func names(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

var (
	date = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)
	chat = regexp.MustCompile(`(?m)^(INF|WRN) .*\n`)
)

// A wrong command line is told with the words of NSQ, in its order.
func TestRefusals(t *testing.T) {
	const (
		at   = " --nsqd-tcp-address=127.0.0.1:1"
		good = "--topic=t --destination-nsqd-tcp-address=127.0.0.1:2" + at
	)
	for _, test := range []struct{ args, log string }{
		{"", "--topic and --channel are required"},
		{"--topic=t$ --channel=", "--topic and --channel are required"},
		{"--topic=t --topic=t$ --destination-topic=$", "--topic is invalid"},
		{"--topic=t --destination-topic=$ --channel=$", "--destination-topic is invalid"},
		{"--topic=t --channel=$", "--channel is invalid"},
		{"--topic=t", "--nsqd-tcp-address or --lookupd-http-address required"},
		{"--topic=t --lookupd-http-address=b:1" + at, "use --nsqd-tcp-address or --lookupd-http-address not both"},
		{"--topic=t" + at, "--destination-nsqd-tcp-address required"},
		{good + " --destination-nsqd-tcp-address=127.0.0.1:1", "messages of topic t would go from 127.0.0.1:1 to itself forever"},
		{good + " --batch-size=0", "--batch-size should be positive"},
		{good + " --dead-letter-topic=t", "--dead-letter-topic must not be a --topic"},
		{good + " --max-attempts=3", "--max-attempts requires --dead-letter-topic: nothing is discarded"},
		{good + " --producer-opt=read_timeout,1s", "failed creating producer HeartbeatInterval 30s must be less than ReadTimeout 1s"},
		{good + " --consumer-opt=read_timeout,1s", "HeartbeatInterval 30s must be less than ReadTimeout 1s"},
		{good + " --max-in-flight=-1", "invalid MaxInFlight ! -1 < 0"},
		{good + " --client-log-level=error", "dial tcp 127.0.0.1:1: connect: connection refused"},
		{good + " more", "unknown arguments: [more]"},
	} {
		r := execute(t, strings.Fields(test.args)...)
		logs := ""
		if r.Code() == 1 {
			logs = chat.ReplaceAllString(date.ReplaceAllString(r.Out.String()+r.Log.String(), ""), "")
		}
		if logs != test.log+"\n" {
			t.Errorf("%q: log %q, want code 1 and %q", test.args, r.Log.String(), test.log)
		}
	}
}

// What the flags cannot be is told with the usage; --version comes before all that is wrong otherwise.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		out  string // begins with
	}{
		{"--version", 0, name + " v" + version.Version + "\n"},
		{"-h", 0, "Usage of nsq_to_nsq:\n  -batch-size int\n"},
		{"--producer-opt=bogus,1", 2, `invalid value "bogus,1" for flag -producer-opt: invalid option bogus` + "\nUsage"},
		{"--max-backoff-duration=1s", 2, "flag provided but not defined: -max-backoff-duration\nUsage"},
	} {
		r := execute(t, strings.Fields(test.args)...)
		if code, said := r.Code(), r.Out.String()+r.Log.String(); code != test.code || !strings.HasPrefix(said, test.out) {
			t.Errorf("%q: code %d, want %d; output %q, want %q", test.args, code, test.code, said, test.out)
		}
	}
}

// The messages of all topics arrive under their topic, or all under one, and are finished at the source.
func TestCopies(t *testing.T) {
	for _, one := range []string{"", "out"} {
		source, target := testnode.StartNSQD(t), testnode.StartNSQD(t)
		source.Create("u", name)
		messages := names("m", 40)
		r := start(t, source, "--topic=u", "--destination-topic="+one, "--destination-nsqd-tcp-address="+target.TCP)
		topics := map[string][]string{"t": messages[:30], "u": messages[30:]}
		want := topics
		if one != "" {
			want = map[string][]string{one: messages}
		}
		for topic := range want {
			target.Create(topic, "c")
		}
		for topic, messages := range topics {
			source.Publish(topic, messages...)
		}
		for topic := range topics {
			source.AwaitChannel(topic, name, testnode.Drained)
		}
		r.End(0)
		for topic, messages := range want {
			if got := got(t, target, topic, len(messages)); !slices.Equal(got, messages) {
				t.Errorf("topic %s got %q, want %q", topic, got, messages)
			}
		}
	}
}

// The filter at work: what it keeps back is finished, and what it cannot judge as well or requeued.
func TestFilterAtWork(t *testing.T) {
	source, target := testnode.StartNSQD(t), testnode.StartNSQD(t)
	target.Create("t", "c")
	r := start(t, source, "--require-json-field=kind", "--require-json-value=good", "--whitelist-json-field=id",
		"--destination-nsqd-tcp-address="+target.TCP)
	source.Publish("t", `{"id":9007199254740993,"kind":"good","x":[1]}`, `{"id":2,"kind":"bad"}`, "no\njson", `{"id":3}`)
	c := source.AwaitChannel("t", name, func(c api.ChannelStats) bool {
		return c.RequeueCount > 5 && c.Depth+c.DeferredCount+int64(c.InFlightCount) == 1
	})
	r.End(0)
	if got := got(t, target, "t", 1); !slices.Equal(got, []string{`{"id":9007199254740993}`}) || c.MessageCount != 4 {
		t.Errorf("got %q, channel %+v", got, c)
	}
	for _, text := range []string{
		` ERROR: Unable to decode json: "no\njson"` + "\n", " ERROR: missing field to check required value\n", " Handler returned error (backoff) for msg ",
	} {
		if !strings.Contains(r.Log.String(), text) {
			t.Errorf("%q is not in the log", text)
		}
	}
}

// With a dead-letter topic nothing that the filter cannot judge is lost or comes again.
func TestFilterWithDeadLetters(t *testing.T) {
	source, target := testnode.StartNSQD(t), testnode.StartNSQD(t)
	source.Create("dead", "c")
	r := start(t, source, "--require-json-field=kind", "--require-json-value=good", "--dead-letter-topic=dead",
		"--destination-nsqd-tcp-address="+target.TCP)
	source.Publish("t", `{"id":2,"kind":"bad"}`, "no json", `{"id":3}`)
	c := source.AwaitChannel("t", name, func(c api.ChannelStats) bool { return testnode.Drained(c) && c.MessageCount == 3 })
	r.End(0)
	if got := got(t, source, "dead", 2); !slices.Equal(got, []string{"no json", `{"id":3}`}) || c.RequeueCount != 0 {
		t.Errorf("dead letters %q, %d requeued", got, c.RequeueCount)
	}
}

// Nothing is lost when the only destination goes away and comes back, many times.
func TestDestinationAway(t *testing.T) {
	t.Parallel()
	const rounds, batch = 4, 50
	source, target := testnode.StartNSQD(t), testnode.StartNSQD(t)
	target.Create("t", "c")
	ledger := testutil.NewLedger("target")
	r := start(t, source, "--destination-nsqd-tcp-address="+target.TCP)
	for round := range rounds {
		messages := names(fmt.Sprint(round, "-"), batch)
		ledger.Sending(messages...)
		source.Publish("t", messages[:batch/2]...) // some of them are on their way when it goes
		target.Stop()
		source.Publish("t", messages[batch/2:]...)
		ledger.Acknowledged(messages...)
		source.AwaitChannel("t", name, func(c api.ChannelStats) bool { return int(c.RequeueCount) > 10*(round+1) })
		target.Start()
		source.AwaitChannel("t", name, testnode.Drained)
	}
	(&reader{ledger: ledger, name: "target"}).read(t, target, "t", 0)
	r.End(0)
	if b := ledger.Balance("target"); len(b.Lost)+len(b.Unexpected) > 0 {
		t.Error(b)
	}
}

// With a second destination messages arrive at once while the first is away, without being requeued.
func TestOneOfTwoAway(t *testing.T) {
	t.Parallel()
	source, first, second := testnode.StartNSQD(t), testnode.StartNSQD(t), testnode.StartNSQD(t)
	second.Create("t", "c")
	first.Stop()
	r := start(t, source, "--destination-nsqd-tcp-address="+first.TCP, "--destination-nsqd-tcp-address="+second.TCP)
	messages := names("m", 50)
	source.Publish("t", messages...)
	c := source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if got := got(t, second, "t", len(messages)); !slices.Equal(got, messages) || c.RequeueCount != 0 {
		t.Errorf("%d requeued, got %q", c.RequeueCount, got)
	}
}

// A source that goes away and comes back is read again, and nothing is lost.
func TestSourceAway(t *testing.T) {
	t.Parallel()
	source, target := testnode.StartNSQD(t), testnode.StartNSQD(t)
	target.Create("t", "c")
	r := start(t, source, "--destination-nsqd-tcp-address="+target.TCP, "--consumer-opt=lookupd_poll_interval,50ms")
	ledger := testutil.NewLedger("target")
	messages := names("m", 40)
	ledger.Sending(messages...)
	source.Publish("t", messages[:20]...)
	source.Stop()
	source.Start()
	source.Publish("t", messages[20:]...)
	ledger.Acknowledged(messages...)
	(&reader{ledger: ledger, name: "target"}).read(t, target, "t", 0)
	source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if b := ledger.Balance("target"); len(b.Lost)+len(b.Unexpected) > 0 {
		t.Error(b)
	}
}

// What the destination refuses is set aside and finished, requeued if there is no place for it, and
// requeued as well if that fails.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		aside    error
		answer   string
		tellsWhy bool
	}{
		{nil, "FIN", false},
		{consume.ErrNoDeadLetters, "REQ", false},
		{errors.New("nsqd is gone"), "REQ", true},
	} {
		n := &node{err: nsq.ErrProtocol{Reason: "E_BAD_MESSAGE PUB message too big 2 > 1"}}
		b := newBench(t, destination.HostPool, 5, n)
		keeper := touch.New(touch.Interval(0))
		s := newSource("t", new(filter), b.relay, keeper, 1, utility.NewLog(&b.logs))
		s.setAside = func(*nsq.Message) error { return test.aside }
		answers := &answers{given: make(chan string, 1)}
		for range 3 { // more than there are slots
			m := nsq.NewMessage(nsq.MessageID{}, []byte("m"))
			m.Delegate = answers
			if err := s.HandleMessage(m); err != nil || !m.IsAutoResponseDisabled() {
				t.Errorf("error %v", err)
			}
			if got := <-answers.given; got != test.answer {
				t.Errorf("%v: answer %s, want %s", test.aside, got, test.answer)
			}
		}
		s.slots <- struct{}{} // the last one is free again
		if n := keeper.Held(); n != 0 {
			t.Errorf("%v: %d messages are still held", test.aside, n)
		}
		b.stop()
		keeper.Stop()
		if tells := strings.Contains(b.logs.String(), "nsqd is gone"); tells != test.tellsWhy {
			t.Errorf("%v: log %s", test.aside, b.logs.String())
		}
	}
}

// answers are what messages are answered with.
type answers struct {
	given   chan string
	touches atomic.Int32
}

func (a *answers) OnFinish(*nsq.Message) { a.given <- "FIN" }
func (a *answers) OnTouch(*nsq.Message)  { a.touches.Add(1) }
func (a *answers) OnRequeue(_ *nsq.Message, delay time.Duration, backoff bool) {
	if delay != -1 || !backoff {
		a.given <- "REQ without backoff"
		return
	}
	a.given <- "REQ"
}

// A message that the destination has not answered for is touched, and finished only when it has.
func TestSlowDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{hold: make(chan struct{})}
		b := newBench(t, destination.HostPool, 5, n)
		defer b.stop()
		keeper := touch.New(time.Second)
		defer keeper.Stop()
		s := newSource("t", new(filter), b.relay, keeper, 1, utility.NewLog(&b.logs))
		answers := &answers{given: make(chan string, 1)}
		m := nsq.NewMessage(nsq.MessageID{}, []byte("m"))
		m.Delegate = answers
		if err := s.HandleMessage(m); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if touches := answers.touches.Load(); touches < 50 || len(answers.given) > 0 {
			t.Errorf("%d touches, %d answers", touches, len(answers.given))
		}
		n.hold <- struct{}{}
		if got := <-answers.given; got != "FIN" {
			t.Errorf("answer %s", got)
		}
	})
}

// A mode that there is not is round-robin, and is warned of.
func TestUnknownMode(t *testing.T) {
	source, first, second := testnode.StartNSQD(t), testnode.StartNSQD(t), testnode.StartNSQD(t)
	for _, n := range []*testnode.Node{first, second} {
		n.Create("t", "c")
	}
	r := start(t, source, "--mode=any", "--destination-nsqd-tcp-address="+first.TCP, "--destination-nsqd-tcp-address="+second.TCP)
	source.Publish("t", "m")
	source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if got := second.MessageCount("t"); got != 1 {
		t.Errorf("the second got %d messages, want the first message", got)
	}
	if !strings.Contains(r.Log.String(), `WARNING: --mode must be one of ["hostpool" "round-robin" "epsilon-greedy"], is "any", round-robin is used`) {
		t.Errorf("log %s", r.Log.String())
	}
}

// SIGTERM waits for what the destination has not confirmed yet, and ends with code 0; what could not be
// published stays at the source.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	source, target := testnode.StartNSQD(t), testnode.StartNSQD(t)
	target.Create("t", "c")
	source.Create("t", "c")
	cmd := exec.Command(os.Args[0], "--topic=t", "--channel=c", "--nsqd-tcp-address="+source.TCP, "--destination-nsqd-tcp-address="+target.TCP)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var logs testutil.Buffer
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	messages := names("m", 100)
	source.Publish("t", messages[:60]...)
	testutil.Eventually(t, func() error {
		if target.MessageCount("t") == 0 {
			return errors.New("no message has arrived")
		}
		return nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	source.Publish("t", messages[60:]...)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v; log:\n%s", err, logs.String())
	}
	c := source.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.ClientCount == 0 })
	if arrived := target.MessageCount("t"); c.InFlightCount != 0 || arrived+int(c.Depth) != len(messages) || c.RequeueCount != 0 {
		t.Errorf("%d of %d messages have arrived, channel %+v", arrived, len(messages), c)
	}
}
