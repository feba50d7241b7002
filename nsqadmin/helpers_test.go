package nsqadmin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client keeps no connections, so that none is left when leaks are looked for, and follows nothing.
var client = &http.Client{
	Timeout:       20 * time.Second,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// admin is a nsqadmin that runs.
type admin struct {
	*NSQAdmin
	t   *testing.T
	url string
}

func startAdmin(t *testing.T, change func(*Options)) *admin {
	t.Helper()
	o := NewOptions()
	o.HTTPAddress = "127.0.0.1:0"
	o.PollInterval = time.Hour // one collection, at the start
	change(o)
	n, err := New(o, log.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("nsqadmin: %v", err)
		}
	})
	return &admin{NSQAdmin: n, t: t, url: "http://" + n.HTTPAddr().String()}
}

// do makes a request; the headers are pairs. It returns the status and the body.
func (a *admin) do(method, path, body string, header ...string) (int, string) {
	a.t.Helper()
	resp, text := a.exchange(method, path, body, header...)
	return resp.StatusCode, text
}

// local makes a request without a connection, for bodies that nobody reads to the end: there a reset
// may overtake the answer.
func (a *admin) local(method, path, body string) (int, string) {
	a.t.Helper()
	handler, err := a.handler()
	if err != nil {
		a.t.Fatal(err)
	}
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.RemoteAddr = "127.0.0.1:5"
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	return answer.Code, answer.Body.String()
}

func (a *admin) exchange(method, path, body string, header ...string) (*http.Response, string) {
	a.t.Helper()
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp, string(text)
}

// fake is a nsqd or nsqlookupd that answers by path, notes what it was told, and fails what it has no
// answer to.
type fake struct {
	address string

	mu      sync.Mutex
	answers map[string]string // by path; guarded by mu
	posts   []string          // paths with their queries; guarded by mu
}

func startFake(t *testing.T, answers map[string]string) *fake {
	f := &fake{answers: answers}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.address = strings.TrimPrefix(server.URL, "http://")
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Method == http.MethodPost {
		f.posts = append(f.posts, req.URL.RequestURI())
	}
	answer, ok := f.answers[req.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		answer = `{"message":"TOPIC_NOT_FOUND"}`
	}
	fmt.Fprint(w, answer)
}

// accept makes requests to the paths succeed.
func (f *fake) accept(paths ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range paths {
		f.answers[path] = ""
	}
}

// told are the POSTs since the last call.
func (f *fake) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	posts := f.posts
	f.posts = nil
	return posts
}

// gone is an address at which nobody listens.
func gone(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
