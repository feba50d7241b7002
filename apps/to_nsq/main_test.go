package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"
	"go.uber.org/goleak"

	"nsq/internal/consume"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
	"nsq/internal/utility"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var date = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)

// execute runs to_nsq on the input to its end; the log is without the lines of the client.
func execute(ctx context.Context, in io.Reader, args ...string) (code int, logs string) {
	var out, stderr testutil.Buffer
	code = utility.Execute(ctx, newToNSQ().program(), append([]string{name, "--client-log-level=error"}, args...),
		utility.Streams{In: in, Out: &out, Err: &stderr})
	if out.String() != "" {
		panic("something is on stdout")
	}
	logs = date.ReplaceAllString(stderr.String(), "")
	return code, regexp.MustCompile(`(?m)^ERR .*\n`).ReplaceAllString(logs, "")
}

// messages reads the messages of the topic, sorted. There must be so many.
func messages(t *testing.T, n *testnode.Node, topic string, count int) []string {
	t.Helper()
	if total := n.MessageCount(topic); total != count {
		t.Errorf("%d messages in the topic, want %d", total, count)
	}
	return read(t, n, topic, count)
}

// read reads so many messages of the topic, and returns them sorted.
func read(t *testing.T, n *testnode.Node, topic string, count int) []string {
	t.Helper()
	got := make(chan string, 100)
	flags := consume.NewFlags("test")
	flags.NSQDs = []string{n.TCP}
	c, err := flags.NewConsumer(topic, "test", nsq.HandlerFunc(func(m *nsq.Message) error {
		got <- string(m.Body)
		return nil
	}), 1, utility.NewLog(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	var all []string
	deadline := time.After(testutil.Patience)
	for range count {
		select {
		case body := <-got:
			all = append(all, body)
		case <-deadline:
			t.Fatalf("only %q of %d messages came", all, count)
		}
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	slices.Sort(all)
	return all
}

// A wrong command line is told with the words of NSQ, in its order.
func TestRefusals(t *testing.T) {
	const well = "--topic=t --nsqd-tcp-address=a:1 "
	for args, want := range map[string]string{
		"":                                      "--topic required\n",
		"--topic=t$ --delimiter=xx":             "--topic is invalid\n",
		"--topic=t --delimiter=xx":              "--delimiter must be a single byte\n",
		"--topic=t":                             "--nsqd-tcp-address required\n",
		well + "--mode=x":                       "--mode must be all or failover\n",
		well + "--batch-size=0":                 "--batch-size should be positive\n",
		well + "--retries=-1":                   "--retries should not be negative\n",
		well + "x":                              "unknown arguments: [x]\n",
		well + "--producer-opt=read_timeout,1s": "failed to create nsq.Producer - HeartbeatInterval 30s must be less than ReadTimeout 1s\n",
	} {
		if code, logs := execute(t.Context(), strings.NewReader("x\n"), strings.Fields(args)...); code != 1 || logs != want {
			t.Errorf("%q: exit code %d, log %q, want %q", args, code, logs, want)
		}
	}
}

// Every message of the input arrives at every nsqd, the last one whole; addresses given twice count once.
func TestPublishes(t *testing.T) {
	one, two := testnode.StartNSQD(t), testnode.StartNSQD(t)
	code, logs := execute(t.Context(), strings.NewReader("a\n\nb\r\nlast"), "--topic=t",
		"--nsqd-tcp-address="+one.TCP, "--nsqd-tcp-address="+two.TCP, "--nsqd-tcp-address="+one.TCP)
	if code != 0 || logs != "" {
		t.Errorf("exit code %d, log %q", code, logs)
	}
	for _, n := range []*testnode.Node{one, two} {
		if got, want := messages(t, n, "t", 3), []string{"a", "b\r", "last"}; !slices.Equal(got, want) {
			t.Errorf("messages %q, want %q", got, want)
		}
	}
}

// Much input arrives complete and once, with a rate, too.
func TestMuchInput(t *testing.T) {
	n := testnode.StartNSQD(t)
	const count = 5000
	var in strings.Builder
	for i := range count {
		fmt.Fprintf(&in, "%d|", i)
	}
	code, logs := execute(t.Context(), strings.NewReader(in.String()), "--topic=t", "--delimiter=|", "--rate=1000000", "--nsqd-tcp-address="+n.TCP)
	if code != 0 || logs != "Throttling messages rate to max:1000000/second\n" {
		t.Errorf("exit code %d, log %q", code, logs)
	}
	if got := slices.Compact(messages(t, n, "t", count)); len(got) != count {
		t.Errorf("%d different messages", len(got))
	}
}

// Without input nobody is connected to, so that nothing can go wrong.
func TestNoInput(t *testing.T) {
	if code, logs := execute(t.Context(), strings.NewReader("\n\n"), "--topic=t", "--nsqd-tcp-address=127.0.0.1:1"); code != 0 || logs != "" {
		t.Errorf("exit code %d, log %q", code, logs)
	}
}

// A nsqd that is not there fails, with its error and the number of messages in the log.
func TestNobodyThere(t *testing.T) {
	for args, want := range map[string]string{
		"--mode=all":      "dial tcp 127.0.0.1:1: connect: connection refused\nERROR: 2 messages not published to 127.0.0.1:1\n",
		"--mode=failover": "dial tcp 127.0.0.1:1: connect: connection refused\nERROR: 2 messages not published\n",
	} {
		code, logs := execute(t.Context(), strings.NewReader("a\nb\n"), args, "--retries=1", "--topic=t", "--nsqd-tcp-address=127.0.0.1:1")
		if code != 1 || logs != want {
			t.Errorf("%s: exit code %d, log %q, want %q", args, code, logs, want)
		}
	}
}

// With failover the messages are at one nsqd or another, each once; the dead one costs nothing.
func TestFailover(t *testing.T) {
	n := testnode.StartNSQD(t)
	code, logs := execute(t.Context(), strings.NewReader("a\nb\nc\n"), "--mode=failover", "--batch-size=1", "--topic=t",
		"--nsqd-tcp-address=127.0.0.1:1", "--nsqd-tcp-address="+n.TCP)
	if code != 0 || logs != "" {
		t.Errorf("exit code %d, log %q", code, logs)
	}
	if got := messages(t, n, "t", 3); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("messages %q", got)
	}
}

// A message that the nsqd does not take is told of; the others arrive.
func TestTooLarge(t *testing.T) {
	n := testnode.StartNSQD(t)
	in := "a\nb\n" + strings.Repeat("x", 2<<20) + "\nc\n"
	code, logs := execute(t.Context(), strings.NewReader(in), "--topic=t", "--nsqd-tcp-address="+n.TCP)
	want := fmt.Sprintf("ERROR: message of 2097152 bytes not published to %s - E_BAD_MESSAGE PUB message too big 2097152 > 1048576\n"+
		"ERROR: 1 messages not published to %[1]s\n", n.TCP)
	if code != 1 || logs != want {
		t.Errorf("exit code %d, log %q, want %q", code, logs, want)
	}
	if got := messages(t, n, "t", 3); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("messages %q", got)
	}
}

// A nsqd that is started again in between gets everything.
func TestOutage(t *testing.T) {
	n := testnode.StartNSQD(t)
	r, w := io.Pipe()
	ended := make(chan int)
	go func() {
		code, logs := execute(t.Context(), r, "--topic=t", "--retries=9", "--nsqd-tcp-address="+n.TCP)
		if code != 0 || logs != "" {
			t.Errorf("exit code %d, log %q", code, logs)
		}
		ended <- code
	}()
	io.WriteString(w, "a\n")
	n.AwaitMessages("t", 1)
	n.Stop()
	io.WriteString(w, "b\n")
	n.Start()
	io.WriteString(w, "c\n")
	w.Close()
	<-ended
	if got := read(t, n, "t", 3); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("messages %q", got)
	}
}
