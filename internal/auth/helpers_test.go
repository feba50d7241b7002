package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is one that shows itself however it is written.
const secret = "s3cret"

var request = Request{CommonName: "me", RemoteIP: "127.0.0.1", Secret: secret}

const good = `{"ttl":60,"identity":"me","identity_url":"http://id.example/me",` +
	`"authorizations":[{"topic":"^t$","channels":[".*"],"permissions":["subscribe","publish"]}]}`

// fake is an auth server that counts what it is asked.
type fake struct {
	*httptest.Server
	asked atomic.Int64
	peers sync.Map // remote addresses
}

func newFake(t *testing.T, handler http.HandlerFunc) *fake {
	f := unstarted(t, handler)
	f.Start()
	return f
}

// newSecureFake returns one of https, and the configuration of a client that trusts it.
func newSecureFake(t *testing.T, handler http.HandlerFunc) (*fake, *tls.Config) {
	f := unstarted(t, handler)
	f.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(f.Certificate())
	return f, &tls.Config{RootCAs: roots}
}

func unstarted(t *testing.T, handler http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewUnstartedServer(f.counting(handler))
	f.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // clients that do not trust it are part of the tests
	t.Cleanup(f.Close)
	return f
}

func (f *fake) counting(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		f.asked.Add(1)
		f.peers.Store(req.RemoteAddr, true)
		handler(w, req)
	}
}

func (f *fake) connections() (n int) {
	f.peers.Range(func(any, any) bool { n++; return true })
	return n
}

// answering is a handler that says always the same.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// newClient returns one that begins with the first address, and what it logs.
func newClient(t *testing.T, config Config) (*Client, *lines) {
	t.Helper()
	out := &lines{}
	config.Logger = log.New(out, "", log.Debug)
	if config.Method == "" {
		config.Method = MethodGet
	}
	if config.RequestTimeout == 0 {
		config.RequestTimeout = 20 * time.Second
	}
	c, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	c.first = func(int) int { return 0 }
	t.Cleanup(c.Close)
	return c, out
}

// expectRefusal wants an error that has the text and not the secret.
func expectRefusal(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, want one with %q", text)
	case !strings.Contains(err.Error(), text):
		t.Errorf("error %q, want it to have %q", err, text)
	case strings.Contains(err.Error(), secret):
		t.Errorf("error %q has the secret", err)
	}
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

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
