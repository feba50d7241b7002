package nsqd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// authServer permits everything, or does not answer.
type authServer struct {
	*httptest.Server
	silent bool // it does not answer; set before it is asked

	mu     sync.Mutex // guards the following
	asked  url.Values
	number int
}

func newAuthServer(t *testing.T) *authServer {
	s := &authServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.asked = req.URL.Query()
		s.number++
		s.mu.Unlock()
		if s.silent {
			<-req.Context().Done()
			return
		}
		io.WriteString(w, `{"ttl":60,"identity":"me","identity_url":"u","authorizations":[{"topic":".*","channels":[".*"],"permissions":["subscribe","publish"]}]}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *authServer) address() string { return strings.TrimPrefix(s.URL, "http://") }

// last is the last question.
func (s *authServer) last() url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *authServer) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// A nsqd stops without waiting for an auth server that does not answer, and does not tell the client
// that it was refused.
func TestStopDuringAuth(t *testing.T) {
	server := newAuthServer(t)
	server.silent = true
	d := launch(t, func(o *Options) {
		o.AuthHTTPAddresses = []string{server.address()}
		o.HTTPClientConnectTimeout, o.HTTPClientRequestTimeout = 0, 0 // no end by themselves
	})
	conn := d.dial("AUTH\n\x00\x00\x00\x06s3cret")
	eventually(t, "the question", func() bool { return server.questions() > 0 })
	d.stop()
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range []string{"AUTH failed", "did not let go"} {
		if d.log.has(text) {
			t.Errorf("%q in the log", text)
		}
	}
}
