package httpx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func newClient(t *testing.T, config ClientConfig) *Client {
	t.Helper()
	c := NewClient(config)
	t.Cleanup(c.Close)
	return c
}

func daemon(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func TestClientRequest(t *testing.T) {
	var got []string
	s := daemon(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		got = append(got, fmt.Sprintf("%s %s accept=%s type=%s body=%s", req.Method, req.RequestURI,
			req.Header.Get("Accept"), req.Header.Get("Content-Type"), body))
		io.WriteString(w, `{"channels":["a","b"]}`)
	})
	c := newClient(t, ClientConfig{})
	var answer struct{ Channels []string }
	for _, err := range []error{
		c.Get(t.Context(), s.URL+"/channels?topic=t", &answer),
		c.Post(t.Context(), s.URL+"/topic/create?topic=t", nil, nil),
		c.Post(t.Context(), s.URL+"/auth", []byte(`{}`), nil),
		c.Put(t.Context(), s.URL+"/config/x", []byte(`1`), nil),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if fmt.Sprint(answer.Channels) != "[a b]" {
		t.Errorf("decoded %v", answer)
	}
	const accept = " accept=application/vnd.nsq; version=1.0 "
	want := []string{
		"GET /channels?topic=t" + accept + "type= body=",
		"POST /topic/create?topic=t" + accept + "type= body=",
		"POST /auth" + accept + "type=application/json body={}",
		"PUT /config/x" + accept + "type=application/json body=1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestClientReusesConnections(t *testing.T) {
	peers := make(map[string]bool)
	s := daemon(t, func(w http.ResponseWriter, req *http.Request) {
		peers[req.RemoteAddr] = true
		w.WriteHeader(http.StatusNotFound) // failures too
	})
	c := newClient(t, ClientConfig{})
	for range 5 {
		c.Get(t.Context(), s.URL, nil)
	}
	if len(peers) != 1 {
		t.Errorf("5 requests took %d connections", len(peers))
	}
}

func TestClientStatusError(t *testing.T) {
	s := daemon(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"message":"TOPIC_NOT_FOUND"}`)
	})
	err := newClient(t, ClientConfig{}).Get(t.Context(), s.URL, nil)
	var status *StatusError
	if !errors.As(err, &status) || status.Code != 404 {
		t.Fatalf("got %#v", err)
	}
	if want := `got response 404 Not Found "{\"message\":\"TOPIC_NOT_FOUND\"}"`; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestClientBounds(t *testing.T) {
	s := daemon(t, func(w http.ResponseWriter, req *http.Request) {
		json.NewEncoder(w).Encode(strings.Repeat("x", len(req.URL.RawQuery)))
	})
	c := newClient(t, ClientConfig{MaxResponse: 13}) // quotes and newline included
	var text string
	if err := c.Get(t.Context(), s.URL+"?0123456789", &text); err != nil || text != "xxxxxxxxxx" {
		t.Errorf("at the limit: %q, %v", text, err)
	}
	if err := c.Get(t.Context(), s.URL+"?01234567890", &text); err == nil || !strings.Contains(err.Error(), "longer than 13 bytes") {
		t.Errorf("over the limit: %v", err)
	}
	broken := &StatusError{Status: "500 X", Body: []byte(strings.Repeat("x", 1<<20))}
	if n := len(broken.Error()); n > maxQuoted+100 {
		t.Errorf("error text has %d bytes", n)
	}
}

func TestClientRejectsBadJSON(t *testing.T) {
	s := daemon(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"a":1}trailing`) })
	c := newClient(t, ClientConfig{})
	var answer any
	if err := c.Get(t.Context(), s.URL+"/?secret=hush", &answer); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

