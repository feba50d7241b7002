package nsqlookupd

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/log"
	"nsq/internal/lookup"
	"nsq/internal/version"
	"nsq/nsqlookupd/registry"
)

// A nsqd introduces itself, registers and unregisters; HTTP shows what it did, and what stays when it
// goes.
func TestConversation(t *testing.T) {
	d := start(t, testOptions())
	p := d.dial(lookup.Magic)
	p.wants("PING", "OK")
	p.sends(identify("b", 4150))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(map[string]any{
		"broadcast_address": "lookup.example", "hostname": host, "version": version.Version,
		"http_port": d.HTTPAddr().(*net.TCPAddr).Port, "tcp_port": d.TCPAddr().(*net.TCPAddr).Port,
	})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "answer to IDENTIFY", string(want), p.answer())
	p.wants("PING", "OK")
	p.wants("REGISTER t", "OK")
	p.wants("REGISTER t c2\r", "OK")
	p.wants("REGISTER t c1 surplus", "OK")
	p.wants("REGISTER t  c9", "OK")
	p.wants("REGISTER e#ephemeral c", "OK")
	d.get("/topics", 200, `{"topics":["e#ephemeral","t"]}`)
	addr := p.conn.LocalAddr().String()
	producer := `{"remote_address":"` + addr + `","hostname":"h-b","broadcast_address":"b","tcp_port":4150,"http_port":4151,"version":"1.0","topology_zone":"z","topology_region":"r"`
	d.get("/lookup?topic=t", 200, `{"channels":["c1","c2"],"producers":[`+producer+`}]}`)
	d.get("/nodes", 200, `{"producers":[`+producer+`,"tombstones":[false,false],"topics":["e#ephemeral","t"]}]}`)
	p.wants("UNREGISTER t c1", "OK")
	p.wants("UNREGISTER no no", "OK")
	p.conn.Close()
	d.shows("/nodes", `{"producers":[]}`)
	d.get("/topics", 200, `{"topics":["t"]}`)
	d.get("/lookup?topic=t", 200, `{"channels":["c1","c2"],"producers":[]}`)

	d.logs(`DEBUG: client\(` + addr + `\): PING after `)
	d.logs(`INFO: client\(` + addr + `\): IDENTIFY address b, TCP port 4150, HTTP port 4151, version 1\.0`)
	d.logs(`INFO: client\(` + addr + `\): added to channel:t:c2`)
	d.logs(`INFO: client\(` + addr + `\): removed from channel:t:c1`)
	d.logs(`INFO: client\(` + addr + `\): removed from 4 registrations`)
	d.logs(`INFO: client\(` + addr + `\) - EOF`)
}

// Commands that are sent together are answered in order.
func TestPipelining(t *testing.T) {
	d := start(t, testOptions())
	p := d.dial(lookup.Magic + "PING\n" + identify("a", 1) + strings.Repeat("REGISTER t c\n", 1000) + "PI")
	for range 1002 {
		if answer := p.answer(); answer != lookup.OK && answer[0] != '{' {
			t.Fatalf("answer %q", answer)
		}
	}
	p.wants("NG", "OK")
}

// Every refusal has its exact text and is the last word on its connection.
func TestRefusals(t *testing.T) {
	d := start(t, testOptions())
	frame := func(body string) string { return string(lookup.AppendFrame(nil, body)) }
	id := identify("a", 1)
	long := strings.Repeat("x", lookup.MaxLineLength)
	tests := []struct {
		name, sent string
		halfClose  bool
		want       string
	}{
		{"magic", "  V2PING\n", false, "E_BAD_PROTOCOL"},
		{"unknown command", "  V1HELLO you\n", false, "E_INVALID invalid command HELLO"},
		{"case", "  V1ping\n", false, "E_INVALID invalid command ping"},
		{"empty line", "  V1\n", false, "E_INVALID invalid command "},
		{"register first", "  V1REGISTER\n", false, "E_INVALID client must IDENTIFY"},
		{"unregister first", "  V1UNREGISTER t\n", false, "E_INVALID client must IDENTIFY"},
		{"identify twice", "  V1" + id + id, false, "E_INVALID cannot IDENTIFY again"},
		{"no topic", "  V1" + id + "REGISTER\n", false, "E_INVALID REGISTER insufficient number of params"},
		{"bad topic", "  V1" + id + "UNREGISTER a*b\n", false, "E_BAD_TOPIC UNREGISTER topic name 'a*b' is not valid"},
		{"bad channel", "  V1" + id + "REGISTER t *\n", false, "E_BAD_CHANNEL REGISTER channel name '*' is not valid"},
		{"no size", "  V1IDENTIFY\n\x00", true, "E_BAD_BODY IDENTIFY failed to read body size"},
		{"short body", "  V1IDENTIFY\n\x00\x00\x00\x09{", true, "E_BAD_BODY IDENTIFY failed to read body"},
		{"no JSON", "  V1IDENTIFY\n" + frame("nope"), false, "E_BAD_BODY IDENTIFY failed to decode JSON body"},
		{"no fields", "  V1IDENTIFY\n" + frame("null"), false, "E_BAD_BODY IDENTIFY missing fields"},
		{"negative size", "  V1IDENTIFY\n\xff\xff\xff\xff{}", false, "E_BAD_BODY IDENTIFY invalid body size -1"},
		{"huge size", "  V1IDENTIFY\n\x7f\xff\xff\xff{}", false, "E_BAD_BODY IDENTIFY invalid body size 2147483647"},
		{"endless line", "  V1" + strings.Repeat(long, 64), false, "E_INVALID command is longer than 4096 bytes"},
		{"garbage", "  V1\x00\xff\n", false, "E_INVALID invalid command \x00\xff"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := d.dial(test.sent)
			p.t = t
			if test.halfClose {
				if err := p.conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			got := p.answer()
			if strings.HasPrefix(got, "{") { // that is for IDENTIFY
				got = p.answer()
			}
			if got != test.want {
				t.Errorf("answer %q, want %q", got, test.want)
			}
			p.wantsEnd()
		})
	}
	d.shows("/nodes", `{"producers":[]}`)
	d.logs(`ERROR: client\([^)]*\) - E_BAD_BODY IDENTIFY failed to decode JSON body - invalid character`)
}

