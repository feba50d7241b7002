//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// stopLimit is how long a stop may take with peers that do not let go: each server waits for its own
// for 5 seconds.
const stopLimit = 15 * time.Second

// Peers that say nothing, or not enough, neither hold up the end of a nsqd nor make it fail, and what
// was published is kept.
func TestStopWithSilentPeers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := startNSQD(t, folder)
	bodies := numbered(strings.Repeat("x", 10_000), 500) // more than the buffers of a connection hold
	producer := newProducer(t, d, nil)
	post(t, d, "/topic/create?topic=t", "")
	post(t, d, "/channel/create?topic=t&channel=c", "")
	if err := producer.MultiPublish("t", toBytes(bodies)); err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"", "  V2", "  V2PUB t\n\x00\x00", "  V2IDENTIFY\n\x00\x00\x00\x7f{", "  V2SUB t c\nRDY 500\n"} {
		dial(t, d.TCP, text)
	}
	for _, text := range []string{
		"", "GET /ping HTTP/1.1\r\nHo",
		"POST /pub?topic=t HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf",
		"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		dial(t, d.HTTP, text)
	}
	awaitChannel(t, d, "t", "c", func(c api.ChannelStats) bool { return c.InFlightCount > 0 })

	d.Signal(syscall.SIGTERM)
	if code := d.ExitWithin(stopLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	kept := readFolder(t, folder)["t:c"]
	got := map[string]bool{}
	for _, r := range kept {
		got[r.body] = true
	}
	if len(got) != len(bodies) || len(kept) != len(bodies) {
		t.Errorf("%d records, %d different ones, are kept of %d", len(kept), len(got), len(bodies))
	}
}

// A request that is still coming in holds up the end for a while, and no longer after a second
// signal. What was acknowledged stays.
func TestSecondSignalHurries(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := startNSQD(t, folder)
	post(t, d, "/pub?topic=t", "kept")
	conn := dial(t, d.HTTP, "POST /pub?topic=t HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
	// The daemon is reading the body as soon as it asks for it.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("answer %q, error %v", line, err)
	}
	dribbling := make(chan struct{})
	defer func() { <-dribbling }()
	defer conn.Close()
	go func() {
		defer close(dribbling)
		for {
			if _, err := io.WriteString(conn, "x"); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond) // the pace of the peer
		}
	}()

	d.Signal(syscall.SIGTERM)
	d.AwaitLog("HTTP: closing")
	d.Signal(syscall.SIGTERM)
	d.AwaitLog("received terminated while stopping, making haste")
	if code := d.ExitWithin(4 * time.Second); code != 0 { // less than without a hurry
		t.Errorf("exit code %d", code)
	}
	checkBodies(t, "t", readFolder(t, folder)["t"], []string{"kept"}, nil)
}

// A closed terminal or a log rotation is no reason to stop. A nsqd looks after its certificates.
func TestHangUpDoesNotStop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		*testutil.Daemon
		says string
	}{
		"nsqd":       {startNSQD(t, t.TempDir()), "certificates reloaded"},
		"nsqlookupd": {startLookupd(t), "received hangup, ignored"},
	} {
		d := test.Daemon
		d.Signal(syscall.SIGHUP)
		d.AwaitLog(test.says)
		if answer, err := request(client, "GET", d.URL("/ping"), nil); string(answer) != "OK" {
			t.Errorf("%s answers %q, error %v", name, answer, err)
		}
		d.Stop()
	}
}

var logTime = regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} `)

// A nsqd that cannot have its folder or its port says why, ends with code 1, and leaves the one that
// has them alone.
func TestSecondNSQDIsRefused(t *testing.T) {
	t.Parallel()
	folder, other := t.TempDir(), t.TempDir()
	d := startNSQD(t, folder)
	post(t, d, "/pub?topic=t", "kept")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nsqdArgs(folder), "failed to lock data-path: cannot flock directory " + folder +
			" - resource temporarily unavailable (possibly in use by another instance of nsqd)"},
		{nsqdArgs(other, "--tcp-address="+d.TCP), inUse(d.TCP)},
		{nsqdArgs(other, "--http-address="+d.HTTP), inUse(d.HTTP)},
	} {
		second := programs.Launch(t, "nsqd", test.args...)
		code := second.Exit()
		want := "[nsqd] FATAL: failed to instantiate nsqd - " + test.want + "\n"
		if log := logTime.ReplaceAllString(second.Log(), ""); code != 1 || !strings.HasSuffix(log, want) {
			t.Errorf("code %d, log\n%swant 1 and in the end\n%s", code, log, want)
		}
	}
	post(t, d, "/pub?topic=t", "kept too")
	d.Stop()
	checkBodies(t, "t", readFolder(t, folder)["t"], []string{"kept", "kept too"}, nil)
	if conn, err := net.Dial("tcp", d.TCP); err == nil {
		conn.Close()
		t.Error("somebody listens on the port of a nsqd that has ended")
	}
}

func inUse(address string) string {
	return fmt.Sprintf("listen (%s) failed - listen tcp %s: bind: address already in use", address, address)
}
