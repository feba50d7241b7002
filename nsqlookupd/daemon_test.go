package nsqlookupd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/lookup"
	"nsq/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 5 * time.Second

// daemon is a running nsqlookupd with what it logs.
type daemon struct {
	t *testing.T
	*NSQLookupd
	log  *testutil.Buffer
	stop func() error // stops it and returns what Run returned; may be called again
}

func testOptions() *Options {
	o := NewOptions()
	o.TCPAddress, o.HTTPAddress = "127.0.0.1:0", "127.0.0.1:0"
	o.BroadcastAddress = "lookup.example"
	return o
}

func start(t *testing.T, opts *Options) *daemon {
	t.Helper()
	text := new(testutil.Buffer)
	l, err := New(opts, log.New(text, "", log.Debug))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	d := &daemon{t: t, NSQLookupd: l, log: text}
	d.stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return d
}

// eventually waits until what holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// logs waits for a line that matches the pattern.
func (d *daemon) logs(pattern string) {
	d.t.Helper()
	line := regexp.MustCompile(pattern)
	eventually(d.t, "log line "+pattern, func() bool { return line.MatchString(d.log.String()) })
}

// peer is a nsqd, or somebody who behaves like one.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (d *daemon) dial(first string) *peer {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.TCPAddr().String())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		d.t.Fatal(err)
	}
	p := &peer{d.t, conn, bufio.NewReader(conn)}
	p.sends(first)
	return p
}

// node is an identified peer.
func (d *daemon) node(host string, tcpPort int) *peer {
	d.t.Helper()
	p := d.dial(lookup.Magic)
	p.sends(identify(host, tcpPort))
	p.answer()
	return p
}

func identify(host string, tcpPort int) string {
	return "IDENTIFY\n" + string(lookup.AppendFrame(nil, `{"broadcast_address":"`+host+`","hostname":"h-`+host+
		`","tcp_port":`+strconv.Itoa(tcpPort)+`,"http_port":4151,"version":"1.0","topology_zone":"z","topology_region":"r"}`))
}

// sends ignores errors: a daemon that closes while we still talk shows in what it answers.
func (p *peer) sends(text string) { _, _ = io.WriteString(p.conn, text) }

func (p *peer) answer() string {
	p.t.Helper()
	answer, err := lookup.ReadAnswer(p.r, 1<<20)
	if err != nil {
		p.t.Errorf("no answer: %v", err)
	}
	return string(answer)
}

// wants sends the line and expects the answer.
func (p *peer) wants(line, answer string) {
	p.t.Helper()
	p.sends(line + "\n")
	if got := p.answer(); got != answer {
		p.t.Errorf("%.60q was answered %.200q, want %.200q", line, got, answer)
	}
}

// wantsEnd expects that the daemon closes without a reset, and says nothing more.
func (p *peer) wantsEnd() {
	p.t.Helper()
	if rest, err := io.ReadAll(p.r); err != nil || len(rest) > 0 {
		p.t.Errorf("instead of the end came %.100q, %v", rest, err)
	}
}

// reply is what the HTTP API answered.
type reply struct {
	status int
	header http.Header
	body   string
}

func (d *daemon) http(method, path string) reply {
	d.t.Helper()
	req, err := http.NewRequest(method, "http://"+d.HTTPAddr().String()+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(body)}
}

// get expects status and body.
func (d *daemon) get(path string, status int, body string) {
	d.t.Helper()
	d.asks(http.MethodGet, path, status, body)
}

func (d *daemon) post(path string, status int, body string) {
	d.t.Helper()
	d.asks(http.MethodPost, path, status, body)
}

func (d *daemon) asks(method, path string, status int, body string) {
	d.t.Helper()
	if r := d.http(method, path); r.status != status || r.body != body {
		d.t.Errorf("%s %s: %d %s; want %d %s", method, path, r.status, r.body, status, body)
	}
}

// shows expects that GET answers this body soon.
func (d *daemon) shows(path, body string) {
	d.t.Helper()
	var got string
	defer func() {
		if d.t.Failed() {
			d.t.Logf("GET %s: %s", path, got)
		}
	}()
	eventually(d.t, "GET "+path+" answers "+body, func() bool {
		got = d.http(http.MethodGet, path).body
		return got == body
	})
}

// A listener that cannot be opened is named, and the other one is not left open.
func TestListenFailures(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := busy.Addr().String()
	for _, test := range []struct {
		address string
		setting func(*Options) *string
	}{
		{taken, func(o *Options) *string { return &o.TCPAddress }},
		{taken, func(o *Options) *string { return &o.HTTPAddress }},
		{"/tmp/nsq", func(o *Options) *string { return &o.TCPAddress }},
		{"4161", func(o *Options) *string { return &o.HTTPAddress }},
	} {
		opts := testOptions()
		*test.setting(opts) = test.address
		if _, err := New(opts, log.Discard()); err == nil || !strings.HasPrefix(err.Error(), "listen ("+test.address+") failed - ") {
			t.Errorf("New with %s = %v", test.address, err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts := testOptions()
	opts.TCPAddress, opts.HTTPAddress = free.Addr().String(), taken
	free.Close()
	if _, err := New(opts, log.Discard()); err == nil {
		t.Fatal("New succeeded on a port that is taken")
	}
	again, err := net.Listen("tcp", opts.TCPAddress)
	if err != nil {
		t.Fatalf("the TCP listener was left open: %v", err)
	}
	again.Close()
}

// Close releases the listeners of a nsqlookupd that never ran.
func TestCloseWithoutRun(t *testing.T) {
	l, err := New(testOptions(), log.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []net.Addr{l.TCPAddr(), l.HTTPAddr()} {
		if conn, err := net.Dial("tcp", addr.String()); err == nil {
			conn.Close()
			t.Errorf("%s is still open", addr)
		}
	}
}

// A stop is clean whatever the connections are doing at that moment.
func TestStopWithConnections(t *testing.T) {
	d := start(t, testOptions())
	idle := []*peer{d.dial(""), d.dial("  "), d.dial(lookup.Magic), d.dial(lookup.Magic + "IDENTIFY\n\x00"), d.node("a", 1)}
	web, err := net.Dial("tcp", d.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	if _, err := io.WriteString(web, "GET /ping HTT"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all connected", func() bool { return d.tcp.Conns() == len(idle) })
	if err := d.stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	for _, p := range idle {
		if _, err := p.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection outlived the daemon: %v", err)
		}
	}
	if _, err := net.Dial("tcp", d.TCPAddr().String()); err == nil {
		t.Error("the TCP listener is still open")
	}
}

// A request that goes on for long does not hold up a stop, nor make a failure of it.
func TestStopDuringRequest(t *testing.T) {
	d := start(t, testOptions())
	d.stopTimeout = 50 * time.Millisecond
	web, err := net.Dial("tcp", d.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	// The answer to the first request shows that the second has arrived as well.
	if _, err := io.WriteString(web, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\nGET /debug/pprof/trace?seconds=60 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(web)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(r, nil); err != nil { // tracing has begun
		t.Fatal(err)
	}
	if err := d.stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	d.logs("WARNING: not everything ended in time")
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