// A last line without its end, or less than a magic, is no reason to say anything.
func TestIncompleteInput(t *testing.T) {
	d := start(t, testOptions())
	for _, sent := range []string{"", "  V", "  V1", "  V1PING"} {
		p := d.dial(sent)
		if err := p.conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		p.wantsEnd()
	}
}

// A silent peer is hidden after the timeout, stays connected, and is back with its next PING.
func TestSilentPeer(t *testing.T) {
	opts := testOptions()
	opts.InactiveProducerTimeout = time.Nanosecond
	d := start(t, opts)
	p := d.node("a", 1)
	p.wants("REGISTER t", "OK")
	d.shows("/lookup?topic=t", `{"channels":[],"producers":[]}`)
	d.get("/nodes", 200, `{"producers":[]}`)
	p.wants("PING", "OK")
}

// inMemory serves one end of a pipe with the TCP front alone, so that a test can own the clock.
func inMemory(t *testing.T, inactive time.Duration) (*registry.RegistrationDB, *peer, <-chan struct{}) {
	db := registry.New(inactive, time.Second)
	front := newTCPFront(db, log.Discard(), []byte("{}"), inactive)
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); defer theirs.Close(); front.serve(theirs) }()
	t.Cleanup(func() { ours.Close() })
	return db, &peer{t: t, conn: ours, r: lookup.NewReader(ours)}, done
}

// A connection that does not identify itself is closed after a minute without a command, however it
// drips.
func TestUnidentifiedConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, done := inMemory(t, time.Minute)
		time.Sleep(50 * time.Second)
		p.wants("PING", "OK")
		start := time.Now()
		dripped := make(chan struct{})
		go func() {
			defer close(dripped)
			for err := error(nil); err == nil; _, err = p.conn.Write([]byte("x")) {
				time.Sleep(10 * time.Second)
			}
		}()
		<-done
		if lasted := time.Since(start); lasted != unidentifiedTimeout {
			t.Errorf("closed after %s, want %s", lasted, unidentifiedTimeout)
		}
		<-dripped
	})
}

// An identified peer may be silent for longer than it takes to be hidden, but not for ever.
func TestIdentifiedConnectionIsKeptWhileSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const inactive = 5 * time.Minute
		db, p, done := inMemory(t, inactive)
		p.sends(identify("a", 1))
		p.answer()
		time.Sleep(inactive + time.Second)
		if nodes := db.Nodes(time.Now()); len(nodes) != 0 {
			t.Errorf("a silent peer is listed: %v", nodes)
		}
		p.wants("PING", "OK")
		if nodes := db.Nodes(time.Now()); len(nodes) != 1 {
			t.Errorf("a peer that pinged is not listed")
		}
		start := time.Now()
		<-done
		if lasted, limit := time.Since(start), 2*inactive+time.Minute; lasted != limit {
			t.Errorf("closed after %s, want %s", lasted, limit)
		}
	})
}

// A peer that never reads its answers costs a bounded time.
func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, done := inMemory(t, time.Minute)
		start := time.Now()
		go p.sends(strings.Repeat("PING\n", 10_000))
		<-done
		if lasted := time.Since(start); lasted > unidentifiedTimeout {
			t.Errorf("closed after %s", lasted)
		}
	})
}

// Durations without sense must not make deadlines that have passed.
func TestHugeInactiveTimeout(t *testing.T) {
	f := newTCPFront(nil, log.Discard(), nil, 1<<63-1)
	if f.silence <= 0 {
		t.Errorf("silence of %s", f.silence)
	}
}

// A newer connection from the same address hides what a broken network left behind.
func TestReconnectHidesTheOldConnection(t *testing.T) {
	d := start(t, testOptions())
	old := d.node("a", 4150)
	old.wants("REGISTER t", "OK")
	fresh := d.node("a", 4150)
	d.get("/lookup?topic=t", 200, `{"channels":[],"producers":[]}`)
	fresh.wants("REGISTER t", "OK")
	r := d.http("GET", "/lookup?topic=t")
	if got := strings.Count(r.body, "remote_address"); got != 1 || !strings.Contains(r.body, fresh.conn.LocalAddr().String()) {
		t.Errorf("%d producers: %s", got, r.body)
	}
}

// The bytes of an error reach a peer that is still sending.
func TestRefusalIsReadable(t *testing.T) {
	d := start(t, testOptions())
	p := d.dial(lookup.Magic + "NO\n")
	go func() { _, _ = io.Copy(p.conn, io.LimitReader(zeros{}, 1<<20)) }()
	if got := p.answer(); got != "E_INVALID invalid command NO" {
		t.Errorf("answer %q", got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