func TestClientTimeout(t *testing.T) {
	release := make(chan struct{})
	s := daemon(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	c := newClient(t, ClientConfig{RequestTimeout: 20 * time.Millisecond})
	err := c.Get(t.Context(), s.URL, nil)
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Get(ctx, s.URL, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestClientFollowsToHTTPS(t *testing.T) {
	var secureHits atomic.Int32
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		secureHits.Add(1)
		body, _ := io.ReadAll(req.Body)
		if req.RequestURI == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"https_port":1}`)
			return
		}
		json.NewEncoder(w).Encode(req.Method + " " + req.RequestURI + " " + string(body))
	}))
	t.Cleanup(secure.Close)
	u, err := url.Parse(secure.URL)
	if err != nil {
		t.Fatal(err)
	}
	refusal := `{"message": "TLS_REQUIRED", "https_port": ` + u.Port() + `}`
	plain := daemon(t, func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		if answer := req.URL.Query().Get("answer"); answer != "" {
			io.WriteString(w, answer)
		} else {
			io.WriteString(w, refusal)
		}
	})
	c := newClient(t, ClientConfig{TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})

	var got string
	if err := c.Post(t.Context(), plain.URL+"/a?b=c", []byte("body"), &got); err != nil || got != "POST /a?b=c body" {
		t.Errorf("got %q, %v", got, err)
	}

	secureHits.Store(0)
	var status *StatusError
	if err := c.Get(t.Context(), plain.URL+"/forbidden", nil); !errors.As(err, &status) || secureHits.Load() != 1 {
		t.Errorf("403 over https: %v after %d tries, want one", err, secureHits.Load())
	}
	for _, answer := range []string{"no", "{}", `{"https_port":0}`, `{"https_port":-1}`, `{"https_port":65536}`, `{"https_port":"1"}`} {
		err := c.Get(t.Context(), plain.URL+"/?answer="+url.QueryEscape(answer), nil)
		if !errors.As(err, &status) || status.Code != 403 {
			t.Errorf("403 with %s: %v", answer, err)
		}
	}
}

// A daemon may correct a path of its own, but not send us elsewhere.
func TestClientRedirects(t *testing.T) {
	var strayed atomic.Bool
	other := daemon(t, func(http.ResponseWriter, *http.Request) { strayed.Store(true) })
	s := daemon(t, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/PING":
			http.Redirect(w, req, "/ping", http.StatusMovedPermanently)
		case "/ping":
			io.WriteString(w, `"pong"`)
		case "/loop":
			http.Redirect(w, req, "/loop", http.StatusMovedPermanently)
		default:
			http.Redirect(w, req, other.URL, http.StatusTemporaryRedirect)
		}
	})
	c := newClient(t, ClientConfig{})
	var got string
	if err := c.Get(t.Context(), s.URL+"/PING", &got); err != nil || got != "pong" {
		t.Errorf("same host: %q, %v", got, err)
	}
	for _, path := range []string{"/loop", "/away"} {
		var status *StatusError
		if err := c.Get(t.Context(), s.URL+path, nil); !errors.As(err, &status) || status.Code/100 != 3 {
			t.Errorf("%s: %v", path, err)
		}
	}
	if strayed.Load() {
		t.Error("the client went to another host")
	}
}

func TestClientErrorsKeepSecrets(t *testing.T) {
	s := daemon(t, nil)
	s.Close()
	c := newClient(t, ClientConfig{})
	err := c.Get(t.Context(), s.URL+"/auth?common_name=n&secret=hush", nil)
	want := `Get "` + s.URL + `/auth?common_name=n&secret=xxxxx": dial tcp ` + s.Listener.Addr().String() + ": connect: connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for endpoint, want := range map[string]string{
		"http://h/topics":                 "http://h/topics",
		"http://h/channels?topic=a%23b":   "http://h/channels?topic=a%23b",
		"http://h/?secret=hush":           "http://h/?secret=xxxxx",
		"http://h/?a=1&SECRET=hush&b=2":   "http://h/?a=1&SECRET=xxxxx&b=2",
		"http://h/?s%65cret=hush":         "http://h/?s%65cret=xxxxx",
		"http://h/?%zz=hush":              "http://h/?%zz=xxxxx",
		"http://h/?token=hush&token=hush": "http://h/?token=xxxxx&token=xxxxx",
		"http://u:hush@h/":                "http://u:xxxxx@h/",
		"http://h:x/?secret=hush":         "URL that cannot be parsed",
	} {
		if got := redact(endpoint); got != want {
			t.Errorf("redact(%s) is %s, want %s", endpoint, got, want)
		}
	}
	if err := c.Get(t.Context(), "http://h:x/?secret=hush", nil); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("http://u:p@h/a?secret=hush&b#c")
	f.Fuzz(func(t *testing.T, endpoint string) {
		const secret = "Hush-Hush-Hush"
		if strings.Contains(redact("http://h/?"+strings.ReplaceAll(endpoint, "#", "")+"&secret="+secret), secret) {
			t.Errorf("the secret is told after %q", endpoint)
		}
	})
}
