//go:build unix

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// secured starts a nsqd that requires TLS of its TCP clients, with a certificate in the folder.
func secured(t *testing.T, authority *testutil.Authority, folder string, args ...string) *testutil.Daemon {
	t.Helper()
	cert, key := authority.Issue(t, "first").Write(t, folder)
	return startNSQD(t, t.TempDir(), append([]string{
		"--https-address=127.0.0.1:0", "--tls-cert=" + cert, "--tls-key=" + key, "--tls-required=tcp-https",
	}, args...)...)
}

// overTLS is a client that trusts the authority.
func overTLS(authority *testutil.Authority, change func(*nsq.Config)) func(*nsq.Config) {
	return func(c *nsq.Config) {
		c.TlsV1, c.TlsConfig = true, &tls.Config{RootCAs: authority.Pool()}
		if change != nil {
			change(c)
		}
	}
}

// Messages go through TLS with each compression, both ways, and the statistics tell of what kind a
// connection is; a client without TLS gets nowhere.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority := testutil.NewAuthority(t, "authority")
	d := secured(t, authority, t.TempDir())
	for name, change := range map[string]func(*nsq.Config){
		"plain":   nil,
		"snappy":  func(c *nsq.Config) { c.Snappy = true },
		"deflate": func(c *nsq.Config) { c.Deflate = true },
	} {
		t.Run(name, func(t *testing.T) {
			bodies := append(numbered(name, 50), strings.Repeat(name, 50_000))
			publish(t, newProducer(t, d, overTLS(authority, change)), name, bodies...)
			var got inbox
			consume(t, name, "c", overTLS(authority, change), got.HandleMessage, d)
			want := map[string]bool{}
			for _, body := range bodies {
				want[body] = true
			}
			for _, m := range got.await(t, len(bodies)) {
				delete(want, string(m.Body))
			}
			if len(want) > 0 {
				t.Errorf("%d bodies have not come", len(want))
			}
			peer := awaitChannel(t, d, name, "c", drained).Clients[0]
			if !peer.TLS || peer.TLSVersion != "TLS1.3" || peer.Snappy != (name == "snappy") || peer.Deflate != (name == "deflate") {
				t.Errorf("the connection is %+v", peer)
			}
		})
	}
	if err := newProducer(t, d, nil).Publish("t", []byte("x")); err == nil || !strings.Contains(err.Error(), "TLS required") {
		t.Errorf("publish without TLS: %v", err)
	}
}

var listeningHTTPS = regexp.MustCompile(`HTTPS: listening on (\S+)\n`)

// commonName is that of the certificate which a new connection is shown.
func commonName(t *testing.T, d *testutil.Daemon, authority *testutil.Authority) string {
	t.Helper()
	found := listeningHTTPS.FindStringSubmatch(d.Log())
	if found == nil {
		t.Fatal("HTTPS is not served")
	}
	conn, err := tls.Dial("tcp", found[1], &tls.Config{RootCAs: authority.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// A new certificate is in use after SIGHUP; connections live on, and files that are no good change
// nothing.
func TestHangUpReloadsCertificates(t *testing.T) {
	t.Parallel()
	authority := testutil.NewAuthority(t, "authority")
	folder := t.TempDir()
	d := secured(t, authority, folder)
	d.AwaitLog("HTTPS: listening on ")
	producer := newProducer(t, d, overTLS(authority, nil))
	publish(t, producer, "t", "before")

	cert, _ := authority.Issue(t, "second").Write(t, folder)
	d.Signal(syscall.SIGHUP)
	d.AwaitLog("certificates reloaded")
	if got := commonName(t, d, authority); got != "second" {
		t.Errorf("met %q after SIGHUP", got)
	}
	if err := os.WriteFile(cert, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Signal(syscall.SIGHUP)
	d.AwaitLog("failed to reload certificates - ")
	if got := commonName(t, d, authority); got != "second" {
		t.Errorf("met %q after SIGHUP with a broken file", got)
	}

	publish(t, producer, "t", "after")
	stats, err := ask[api.Stats](d, "/stats?format=json")
	if err != nil || len(stats.Producers) != 1 || stats.Producers[0].PubCounts[0].Count != 2 {
		t.Errorf("the producer has not kept its connection: %+v, %v", stats.Producers, err)
	}
	d.Stop()
}

// A client of go-nsq authenticates, and loses its subscription when it loses the right to it: then
// others get what it held.
func TestAuth(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rights := `{"topic":"^t$","channels":[".*"],"permissions":["subscribe","publish"]}`
		if req.FormValue("secret") == "loser" && revoked.Load() {
			rights = ""
		}
		fmt.Fprintf(w, `{"ttl":1,"identity":%q,"authorizations":[%s]}`, req.FormValue("secret"), rights)
	}))
	t.Cleanup(server.Close)
	d := startNSQD(t, t.TempDir(), "--auth-http-address="+strings.TrimPrefix(server.URL, "http://"))
	as := func(secret string) func(*nsq.Config) {
		return func(c *nsq.Config) { c.AuthSecret = secret }
	}
	producer := newProducer(t, d, as("producer"))
	publish(t, producer, "t", "held")
	if err := newProducer(t, d, as("producer")).Publish("other", []byte("x")); err == nil || !strings.Contains(err.Error(), "E_UNAUTHORIZED") {
		t.Errorf("publish to another topic: %v", err)
	}

	loser := &holder{}
	consume(t, "t", "c", as("loser"), loser.HandleMessage, d)
	t.Cleanup(loser.release)
	loser.await(t, 1)
	var winner inbox
	consume(t, "t", "c", as("winner"), winner.HandleMessage, d)
	revoked.Store(true)
	if m := winner.await(t, 1)[0]; string(m.Body) != "held" || m.Attempts != 2 {
		t.Errorf("got %q, attempt %d", m.Body, m.Attempts)
	}
	awaitChannel(t, d, "t", "c", func(c api.ChannelStats) bool {
		return len(c.Clients) == 1 && c.Clients[0].Authed && c.Clients[0].AuthIdentity == "winner"
	})
}

// With JSON as the format each line of the log is an object of time, level and message, whatever
// happens.
func TestLogInJSON(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(...string) *testutil.Daemon{
		"nsqd": func(args ...string) *testutil.Daemon {
			return programs.Launch(t, "nsqd", nsqdArgs(t.TempDir(), args...)...)
		},
		"nsqlookupd": func(args ...string) *testutil.Daemon { return programs.Launch(t, "nsqlookupd", args...) },
	} {
		d := start("--log-format=json", "--log-level=debug")
		d.AwaitLog("HTTP: listening on ")
		d.Signal(syscall.SIGHUP)
		d.AwaitLog("received hangup")
		d.Stop()
		count := 0
		for line := range strings.Lines(d.Log()) {
			var entry struct {
				Time       time.Time
				Level, Msg string
			}
			decoder := json.NewDecoder(strings.NewReader(line))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&entry); err != nil || entry.Time.IsZero() || entry.Msg == "" ||
				!strings.Contains("DEBUG INFO WARNING ERROR", entry.Level) {
				t.Errorf("%s logs %q, %v", name, line, err)
			}
			count++
		}
		if count < 5 {
			t.Errorf("%s logs %d lines", name, count)
		}
	}
}
