package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
	"nsq/internal/utility"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// execute runs nsq_stat to its end.
func execute(ctx context.Context, args ...string) (code int, out, logs string) {
	var stdout, stderr testutil.Buffer
	code = utility.Execute(ctx, newStat().program(), append([]string{name}, args...), utility.Streams{Out: &stdout, Err: &stderr})
	return code, stdout.String(), date.ReplaceAllString(stderr.String(), "")
}

var date = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)

// A wrong command line is told with the words of NSQ, in its order.
func TestRefusals(t *testing.T) {
	const named = "--topic=t --channel=c "
	for _, test := range []struct {
		args string
		code int
		log  string
	}{
		{"", 1, "--topic and --channel are required\n"},
		{"--topic=t", 1, "--topic and --channel are required\n"},
		{named + "--interval=0", 1, "--interval should be positive\n"},
		{named + "--http-client-connect-timeout=0", 1, "--http-client-connect-timeout should be positive\n"},
		{named + "--http-client-request-timeout=-1s", 1, "--http-client-request-timeout should be positive\n"},
		{named + "--count=0", 1, "--count should be positive\n"},
		{named, 1, "--nsqd-http-address or --lookupd-http-address required\n"},
		{named + "--nsqd-http-address=a:1 --lookupd-http-address=b:1", 1, "use --nsqd-http-address or --lookupd-http-address not both\n"},
		{named + "--nsqd-http-address=http://a:1", 1, "--nsqd-http-address error - address should not contain scheme\n"},
		{named + "--lookupd-http-address=a:1 --lookupd-http-address=https://a:1", 1, "--lookupd-http-address error - address should not contain scheme\n"},
		{named + "--nsqd-http-address=127.0.0.1:1", 1, "ERROR: failed to get topic producers - failed to query any nsqd: " +
			"Get \"http://127.0.0.1:1/stats?format=json&topic=t&include_clients=false\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{named + "--lookupd-http-address=127.0.0.1:1", 1, "ERROR: failed to get topic producers - failed to query any nsqlookupd: " +
			"Get \"http://127.0.0.1:1/lookup?topic=t\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
	} {
		code, out, logs := execute(t.Context(), strings.Fields(test.args)...)
		if code != test.code || logs != test.log || out != "" {
			t.Errorf("%q: exit code %d, log %q, want %d and %q; stdout %q", test.args, code, logs, test.code, test.log, out)
		}
	}
	code, _, logs := execute(t.Context(), "--count=a")
	if want := "invalid value \"a\" for flag -count: strconv.ParseInt: parsing \"a\": invalid syntax\nUsage of nsq_stat:\n"; code != 2 || !strings.HasPrefix(logs, want) {
		t.Errorf("exit code %d, log %q", code, logs)
	}
	if err := checkAddresses("--nsqd-http-address", []string{"httpd1:4151"}); err != nil {
		t.Errorf("a host with an unlucky name: %v", err)
	}
}

// What cannot be found at the start ends the program, and it says what.
func TestNotFound(t *testing.T) {
	lookupd := testnode.StartLookupd(t)
	n := testnode.StartNSQD(t, lookupd)
	n.Create("t", "c")
	lookupd.AwaitProducer("t")
	for args, want := range map[string]string{
		"--topic=nope --channel=c --nsqd-http-address=" + n.HTTP: "ERROR: failed to get topic producers - failed to query any nsqd: \n",
		"--topic=t --channel=nope --nsqd-http-address=" + n.HTTP: "ERROR: failed to find channel(nope) in stats metadata for topic(t)\n",
		"--topic=nope --channel=c --lookupd-http-address=" + lookupd.HTTP: "ERROR: failed to get topic producers - failed to query any nsqlookupd: " +
			"got response 404 Not Found \"{\\\"message\\\":\\\"TOPIC_NOT_FOUND\\\"}\"\n",
		"--topic=t --channel=nope --lookupd-http-address=" + lookupd.HTTP: "ERROR: failed to find channel(nope) in stats metadata for topic(t)\n",
	} {
		code, out, logs := execute(t.Context(), strings.Fields(args)...)
		if code != 1 || logs != want || out != "" {
			t.Errorf("%q: exit code %d, log %q, want %q; stdout %q", args, code, logs, want, out)
		}
	}
}

// The table has its header and one row an interval, of all nsqd together; a nsqd that fails is a remark.
func TestTable(t *testing.T) {
	lookupd := testnode.StartLookupd(t)
	one, two := testnode.StartNSQD(t, lookupd), testnode.StartNSQD(t, lookupd)
	for _, n := range []*testnode.Node{one, two} {
		n.Create("t", "c")
		n.Publish("t", "x", "y")
		n.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.Depth == 2 })
	}
	const row = "      0       0 |       4       4       0     0     0 |       0       0            4       0"
	code, out, logs := execute(t.Context(), "--topic=t", "--channel=c", "--interval=10ms", "--count=2",
		"--nsqd-http-address="+one.HTTP, "--nsqd-http-address="+two.HTTP)
	if want := header + row + "\n" + row + "\n"; code != 0 || out != want || logs != "" {
		t.Errorf("exit code %d, log %q, stdout\n%swant\n%s", code, logs, out, want)
	}
	code, out, logs = execute(t.Context(), "--topic=t", "--channel=c", "--interval=10ms", "--count=2",
		"--nsqd-http-address="+one.HTTP, "--nsqd-http-address="+two.HTTP, "--nsqd-http-address=127.0.0.1:1")
	if want := header + row + " | 1 of 3 nsqd failed\n" + row + " | 1 of 3 nsqd failed\n"; code != 0 || out != want || strings.Count(logs, "\n") != 1 {
		t.Errorf("exit code %d, log %q, stdout\n%swant\n%s", code, logs, out, want)
	}
	lookupd.AwaitProducer("t")
	one.Pause("t", "c")
	code, out, _ = execute(t.Context(), "--topic=t", "--channel=c", "--interval=10ms", "--count=1", "--nsqd-http-address="+one.HTTP)
	if !strings.HasSuffix(out, " | paused\n") || code != 0 {
		t.Errorf("exit code %d, stdout\n%s", code, out)
	}
}

