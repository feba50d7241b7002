package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
	"nsq/internal/utility/utilitytest"
	"nsq/internal/version"
)

// asProgram makes the test binary the program itself, for tests that need a process.
const asProgram = "TEST_AS_NSQ_TO_HTTP"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m,
		// After a lost connection go-nsq sleeps for lookupd_poll_interval, whatever happens.
		goleak.IgnoreAnyFunction("github.com/nsqio/go-nsq.(*Consumer).onConnClose.func1"),
		// A consumer that was never connected, of the refusals, cannot be stopped without handlers.
		goleak.IgnoreTopFunction("github.com/nsqio/go-nsq.(*Consumer).rdyLoop"))
}

// start runs it for topic t, with requeued messages that come again at once.
func start(t *testing.T, source *testnode.Node, args ...string) *utilitytest.Running {
	t.Helper()
	source.Create("t", name)
	return execute(t, append([]string{"--topic=t", "--nsqd-tcp-address=" + source.TCP, "--consumer-opt=default_requeue_delay,10ms",
		"--consumer-opt=max_backoff_duration,20ms", "--consumer-opt=backoff_multiplier,1ms"}, args...)...)
}

func execute(t *testing.T, args ...string) *utilitytest.Running {
	return utilitytest.Start(t, newSender().program(), args...)
}

var (
	date  = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)
	chat  = regexp.MustCompile(`(?m)^(INF|WRN) .*\n`)
	plain = func(logs string) string { return chat.ReplaceAllString(date.ReplaceAllString(logs, ""), "") }
)

// A wrong command line is told with the words of NSQ, in its order.
func TestRefusals(t *testing.T) {
	const (
		at   = " --nsqd-tcp-address=127.0.0.1:1"
		good = "--topic=t --post=http://127.0.0.1:1/" + at
	)
	for _, test := range []struct{ args, log string }{
		{"--header=a=b", "--header value format should be 'key=value'"},
		{"--header=a:", "--header value format should be 'key=value'"},
		{"--header=:b", "--header value format should be 'key=value'"},
		{"--header=(:b", "--header value format should be 'key=value'"},
		{"", "--topic and --channel are required"},
		{"--topic=t --channel= --content-type=x", "--topic and --channel are required"},
		{"--topic=t --content-type=x", "--content-type only used with --post"},
		{"--topic=t --content-type= --post=x", "--content-type requires a value when used"},
		{"--topic=t", "--nsqd-tcp-address or --lookupd-http-address required"},
		{"--topic=t --lookupd-http-address=b:1" + at, "use --nsqd-tcp-address or --lookupd-http-address not both"},
		{"--topic=t" + at, "--get or --post required"},
		{"--topic=t --get=x --post=y" + at, "use --get or --post not both"},
		{"--topic=t --sample=2 --get=http://x/" + at, "invalid GET address - must be a printf string"},
		{"--topic=t --get=http://x/%s/%s" + at, "invalid GET address - must be a printf string"},
		{"--topic=t --get=x/%s" + at, `invalid --get address "x/%s" - want http://HOST or https://HOST`},
		{"--topic=t --post=http://x/%zz" + at, `invalid --post address "http://x/%zz" - invalid URL escape "%zz"`},
		{good + " --sample=1.5", "ERROR: --sample must be between 0.0 and 1.0"},
		{good + " --sample=-0.1", "ERROR: --sample must be between 0.0 and 1.0"},
		{good + " --sample=NaN", "ERROR: --sample must be between 0.0 and 1.0"},
		{good + " --dead-letter-topic=t", "--dead-letter-topic must not be the --topic"},
		{good + " --max-attempts=3", "--max-attempts requires --dead-letter-topic: nothing is discarded"},
		{good + " --topic=t$", "invalid topic name"},
		{good + " --channel=c$", "invalid channel name"},
		{good + " --max-in-flight=-1", "invalid MaxInFlight ! -1 < 0"},
		{good + " --n=0", "no handlers"},
		{good + " --n=-1", "no handlers"},
		{good + " --client-log-level=error", "dial tcp 127.0.0.1:1: connect: connection refused"},
		{good + " more", "unknown arguments: [more]"},
	} {
		r := execute(t, strings.Fields(test.args)...)
		if code, said := r.Code(), r.Out.String()+r.Log.String(); code != 1 || plain(said) != test.log+"\n" {
			t.Errorf("%q: code %d, log %q, want %q", test.args, code, said, test.log)
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
		{"--version --header=x", 0, name + " v" + version.Version + "\n"},
		{"--help", 0, "Usage of nsq_to_http:\n  -channel string\n"},
		{"--dead-letter-status=200", 2, `invalid value "200" for flag -dead-letter-status: want statuses from 300 to 599, like 400,413-415` + "\nUsage"},
		{"--consumer-opt=bogus,1", 2, `invalid value "bogus,1" for flag -consumer-opt: invalid option bogus` + "\nUsage"},
		{"--round-robin", 2, "flag provided but not defined: -round-robin\nUsage"},
	} {
		r := execute(t, strings.Fields(test.args)...)
		if code, said := r.Code(), r.Out.String()+r.Log.String(); code != test.code || !strings.HasPrefix(said, test.out) {
			t.Errorf("%q: code %d, want %d; output %q, want %q", test.args, code, test.code, said, test.out)
		}
	}
}

// SIGTERM and SIGINT let the request that is made end: its message is finished, and the exit code is 0.
// SIGHUP kills, and the message stays.
func TestSignals(t *testing.T) {
	for _, test := range []struct {
		signal syscall.Signal
		state  string
		depth  int64
	}{
		{syscall.SIGTERM, "exit status 0", 0},
		{syscall.SIGINT, "exit status 0", 0},
		{syscall.SIGHUP, "signal: hangup", 1},
	} {
		t.Run(test.signal.String(), func(t *testing.T) {
			t.Parallel()
			source, target := testnode.StartNSQD(t), newSite(t)
			hold := make(chan struct{})
			target.answer = func(int, string) int { <-hold; return 200 }
			source.Create("t", "c")
			source.Publish("t", "m")
			cmd := exec.Command(os.Args[0], "--topic=t", "--channel=c", "--nsqd-tcp-address="+source.TCP, "--post="+target.URL)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			var logs testutil.Buffer
			cmd.Stderr = &logs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			target.await(1)
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Error(err)
			}
			if test.depth == 0 {
				logs.Await(t, "stopping...")
				close(hold)
				cmd.Wait()
			} else {
				cmd.Wait() // what it says is in the state
				close(hold)
			}
			if got := cmd.ProcessState.String(); got != test.state {
				t.Errorf("%s, want %s; log:\n%s", got, test.state, logs.String())
			}
			c := source.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.ClientCount == 0 && c.InFlightCount == 0 })
			if int64(c.Depth) != test.depth {
				t.Errorf("depth %d, want %d", c.Depth, test.depth)
			}
		})
	}
}
