package statsd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
	"nsq/internal/log"
)

func texts(datagrams [][]byte) []string {
	var texts []string
	for _, d := range datagrams {
		texts = append(texts, string(d))
	}
	return texts
}

func TestPack(t *testing.T) {
	long := strings.Repeat("x", 20) + "\n"
	for name, c := range map[string]struct {
		lines string
		size  int
		want  []string
	}{
		"nothing":           {"", 10, nil},
		"one":               {"abc\n", 10, []string{"abc\n"}},
		"exactly full":      {"abcd\nefgh\ni\n", 10, []string{"abcd\nefgh\n", "i\n"}},
		"one byte too many": {"abcd\nefghi\n", 10, []string{"abcd\n", "efghi\n"}},
		"too long first":    {long + "a\n", 10, []string{long, "a\n"}},
		"too long between":  {"a\n" + long + "b\nc\n", 10, []string{"a\n", long, "b\nc\n"}},
		"tiny size":         {"a\nb\n", 1, []string{"a\n", "b\n"}},
		"default size":      {strings.Repeat("abc\n", 1025), 0, []string{strings.Repeat("abc\n", 1024), "abc\n"}},
		"negative size":     {strings.Repeat("abc\n", 1025), -1, []string{strings.Repeat("abc\n", 1024), "abc\n"}},
	} {
		if diff := cmp.Diff(c.want, texts(pack([]byte(c.lines), c.size))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// Whatever the lines: nothing is lost or split, nothing is too long that need not be, and no
// datagram had room for the next line.
func FuzzPack(f *testing.F) {
	f.Add([]byte("a\nbc\n"), 4)
	f.Add([]byte("\n\n\nabc"), 2)
	f.Add([]byte(strings.Repeat("topic.t.depth:1|g\n", 50)), 0)
	f.Add([]byte("abc\n"), -1<<63)
	f.Fuzz(func(t *testing.T, lines []byte, size int) {
		datagrams := pack(lines, size)
		if got := bytes.Join(datagrams, nil); !bytes.Equal(got, lines) {
			t.Fatalf("%q became %q", lines, got)
		}
		if size <= 0 {
			size = defaultPacketSize
		}
		for i, d := range datagrams {
			last := i == len(datagrams)-1
			switch {
			case len(d) == 0:
				t.Fatalf("datagram %d is empty", i)
			case !last && d[len(d)-1] != '\n':
				t.Fatalf("datagram %d splits a line", i)
			case len(d) > size && bytes.Contains(d[:len(d)-1], []byte("\n")):
				t.Fatalf("datagram %d has %d bytes and several lines", i, len(d))
			}
			if !last {
				next, _, _ := bytes.Cut(datagrams[i+1], []byte("\n"))
				if len(d)+len(next)+1 <= size {
					t.Fatalf("datagram %d had room for %q", i, next)
				}
			}
		}
	})
}

// fakeNet hands out sockets and notes what is done with them. Times are since it was made.
type fakeNet struct {
	start   time.Time
	dialErr error             // of the next dial
	write   func(n int) error // of the nth datagram; nil succeeds

	mu     sync.Mutex
	dials  []time.Duration
	sent   []string
	times  []time.Duration
	closed int
}

func newFakeNet() *fakeNet { return &fakeNet{start: time.Now()} }

func (f *fakeNet) dial(_ context.Context, network, address string) (net.Conn, error) {
	if network != "udp" || address != "statsd.example:8125" {
		return nil, errors.New("dialled " + network + " " + address)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials = append(f.dials, time.Since(f.start))
	if err := f.dialErr; err != nil {
		f.dialErr = nil
		return nil, err
	}
	return &fakeConn{net: f}, nil
}

// fakeConn is a socket; methods that it lacks crash the test.
type fakeConn struct {
	net.Conn
	net      *fakeNet
	deadline time.Time
}

func (c *fakeConn) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *fakeConn) Write(datagram []byte) (int, error) {
	if left := time.Until(c.deadline); left <= 0 || left > writeTimeout {
		return 0, errors.New("no deadline")
	}
	f := c.net
	f.mu.Lock()
	f.sent = append(f.sent, string(datagram))
	f.times = append(f.times, time.Since(f.start))
	n := len(f.sent)
	f.mu.Unlock()
	if f.write != nil {
		if err := f.write(n); err != nil {
			return 0, err
		}
	}
	return len(datagram), nil
}

func (c *fakeConn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.net.closed++
	return nil
}

// fourDatagrams are the statistics of a topic, whose lines have a datagram each if it is small.
func fourDatagrams(messages uint64) api.Stats {
	return api.Stats{Topics: []api.TopicStats{{TopicName: "t", MessageCount: messages}}}
}

func config(f *fakeNet) Config {
	return Config{Address: "statsd.example:8125", Prefix: "p.", Interval: time.Minute, PacketSize: 1, dial: f.dial}
}

// start runs a loop in a synctest bubble; stop ends it and waits.
func start(c Config, snapshot func() api.Stats, out *bytes.Buffer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { Loop(ctx, c, snapshot, log.New(out, "", log.Info)) })
	return func() {
		cancel()
		done.Wait()
	}
}

// logTexts are the lines without their times.
func logTexts(out *bytes.Buffer) (texts []string) {
	for line := range strings.Lines(out.String()) {
		const stamp = len("2006/01/02 15:04:05.000000 ")
		texts = append(texts, strings.TrimSpace(line[stamp:]))
	}
	return texts
}

func seconds(times []time.Duration) (s []float64) {
	for _, t := range times {
		s = append(s, t.Seconds())
	}
	return s
}

// Pushes come an interval apart, from a socket of their own; their datagrams are spread over the
// interval but its last second; counters of the second are deltas.
func TestLoopSpreadsPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, messages, out := newFakeNet(), uint64(0), new(bytes.Buffer)
		stop := start(config(f), func() api.Stats { messages += 5; return fourDatagrams(messages * messages) }, out)
		time.Sleep(3*time.Minute - 1)
		stop()

		if diff := cmp.Diff([]float64{60, 74.75, 89.5, 104.25, 120, 134.75, 149.5, 164.25}, seconds(f.times)); diff != "" {
			t.Errorf("times: (-want +got)\n%s", diff)
		}
		push := func(count string) []string {
			return []string{"p.topic.t.message_count:" + count + "|c\n", "p.topic.t.message_bytes:0|c\n",
				"p.topic.t.depth:0|g\n", "p.topic.t.backend_depth:0|g\n"}
		}
		if diff := cmp.Diff(append(push("25"), push("75")...), f.sent); diff != "" {
			t.Errorf("datagrams: (-want +got)\n%s", diff)
		}
		if len(f.dials) != 2 || f.closed != 2 {
			t.Errorf("%d sockets opened, %d closed", len(f.dials), f.closed)
		}
		line := "INFO: STATSD: pushing stats to statsd.example:8125"
		if diff := cmp.Diff([]string{line, line}, logTexts(out)); diff != "" {
			t.Errorf("log: (-want +got)\n%s", diff)
		}
	})
}

