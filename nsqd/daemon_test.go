package nsqd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/log"
	"nsq/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something that must happen may take.
const patience = 20 * time.Second

// daemon is a nsqd on free ports that runs until the end of the test, and must end cleanly then.
type daemon struct {
	*NSQD
	t    *testing.T
	log  *lines
	stop func()
}

// launch runs a nsqd with these changes of the defaults.
func launch(t *testing.T, changes ...func(*Options)) *daemon {
	t.Helper()
	d := &daemon{t: t, log: &lines{}}
	var err error
	if d.NSQD, err = New(testOptions(t, changes...), log.New(d.log, "", log.Debug)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

func testOptions(t *testing.T, changes ...func(*Options)) *Options {
	o := NewOptions()
	o.TCPAddress, o.HTTPAddress, o.HTTPSAddress = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.BroadcastAddress, o.NodeID, o.DataPath = "127.0.0.1", 1, t.TempDir()
	for _, change := range changes {
		change(o)
	}
	return o
}

// answer is what a HTTP request got.
type answer struct {
	status int
	header http.Header
	body   string
}

// http makes a request of plain HTTP.
func (d *daemon) http(method, target, body string) answer {
	d.t.Helper()
	a, err := request(nil, method, "http://"+d.HTTPAddr().String()+target, body)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// https makes a GET.
func (d *daemon) https(config *tls.Config, target string) (answer, error) {
	return request(config, http.MethodGet, "https://"+d.httpsListener.Addr().String()+target, "")
}

func request(config *tls.Config, method, address, body string) (answer, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}, Timeout: patience}
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// stats are those of /stats.
func (d *daemon) stats() (stats api.Stats) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.http("GET", "/stats?format=json", "").body), &stats); err != nil {
		d.t.Fatal(err)
	}
	return stats
}

// dial connects and says something behind the magic.
func (d *daemon) dial(text string) net.Conn {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.TCPAddr().String())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		d.t.Fatal(err)
	}
	d.say(conn, protocol.Magic+text)
	return conn
}

func (d *daemon) say(conn net.Conn, text string) {
	d.t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		d.t.Fatal(err)
	}
}

// hear takes a frame.
func (d *daemon) hear(conn net.Conn) string {
	d.t.Helper()
	_, data, err := protocol.ReadFrame(conn, 1<<20)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// secure connects over TLS; the error says that it was not possible.
func (d *daemon) secure(config *tls.Config) (*tls.Conn, error) {
	d.t.Helper()
	const members = `{"feature_negotiation":true,"tls_v1":true}`
	conn := d.dial("IDENTIFY\n\x00\x00\x00\x2a" + members)
	if got := d.hear(conn); !strings.Contains(got, `"tls_v1":true,`) {
		d.t.Fatalf("got %s", got)
	}
	over := tls.Client(conn, config)
	if err := over.Handshake(); err != nil {
		return nil, err
	}
	// A client certificate that is missing comes to light here.
	if _, data, err := protocol.ReadFrame(over, 1<<20); err != nil || string(data) != "OK" {
		return nil, err
	}
	return over, nil
}

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), text)
}

// eventually waits for something that others do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
