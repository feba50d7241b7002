package session

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"nsq/internal/auth"
	"nsq/internal/log"
)

// authServer is an auth server that says what it is told to. It keeps no connections: nobody waits
// for it, and time can pass, unless there is a question.
type authServer struct {
	*httptest.Server

	mu     sync.Mutex // guards the following
	status int
	body   string
	asked  []url.Values
	hangs  bool // it takes questions and does not answer
	taken  int  // questions that wait for ever
}

func newAuthServer(t testing.TB, body string) *authServer {
	s := &authServer{status: http.StatusOK, body: body}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.SetKeepAlivesEnabled(false)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *authServer) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, req.URL.Query())
	status, body, hangs := s.status, s.body, s.hangs
	s.mu.Unlock()
	if hangs {
		s.hold(1)
		<-req.Context().Done()
		s.hold(-1)
		return
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// says sets the answers to come.
func (s *authServer) says(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body = status, body
}

// hang makes it take questions and not answer.
func (s *authServer) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = true
}

func (s *authServer) hold(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += n
}

// hanging is how many questions are not answered at the moment.
func (s *authServer) hanging() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// questions are all so far.
func (s *authServer) questions() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.asked...)
}

// client is one that asks it, none for no server.
func (s *authServer) client(t testing.TB, logger *log.Logger) *auth.Client {
	t.Helper()
	if s == nil {
		return nil
	}
	client, err := auth.NewClient(auth.Config{
		Addresses: []string{strings.TrimPrefix(s.URL, "http://")}, Method: auth.MethodGet, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// authorized makes a node that needs AUTH, which is answered so.
func authorized(answer string) func(*setup) {
	return func(s *setup) { s.auth = answer }
}

// entry is an authorization of an answer.
func entry(topic, channel, permission string) string {
	return fmt.Sprintf(`{"topic":%q,"channels":[%q],"permissions":[%q]}`, topic, channel, permission)
}

// grant is an answer that is valid for so many seconds.
func grant(ttl int, entries ...string) string {
	return fmt.Sprintf(`{"ttl":%d,"identity":"me","identity_url":"http://id.example/me","authorizations":[%s]}`, ttl, strings.Join(entries, ","))
}

// everything is a grant that does not end.
func everything() string {
	return grant(1<<30, entry(".*", ".*", "publish"), entry(".*", ".*", "subscribe"))
}

const authCommand = "AUTH\n\x00\x00\x00\x06s3cret"

// authenticate sends an AUTH that is granted.
func (c *conn) authenticate() {
	c.t.Helper()
	c.send(authCommand)
	if kind, data := c.frame(); kind != 0 || !strings.HasPrefix(data, `{"identity":"me",`) {
		c.t.Fatalf("AUTH is answered by %v %q", kind, data)
	}
}