// With intervals of a second or less nothing is spread, and with nothing to say nothing is sent.
func TestShortIntervals(t *testing.T) {
	for _, interval := range []time.Duration{time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeNet()
			c := config(f)
			c.Interval = interval
			stop := start(c, func() api.Stats { return fourDatagrams(1) }, new(bytes.Buffer))
			time.Sleep(2*interval - 1)
			stop()
			at := interval.Seconds()
			if diff := cmp.Diff([]float64{at, at, at, at}, seconds(f.times)); diff != "" {
				t.Errorf("%v: (-want +got)\n%s", interval, diff)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f, out := newFakeNet(), new(bytes.Buffer)
		stop := start(config(f), func() api.Stats { return api.Stats{} }, out)
		time.Sleep(time.Minute + 1)
		stop()
		if len(f.sent) != 0 || f.closed != 1 || strings.Contains(out.String(), "ERROR") {
			t.Errorf("sent %q, closed %d, logged %q", f.sent, f.closed, out)
		}
	})
}

// When the loop is stopped in the middle of a push, the rest is sent at once, and no other push.
func TestStopHurriesThePush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeNet()
		stop := start(config(f), func() api.Stats { return fourDatagrams(1) }, new(bytes.Buffer))
		time.Sleep(80 * time.Second) // two of four are sent
		stop()
		if diff := cmp.Diff([]float64{60, 74.75, 80, 80}, seconds(f.times)); diff != "" {
			t.Errorf("times: (-want +got)\n%s", diff)
		}
		if f.closed != 1 {
			t.Errorf("%d sockets closed", f.closed)
		}
	})
	synctest.Test(t, func(t *testing.T) { // between pushes
		f := newFakeNet()
		stop := start(config(f), func() api.Stats { return fourDatagrams(1) }, new(bytes.Buffer))
		time.Sleep(time.Minute - 1)
		stop()
		if len(f.dials) != 0 {
			t.Errorf("%d sockets opened", len(f.dials))
		}
	})
}