// fakeNSQD answers with what answer returns for the number of the request, which begins at 1.
func fakeNSQD(t *testing.T, answer func(request int64) (int, api.ChannelStats)) string {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		code, channel := answer(requests.Add(1))
		channel.ChannelName = "c"
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(api.Stats{Topics: []api.TopicStats{{TopicName: "t", Channels: []api.ChannelStats{channel}}}})
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// A nsqd that is away for a time, all of them even, is a remark as long as it lasts, told once in the
// log. Rows go on.
func TestOutageIsARow(t *testing.T) {
	away := fakeNSQD(t, func(request int64) (int, api.ChannelStats) {
		if request >= 3 && request <= 6 { // each failed poll asks twice
			return 500, api.ChannelStats{}
		}
		return 200, api.ChannelStats{MessageCount: 10}
	})
	code, out, _ := execute(t.Context(), "--topic=t", "--channel=c", "--interval=10ms", "--count=5", "--json", "--nsqd-http-address="+away)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	var got []string
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.Messages, " ", len(r.Failed), " of ", r.Nodes, " ", r.Error != "", " ", r.Ingress))
	}
	const well, broken = "10 0 of 1 false 0", "0 1 of 1 true 0"
	if want := fmt.Sprint([]string{well, broken, broken, well, well}); fmt.Sprint(got) != want {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// The header comes again before every 25th row.
func TestHeaderAgain(t *testing.T) {
	steady := fakeNSQD(t, func(int64) (int, api.ChannelStats) { return 200, api.ChannelStats{} })
	_, out, _ := execute(t.Context(), "--topic=t", "--channel=c", "--interval=1ms", "--count=51", "--nsqd-http-address="+steady)
	var headers []int
	for i, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "ingress") {
			headers = append(headers, i)
		}
	}
	// Lines from 0: the first header is 0 and 1, then 24 rows, 2 lines of header, 25 rows, 2 lines.
	if want := "[1 27 54]"; fmt.Sprint(headers) != want {
		t.Errorf("headers at lines %v, want %s", headers, want)
	}
}

