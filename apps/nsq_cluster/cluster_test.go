package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"
	"go.uber.org/goleak"

	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// screen is what the user of a cluster sees.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// running is a cluster in Run.
type running struct {
	*cluster
	out, logs *screen
	stop      func() error // returns what Run returned; may be called again
}

// testOptions are those of a cluster on free ports.
func testOptions(folder string, nsqds int) *clusterOptions {
	o := newOptions()
	o.Data, o.NSQDs, o.Lookupd, o.NSQDBase, o.Admin = folder, nsqds, ports{}, ports{}, 0
	return o
}

func start(t *testing.T, o *clusterOptions) *running {
	t.Helper()
	r := &running{out: &screen{}, logs: &screen{}}
	var err error
	if r.cluster, err = newCluster(o, r.out, r.logs); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	t.Cleanup(func() { r.stop() })
	return r
}

// request does one HTTP request to a member and returns status and body of the answer.
func request(t *testing.T, m member, method, path, body string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+m.HTTPAddr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true // an idle connection would be a leak
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
}

// producers are the HTTP ports, in order, of the nodes that have announced topic t.
func producers(t *testing.T, lookupd member) (ports []int) {
	t.Helper()
	status, text := request(t, lookupd, "GET", "/lookup?topic=t", "")
	if status == http.StatusNotFound {
		return nil
	}
	var answer struct {
		Producers []struct {
			HTTPPort int `json:"http_port"`
		} `json:"producers"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, p := range answer.Producers {
		ports = append(ports, p.HTTPPort)
	}
	slices.Sort(ports)
	return ports
}

// consume returns the bodies, in order, of n messages of topic t on the nsqds that the nsqlookupd names.
func consume(t *testing.T, lookupd member, n int) (bodies []string) {
	t.Helper()
	config := nsq.NewConfig()
	config.MaxInFlight = n
	config.LookupdPollInterval = 20 * time.Millisecond
	consumer, err := nsq.NewConsumer("t", "c", config)
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLogger(nil, nsq.LogLevelError)
	came := make(chan string, n)
	consumer.AddHandler(nsq.HandlerFunc(func(m *nsq.Message) error {
		came <- string(m.Body)
		return nil
	}))
	if err := consumer.ConnectToNSQLookupd(lookupd.HTTPAddr().String()); err != nil {
		t.Fatal(err)
	}
	defer func() { consumer.Stop(); <-consumer.StopChan }()
	timeout := time.After(patience)
	for range n {
		select {
		case body := <-came:
			bodies = append(bodies, body)
		case <-timeout:
			t.Fatalf("%d messages came in time, want %d", len(bodies), n)
		}
	}
	slices.Sort(bodies)
	return bodies
}

// Three nsqds know the nsqlookupd, and what was published to each of them outlives the cluster.
func TestMessagesOutliveCluster(t *testing.T) {
	folder := t.TempDir()
	first := start(t, testOptions(folder, 3))
	var want []string
	var wantPorts []int
	for i, m := range first.members[1 : len(first.members)-1] {
		body := fmt.Sprintf("message %d", i)
		if status, answer := request(t, m, "POST", "/pub?topic=t", body); status != http.StatusOK {
			t.Fatalf("publish: %d %s", status, answer)
		}
		want = append(want, body)
		wantPorts = append(wantPorts, m.HTTPAddr().(*net.TCPAddr).Port)
	}
	slices.Sort(wantPorts)
	for end := time.Now().Add(patience); !slices.Equal(producers(t, first.members[0]), wantPorts); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nsqlookupd knows ports %v, want %v", producers(t, first.members[0]), wantPorts)
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if text := first.out.String(); !strings.HasSuffix(text, "stopping\nstopped; the messages are kept in "+folder+"\n") {
		t.Errorf("the stop is not told: %q", text)
	}

	second := start(t, testOptions(folder, 3))
	if bodies := consume(t, second.members[0], len(want)); !slices.Equal(bodies, want) {
		t.Errorf("messages after the restart %q, want %q", bodies, want)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	if text := second.logs.String(); text != "" {
		t.Errorf("a healthy cluster logs %q", text)
	}
}

// The first lines say where everything is; the commands in them name the real ports.
func TestWelcome(t *testing.T) {
	r := start(t, testOptions(t.TempDir(), 2))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text := r.out.String()
	for _, m := range r.members {
		wanted := []string{m.name, m.HTTPAddr().String()}
		if tcp := m.TCPAddr(); tcp != nil {
			wanted = append(wanted, tcp.String())
		}
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
	}
	for _, want := range []string{
		"curl -d 'hello' 'http://" + r.members[1].HTTPAddr().String() + "/pub?topic=t'",
		"curl 'http://" + r.members[1].HTTPAddr().String() + "/stats?topic=t'",
		"curl 'http://" + r.members[0].HTTPAddr().String() + "/lookup?topic=t'",
		"http://" + r.members[3].HTTPAddr().String() + "/\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// A port in use is named together with its flag, and nothing that was taken before is kept.
func TestPortInUse(t *testing.T) {
	for _, test := range []struct {
		flag string
		set  func(o *clusterOptions, port int)
	}{
		{flagLookupdTCP, func(o *clusterOptions, port int) { o.Lookupd.TCP = port }},
		{flagLookupdHTTP, func(o *clusterOptions, port int) { o.Lookupd.HTTP = port }},
		{flagNSQDTCP, func(o *clusterOptions, port int) { o.NSQDBase.TCP = port }},
		{flagNSQDHTTP, func(o *clusterOptions, port int) { o.NSQDBase.HTTP = port }},
	} {
		t.Run(test.flag, func(t *testing.T) {
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			port := taken.Addr().(*net.TCPAddr).Port
			folder := t.TempDir()
			o := testOptions(folder, 1)
			test.set(o, port)
			_, err = newCluster(o, io.Discard, io.Discard)
			if err == nil {
				t.Fatal("started")
			}
			for _, want := range []string{fmt.Sprintf("port %d ", port), "--" + test.flag + ":"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in error %q", want, err)
				}
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("error %q does not have the reason", err)
			}
			// The folders are free again.
			free, err := newCluster(testOptions(folder, 2), io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if err := free.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The ports of a cluster that could not start can be taken by the next one.
func TestFailedStartFreesPorts(t *testing.T) {
	free := start(t, testOptions(t.TempDir(), 1))
	inUse := free.members[1].TCPAddr().(*net.TCPAddr).Port
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lookupdPort := probe.Addr().(*net.TCPAddr).Port
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t.TempDir(), 1)
	o.Lookupd.TCP, o.NSQDBase.TCP = lookupdPort, inUse
	if _, err := newCluster(o, io.Discard, io.Discard); err == nil {
		t.Fatal("started on a port in use")
	}
	again, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lookupdPort))
	if err != nil {
		t.Fatalf("the port of the nsqlookupd is still taken: %v", err)
	}
	again.Close()
}

// When one daemon fails, all of them end, and the error says which one it was.
func TestFailureOfOneStopsAll(t *testing.T) {
	var text screen
	c := &cluster{options: newOptions(), out: &text, logs: io.Discard}
	failed := errors.New("boom")
	stopped := make(chan struct{})
	c.members = []member{
		{name: "nsqlookupd", daemon: fake{run: func(ctx context.Context) error {
			<-ctx.Done()
			close(stopped)
			return nil
		}}},
		{name: "nsqd-1", daemon: fake{run: func(context.Context) error { return failed }}},
	}
	err := c.Run(t.Context())
	if !errors.Is(err, failed) || err.Error() != "nsqd-1: boom" {
		t.Errorf("error %v", err)
	}
	select {
	case <-stopped:
	default:
		t.Error("the other daemon goes on")
	}
	if strings.Contains(text.String(), "are kept") {
		t.Errorf("a promise after a failure: %s", text.String())
	}
}

type fake struct{ run func(context.Context) error }

func (f fake) Run(ctx context.Context) error { return f.run(ctx) }
func (f fake) Close() error                  { return nil }
func (f fake) TCPAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (f fake) HTTPAddr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		args  string
		ports ports // of the last nsqd
		err   string
	}{
		{"", ports{4150, 4151}, ""},
		{"--nsqd 3", ports{4350, 4351}, ""},
		{"--nsqd 2 --nsqd-tcp-port 0 --nsqd-http-port 7000", ports{0, 7100}, ""},
		{"--nsqd 0", ports{}, "--nsqd must be [1,100], is 0"},
		{"--nsqlookupd-tcp-port 70000", ports{}, "--nsqlookupd-tcp-port must be [0,65535], is 70000"},
		{"--nsqd 2 --nsqd-tcp-port 65500", ports{}, "--nsqd-tcp-port is too high for --nsqd 2: the last one would have port 65600"},
		{"--nsqd 3 --nsqd-http-port 65436", ports{}, "--nsqd-http-port is too high for --nsqd 3: the last one would have port 65636"},
	} {
		t.Run(test.args, func(t *testing.T) {
			o := newOptions()
			if _, err := o.Table().Load(strings.Fields(test.args), io.Discard, io.Discard); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if last := o.nsqdPorts(o.NSQDs - 1); err != nil || last != test.ports {
				t.Errorf("ports %v, %v, want %v", last, err, test.ports)
			}
		})
	}
	if level := newOptions().LogLevel; level != log.Warn {
		t.Errorf("log level %v fills the screen", level)
	}
}

// What listens on every address is reached by the loopback one and announced by the host's name.
func TestEveryAddress(t *testing.T) {
	for _, test := range []struct{ address, broadcast, reachable string }{
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:7"},
		{"10.1.2.3", "10.1.2.3", "10.1.2.3:7"},
		{"0.0.0.0", "host", "127.0.0.1:7"},
		{"::", "host", "127.0.0.1:7"},
		{"::1", "::1", "[::1]:7"},
	} {
		o := newOptions()
		o.Address = test.address
		if got := o.broadcast("host"); got != test.broadcast {
			t.Errorf("%s is announced as %s, want %s", test.address, got, test.broadcast)
		}
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(test.address), Port: 7}); got != test.reachable {
			t.Errorf("%s is reached by %s, want %s", test.address, got, test.reachable)
		}
	}
	o := newOptions()
	if o.Address = "localhost"; o.broadcast("host") != "localhost" {
		t.Error("a name that was given is not announced")
	}
	if o.Address = ""; o.broadcast("host") != "host" {
		t.Error("the empty address is announced")
	}
}