// A push without a socket takes no snapshot: what counters grew by is in the next one.
func TestDialFailureSkipsAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, out, snapshots := newFakeNet(), new(bytes.Buffer), 0
		f.dialErr = errors.New("no such host")
		stop := start(config(f), func() api.Stats { snapshots++; return fourDatagrams(9) }, out)
		time.Sleep(2*time.Minute + 1)
		stop()
		if snapshots != 1 || len(f.sent) != 4 || f.sent[0] != "p.topic.t.message_count:9|c\n" {
			t.Errorf("%d snapshots, sent %q", snapshots, f.sent)
		}
		want := []string{"ERROR: failed to create UDP socket to statsd(statsd.example:8125) - no such host",
			"INFO: STATSD: pushing stats to statsd.example:8125"}
		if diff := cmp.Diff(want, logTexts(out)); diff != "" {
			t.Errorf("log: (-want +got)\n%s", diff)
		}
	})
}

// A datagram that cannot be sent is logged, and the others are sent all the same.
func TestFailingDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, out := newFakeNet(), new(bytes.Buffer)
		f.write = func(n int) error {
			if n == 2 || n == 3 {
				return errors.New("refused " + string(rune('0'+n)))
			}
			return nil
		}
		stop := start(config(f), func() api.Stats { return fourDatagrams(1) }, out)
		time.Sleep(119 * time.Second)
		stop()
		if len(f.sent) != 4 || f.closed != 1 {
			t.Errorf("%d datagrams, %d closed", len(f.sent), f.closed)
		}
		want := []string{"INFO: STATSD: pushing stats to statsd.example:8125",
			"ERROR: push stats to statsd(statsd.example:8125): send 2 of 4 datagrams: refused 2"}
		if diff := cmp.Diff(want, logTexts(out)); diff != "" {
			t.Errorf("log: (-want +got)\n%s", diff)
		}
	})
}

// Over a real socket: every line arrives, in order, in datagrams of the default size.
func TestRealSocket(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		Loop(ctx, Config{Address: server.LocalAddr().String(), Prefix: "p.", Interval: time.Millisecond, PacketSize: 508},
			func() api.Stats { return full() }, log.Discard())
	})
	want := ephemeralTopic + lastingTopic + ephemeralChannel + memory
	got, buf := "", make([]byte, 1<<16)
	for len(got) < len(want) {
		n, _, err := server.ReadFrom(buf)
		if err != nil {
			t.Error(err)
			break
		}
		if n > 508 || buf[n-1] != '\n' {
			t.Errorf("a datagram of %d bytes, %q", n, buf[:n])
		}
		got += string(buf[:n])
	}
	cancel()
	done.Wait()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func BenchmarkReport(b *testing.B) {
	stats := full()
	r := reporter{prefix: "nsq.my_host_example_4151."}
	b.ReportAllocs()
	for b.Loop() {
		pack(r.report(stats), 508)
	}
}
