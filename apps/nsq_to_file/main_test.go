package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/testutil"
	"nsq/internal/utility"
)

// programs has the program itself, for what only a process can show.
var programs *testutil.Programs

func TestMain(m *testing.M) {
	var err error
	if programs, err = testutil.Build(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := programs.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "remove programs:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

var plainLine = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)

// Each wrong command line is refused with its text, the earlier ones first; what could never work does
// not begin.
func TestRefusals(t *testing.T) {
	const nsqd, lookupd, topic = "--nsqd-tcp-address=127.0.0.1:1", "--lookupd-http-address=127.0.0.1:1", "--topic=t"
	for _, test := range []struct {
		args string
		code int
		want string // the last line of the log, without its time
	}{
		{"--log-level=x --version a b", 1, "unknown arguments: [a b]"},
		{"--log-level=warning --version --channel=", 1, "--log-level is invalid"},
		{"--version --channel=", 0, ""},
		{"--channel= --http-client-connect-timeout=0", 1, "--channel is required"},
		{"--http-client-connect-timeout=0 --http-client-request-timeout=0", 1, "--http-client-connect-timeout should be positive"},
		{"--http-client-request-timeout=0", 1, "--http-client-request-timeout should be positive"},
		{"--gzip-level=0", 1, "--nsqd-tcp-address or --lookupd-http-address required."},
		{"--gzip-level=0 " + nsqd + " " + lookupd, 1, "use --nsqd-tcp-address or --lookupd-http-address not both"},
		{"--gzip-level=0 " + nsqd, 1, "invalid --gzip-level value (0), should be 1-9"},
		{"--gzip-level=10 " + nsqd, 1, "invalid --gzip-level value (10), should be 1-9"},
		{"--sync-interval=0 " + nsqd, 1, "--topic or --topic-pattern required"},
		{"--sync-interval=0 --topic-pattern=x " + nsqd, 1, "--lookupd-http-address must be specified when no --topic specified"},
		{"--gzip --zstd --zstd-level=0 " + topic + " " + nsqd, 1, "use --gzip or --zstd not both"},
		{"--zstd-level=23 " + topic + " " + nsqd, 1, "invalid --zstd-level value (23), should be 1-22"},
		{"--channel=c$ " + topic + " " + nsqd, 1, "--channel is invalid"},
		{"--sync-interval=0 " + topic + " " + nsqd, 1, "--sync-interval should be positive"},
		{"--topic-refresh=0 --topic-pattern=x " + lookupd, 1, "--topic-refresh should be positive"},
		{"--topic-pattern=( " + topic + " " + nsqd, 1, "--topic-pattern is invalid: error parsing regexp: missing closing ): `(`"},
		{"--gzip --filename-format=x " + topic + " " + nsqd, 1,
			"missing <REV> in --filename-format when gzip, rotation, or work dir enabled"},
		{"--work-dir=/w --output-dir=/o --filename-format=x " + topic + " " + nsqd, 1,
			"missing <REV> in --filename-format when gzip, rotation, or work dir enabled"},
		{"--max-attempts=3 " + topic + " " + nsqd, 1, "--max-attempts requires --dead-letter-topic: nothing is discarded"},
		{"--topic=t$ " + nsqd, 1, "ERROR: couldn't create logger for new topic t$: invalid topic name"},
		{"--max-in-flight=-1 " + topic + " " + nsqd, 1,
			"ERROR: couldn't create logger for new topic t: invalid MaxInFlight ! -1 < 0"},
		{"--lookupd-http-address=host " + topic, 1, "ERROR: couldn't create logger for new topic t: missing port"},
	} {
		var out, log bytes.Buffer
		code := utility.Execute(t.Context(), newToFile().program(), append([]string{name}, strings.Fields(test.args)...),
			utility.Streams{Out: &out, Err: &log})
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		got := plainLine.ReplaceAllString(lines[len(lines)-1], "")
		if code != test.code || got != test.want {
			t.Errorf("%s: code %d, %q; want %d, %q", test.args, code, got, test.code, test.want)
		}
		if (code == 0) != (out.String() == "nsq_to_file v1.4.0\n") {
			t.Errorf("%s: stdout is %q", test.args, out.String())
		}
	}
}

// The flags of NSQ are there, with its defaults.
func TestDefaults(t *testing.T) {
	var log bytes.Buffer
	utility.Execute(t.Context(), newToFile().program(), []string{name, "--help"}, utility.Streams{Err: &log})
	help := log.String()
	for flag, want := range map[string]string{
		"channel string": `"nsq_to_file"`, "datetime-format string": `"%Y-%m-%d_%H"`,
		"filename-format string":               `"<TOPIC>.<HOST><REV>.<DATETIME>.log"`,
		"gzip-level int":                       "6",
		"http-client-connect-timeout duration": "2s", "http-client-request-timeout duration": "5s",
		"log-level string": `"info"`, "log-prefix string": `"[nsq_to_file] "`, "max-in-flight int": "200",
		"output-dir string": `"/tmp"`, "sync-interval duration": "30s", "topic-refresh duration": "1m0s",
		"consumer-opt value": "", "gzip": "", "host-identifier string": "", "lookupd-http-address value": "",
		"nsqd-tcp-address value": "", "rotate-interval duration": "", "rotate-size int": "", "skip-empty-files": "",
		"topic value": "", "topic-pattern string": "", "work-dir string": "", "version": "",
	} {
		_, after, ok := strings.Cut(help, "\n  -"+flag+"\n")
		line, _, _ := strings.Cut(after, "\n")
		if _, value, _ := strings.Cut(line, "(default "); !ok || strings.TrimSuffix(value, ")") != want {
			t.Errorf("-%s: found %v, %q, want default %q", flag, ok, line, want)
		}
	}
	if !strings.HasPrefix(help, "Usage of nsq_to_file:\n") {
		t.Errorf("help begins with %.30q", help)
	}
}

// <HOST> is the short host name, or what the identifier makes of it.
func TestHostIdentifier(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	short, _, _ := strings.Cut(hostname, ".")
	for identifier, want := range map[string]string{
		"": short, "x": "x", "a-<SHORT_HOST>-b": "a-" + short + "-b", "<HOSTNAME>": hostname,
	} {
		f := newToFile()
		f.host = identifier
		if c, err := f.archiveConfig(); err != nil || c.Naming.Host != want {
			t.Errorf("%q: %q, %v; want %q", identifier, c.Naming.Host, err, want)
		}
	}
}

// Messages are touched often enough for the timeout that the options ask for.
func TestTouchInterval(t *testing.T) {
	for option, want := range map[string]time.Duration{"msg_timeout,0": touchAtLeast, "msg_timeout,1s": time.Second / 4, "msg_timeout,1h": touchAtLeast} {
		f := newToFile()
		if err := f.consume.Options.Set(option); err != nil {
			t.Fatal(err)
		}
		if got := f.touchInterval(); got != want {
			t.Errorf("%s: %v, want %v", option, got, want)
		}
	}
}