// It stops at once, in the middle of a request, too, and that is no failure.
func TestStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	stuck := fakeNSQD(t, func(request int64) (int, api.ChannelStats) {
		if request == 2 {
			cancel()
			<-release
		}
		return 200, api.ChannelStats{}
	})
	code, out, logs := execute(ctx, "--topic=t", "--channel=c", "--interval=1ms", "--nsqd-http-address="+stuck)
	if code != 0 || out != header || logs != "" {
		t.Errorf("exit code %d, stdout %q, log %q", code, out, logs)
	}
}

// Rates count each nsqd by itself: one that was started again, or came, or went, does not distort them.
func TestRates(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	type channels map[string]api.ChannelStats
	of := func(messages uint64, depth int64) api.ChannelStats {
		return api.ChannelStats{MessageCount: messages, Depth: depth}
	}
	for _, test := range []struct {
		name        string
		before, now channels
		elapsed     time.Duration
		in, out     int64
	}{
		{"steady", channels{"a": of(100, 10)}, channels{"a": of(121, 20)}, 2 * time.Second, 10, 5},
		{"two", channels{"a": of(1, 0), "b": of(5, 5)}, channels{"a": of(11, 0), "b": of(5, 1)}, 2 * time.Second, 5, 7},
		{"a little late", channels{"a": of(0, 0)}, channels{"a": of(20, 0)}, 2*time.Second + 20*time.Millisecond, 10, 10},
		{"very late", channels{"a": of(0, 0)}, channels{"a": of(20, 0)}, 4 * time.Second, 5, 5},
		{"started again", channels{"a": of(1000, 50)}, channels{"a": of(4, 50)}, 2 * time.Second, 2, 0},
		{"came", channels{"a": of(1, 0)}, channels{"a": of(3, 0), "b": of(1000, 0)}, 2 * time.Second, 1, 1},
		{"went", channels{"a": of(1, 0), "b": of(1000, 9)}, channels{"a": of(3, 0)}, 2 * time.Second, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRow(sample{taken: at, channels: test.before}, sample{taken: at.Add(test.elapsed), channels: test.now}, 2*time.Second)
			if r.Ingress != test.in || r.Egress != test.out {
				t.Errorf("rates %d and %d, want %d and %d", r.Ingress, r.Egress, test.in, test.out)
			}
		})
	}
}

// Every figure is in its column.
func TestRowForm(t *testing.T) {
	var out strings.Builder
	r := row{Ingress: 1, Egress: 2, Depth: 3, Memory: 4, Disk: 5, InFlight: 6, Deferred: 7, Requeued: 8, TimedOut: 9, Messages: 10, Clients: 11}
	if err := newTable(&out).row(1, r); err != nil {
		t.Fatal(err)
	}
	if want := "      1       2 |       3       4       5     6     7 |       8       9           10      11\n"; out.String() != want {
		t.Errorf("row %q, want %q", out.String(), want)
	}
}

// When nsqlookupds are away, the nsqd found before are still shown.
func TestLookupdAway(t *testing.T) {
	steady := fakeNSQD(t, func(int64) (int, api.ChannelStats) { return 200, api.ChannelStats{MessageCount: 3} })
	var looks atomic.Int64
	lookupd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if looks.Add(1) > 1 {
			w.WriteHeader(500)
			return
		}
		var port int
		fmt.Sscanf(steady, "127.0.0.1:%d", &port)
		json.NewEncoder(w).Encode(api.Lookup{Producers: []api.Producer{{BroadcastAddress: "127.0.0.1", HTTPPort: port}}})
	}))
	defer lookupd.Close()
	code, out, logs := execute(t.Context(), "--topic=t", "--channel=c", "--interval=5ms", "--count=2",
		"--lookupd-http-address="+strings.TrimPrefix(lookupd.URL, "http://"))
	const row = "      0       0 |       0       0       0     0     0 |       0       0            3       0\n"
	if code != 0 || out != header+row+row || logs != "ERROR: failed to get topic producers - got response 500 Internal Server Error \"\"\n" {
		t.Errorf("exit code %d, stdout %q, log %q", code, out, logs)
	}
}
