package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
	"nsq/internal/utility"
	"nsq/internal/utility/utilitytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, args ...string) *utilitytest.Running {
	return utilitytest.Start(t, newTail().program(), args...)
}

// linesOf are the lines that were printed, sorted.
func linesOf(r *utilitytest.Running) []string {
	lines := strings.Split(strings.TrimSuffix(r.Out.String(), "\n"), "\n")
	slices.Sort(lines)
	return lines
}

var date = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)

// A wrong command line is told with the words of NSQ, in its order.
func TestRefusals(t *testing.T) {
	n := testnode.StartNSQD(t)
	at := "--nsqd-tcp-address=" + n.TCP
	for _, test := range []struct {
		args string
		code int
		log  string
	}{
		{"", 1, "--nsqd-tcp-address or --lookupd-http-address required\n"},
		{"--nsqd-tcp-address=a:1 --lookupd-http-address=b:1", 1, "use --nsqd-tcp-address or --lookupd-http-address not both\n"},
		{at, 1, "--topic required\n"},
		{at + " --topic=t --max-attempts=3", 1, "--max-attempts requires --dead-letter-topic: nothing is discarded\n"},
		{at + " --topic=t$", 1, "Adding consumer for topic: t$\ninvalid topic name\n"},
		{at + " --topic=t --channel=c$", 1, "Adding consumer for topic: t\ninvalid channel name\n"},
		{at + " --topic=t --max-in-flight=-1 --n=5", 1, "Adding consumer for topic: t\ninvalid MaxInFlight ! -1 < 0\n"},
		{"--topic=t --nsqd-tcp-address=127.0.0.1:1 --client-log-level=error", 1,
			"Adding consumer for topic: t\ndial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"--topic=t --lookupd-http-address=localhost --client-log-level=error", 1, "Adding consumer for topic: t\nmissing port\n"},
		{at + " topic --n 5", 1, "unknown arguments: [topic --n 5]\n"},
	} {
		r := start(t, strings.Fields(test.args)...)
		r.Await(test.code)
		logs := date.ReplaceAllString(r.Log.String(), "")
		logs = regexp.MustCompile(`(?m)^(INF|WRN) .*\n`).ReplaceAllString(logs, "")
		if logs != test.log || r.Out.String() != "" {
			t.Errorf("%q: log %q, want %q; stdout %q", test.args, logs, test.log, r.Out.String())
		}
	}
	r := start(t, "--format=xml")
	r.Await(2)
	if !strings.HasPrefix(r.Log.String(), "invalid value \"xml\" for flag -format: want raw, hex or json\nUsage of nsq_tail:\n") {
		t.Errorf("log %q", r.Log.String())
	}
}

// The number of messages counts over all topics; what was printed is finished, and nothing else is.
func TestCount(t *testing.T) {
	n := testnode.StartNSQD(t)
	const total, shown = 20, 7
	for _, topic := range []string{"a", "b"} {
		n.Create(topic, "c")
		for i := range total / 2 {
			n.Publish(topic, fmt.Sprintf("%s%d", topic, i))
		}
	}
	r := start(t, "--topic=a", "--topic=b", "--channel=c", "--n=7", "--print-topic", "--nsqd-tcp-address="+n.TCP)
	r.Await(0)
	lines := linesOf(r)
	if len(lines) != shown || len(slices.Compact(lines)) != shown {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	// Whoever reads next gets all others, and none of those.
	r = start(t, "--topic=a", "--topic=b", "--channel=c", "--n=13", "--print-topic", "--nsqd-tcp-address="+n.TCP)
	r.Await(0)
	all := append(lines, linesOf(r)...)
	slices.Sort(all)
	var want []string
	for _, topic := range []string{"a", "b"} {
		for i := range total / 2 {
			want = append(want, fmt.Sprintf("%s | %s%d", topic, topic, i))
		}
	}
	if !slices.Equal(all, want) {
		t.Errorf("lines of both runs %q, want %q", all, want)
	}
	for _, topic := range []string{"a", "b"} {
		n.AwaitChannel(topic, "c", testnode.Drained)
	}
}

// Without a number it prints until it is told to stop; its own channel is gone then.
func TestUntilStopped(t *testing.T) {
	lookupd := testnode.StartLookupd(t)
	n := testnode.StartNSQD(t, lookupd)
	n.Create("t", "")
	lookupd.AwaitProducer("t")
	r := start(t, "--topic=t", "--lookupd-http-address="+lookupd.HTTP)
	for i := range 3 {
		n.Publish("t", fmt.Sprint("m", i))
		r.Out.Await(t, fmt.Sprint("m", i, "\n"))
	}
	channel := regexp.MustCompile(`\[t/(tail\d{6}#ephemeral)\]`).FindStringSubmatch(r.Log.String())
	if channel == nil {
		t.Fatalf("no channel in log %q", r.Log.String())
	}
	n.AwaitChannel("t", channel[1], func(c api.ChannelStats) bool { return c.ClientCount == 1 })
	r.End(0)
	if got := linesOf(r); !slices.Equal(got, []string{"m0", "m1", "m2"}) {
		t.Errorf("lines %q", got)
	}
}

// The formats, with and without the topic.
func TestFormats(t *testing.T) {
	n := testnode.StartNSQD(t)
	const body = "<a\xffb>"
	for args, want := range map[string]string{
		"":                            body + "\n",
		"--format=raw":                body + "\n",
		"--print-topic":               "t | " + body + "\n",
		"--format=hex":                "3c61ff623e\n",
		"--format=hex --print-topic":  "t | 3c61ff623e\n",
		"--format=json":               `{"topic":"t","id":"ID","timestamp":0,"attempts":1,"nsqd":"` + n.TCP + `","body_base64":"PGH/Yj4="}` + "\n",
		"--format=json --print-topic": `{"topic":"t","id":"ID","timestamp":0,"attempts":1,"nsqd":"` + n.TCP + `","body_base64":"PGH/Yj4="}` + "\n",
	} {
		n.Create("t", "c")
		n.Publish("t", body)
		r := start(t, append(strings.Fields(args), "--topic=t", "--channel=c", "--n=1", "--nsqd-tcp-address="+n.TCP)...)
		r.Await(0)
		got := regexp.MustCompile(`"id":"[0-9a-f]{16}","timestamp":[0-9]{19}`).ReplaceAllString(r.Out.String(), `"id":"ID","timestamp":0`)
		if got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	n.Publish("t", `"<ä>"`)
	r := start(t, "--format=json", "--topic=t", "--channel=c", "--n=1", "--nsqd-tcp-address="+n.TCP)
	r.Await(0)
	var m struct{ Body string }
	if err := json.Unmarshal([]byte(r.Out.String()), &m); err != nil || m.Body != `"<ä>"` {
		t.Errorf("body %q, error %v", m.Body, err)
	}
}

// full is an output that takes one line.
type full struct{ lines int }

func (f *full) Write(p []byte) (int, error) {
	if f.lines++; f.lines > 1 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// When printing fails the program ends with an error, and what was not printed is not finished.
func TestWriteFails(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Create("t", "c")
	n.Publish("t", "a", "b", "c")
	var logs testutil.Buffer
	code := utility.Execute(t.Context(), newTail().program(),
		[]string{name, "--topic=t", "--channel=c", "--nsqd-tcp-address=" + n.TCP}, utility.Streams{Out: &full{}, Err: &logs})
	if code != 1 || !strings.HasSuffix(logs.String(), " ERROR: failed to write to os.Stdout - no space left\n") {
		t.Errorf("exit code %d, log %q", code, logs.String())
	}
	if c := n.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.InFlightCount == 0 }); c.Depth != 2 {
		t.Errorf("depth %d, want 2", c.Depth)
	}
}
