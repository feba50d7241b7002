package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// The requests are to the byte what auth servers know.
func TestRequest(t *testing.T) {
	var got string
	s := newFake(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		got = fmt.Sprintf("%s %s|%s|%s|%s", req.Method, req.RequestURI, req.Header.Get("Accept"), req.Header.Get("Content-Type"), body)
		io.WriteString(w, good)
	})
	host := strings.TrimPrefix(s.URL, "http://")
	const accept = "application/vnd.nsq; version=1.0"
	odd := Request{CommonName: "a b&c", RemoteIP: "::1", Secret: "x+y=&\xff\n\u00e9", TLS: true}
	const oddQuery = "common_name=a+b%26c&remote_ip=%3A%3A1&secret=x%2By%3D%26%FF%0A%C3%A9&tls=true"
	for _, test := range []struct {
		method, address string
		request         Request
		want            string
	}{
		{MethodGet, host, request, "GET /auth?common_name=me&remote_ip=127.0.0.1&secret=s3cret&tls=false|" + accept + "||"},
		{MethodGet, host, Request{}, "GET /auth?common_name=&remote_ip=&secret=&tls=false|" + accept + "||"},
		{MethodGet, host, odd, "GET /auth?" + oddQuery + "|" + accept + "||"},
		{MethodGet, s.URL, odd, "GET /?" + oddQuery + "|" + accept + "||"},
		{MethodGet, s.URL + "/a%2Fb/", odd, "GET /a%2Fb/?" + oddQuery + "|" + accept + "||"},
		{MethodGet, s.URL + "/x?", odd, "GET /x?" + oddQuery + "|" + accept + "||"},
		{MethodGet, s.URL + "/x?key=1%202", odd, "GET /x?key=1%202&" + oddQuery + "|" + accept + "||"},
		{MethodGet, s.URL + "/x#part", odd, "GET /x?" + oddQuery + "|" + accept + "||"},
		{MethodPost, host, Request{RemoteIP: "127.0.0.1", Secret: "s"}, "POST /auth|" + accept + "|application/json|" +
			`{"common_name":[""],"remote_ip":["127.0.0.1"],"secret":["s"],"tls":["false"]}`},
		{MethodPost, s.URL + "/x?key=1", Request{CommonName: `"`, Secret: "\n", TLS: true}, "POST /x?key=1|" + accept + "|application/json|" +
			`{"common_name":["\""],"remote_ip":[""],"secret":["\n"],"tls":["true"]}`},
	} {
		c, _ := newClient(t, Config{Addresses: []string{test.address}, Method: test.method})
		if _, err := c.Query(t.Context(), test.request); err != nil {
			t.Errorf("%s %s: %v", test.method, test.address, err)
		}
		if got != test.want {
			t.Errorf("%s %s: got\n%s\nwant\n%s", test.method, test.address, got, test.want)
		}
	}
}

func TestGrantOfAnAnswer(t *testing.T) {
	s := newFake(t, answering(200, good))
	c, out := newClient(t, Config{Addresses: []string{s.URL}})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.now = func() time.Time {
		if s.asked.Load() == 0 {
			t.Error("the time was taken before the answer came")
		}
		return at
	}
	g, err := c.Query(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if g.Identity() != "me" || g.IdentityURL() != "http://id.example/me" || g.Entries() != 1 {
		t.Errorf("%q %q %d", g.Identity(), g.IdentityURL(), g.Entries())
	}
	if !g.Expires().Equal(at.Add(time.Minute)) || g.Expired(at.Add(time.Minute)) || !g.Expired(at.Add(time.Minute+1)) {
		t.Errorf("expires at %v", g.Expires())
	}
	if !g.Allows(Subscribe, "t", "ch") || g.Allows(Publish, "u", "") {
		t.Error("allows other things than the answer")
	}
	if out.String() != "" {
		t.Errorf("logged %s", out)
	}
}

// Each server is tried, in the order of the ring from the one that chance picked, until one
// answers.
func TestRing(t *testing.T) {
	const servers = 4
	var order []int
	var works int
	var addresses []string
	for i := range servers {
		s := newFake(t, func(w http.ResponseWriter, req *http.Request) {
			order = append(order, i)
			if i != works {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			io.WriteString(w, good)
		})
		addresses = append(addresses, s.URL)
	}
	c, out := newClient(t, Config{Addresses: addresses})
	for first := range servers {
		c.first = func(n int) int {
			if n != servers {
				t.Errorf("one of %d", n)
			}
			return first
		}
		for works = range servers {
			order = nil
			if _, err := c.Query(t.Context(), request); err != nil {
				t.Error(err)
			}
			var want []int
			for i := first; ; i = (i + 1) % servers {
				if want = append(want, i); i == works {
					break
				}
			}
			if fmt.Sprint(order) != fmt.Sprint(want) {
				t.Errorf("from %d, %d works: asked %v, want %v", first, works, order, want)
			}
		}
	}
	// 0+1+2+3 failures from each start, each logged since another server made up for it.
	if n := strings.Count(out.String(), "WARNING: AUTH: another server answered instead of http://127.0.0.1:"); n != 24 {
		t.Errorf("%d warnings", n)
	}

	works, order = -1, nil
	c.first = func(int) int { return 2 }
	_, err := c.Query(t.Context(), request)
	if fmt.Sprint(order) != "[2 3 0 1]" {
		t.Errorf("asked %v", order)
	}
	for _, address := range addresses {
		expectRefusal(t, err, address+": answered with status 500")
	}
}

// Without the tests' choice every server is the first at times.
func TestStartIsRandom(t *testing.T) {
	first, second := newFake(t, answering(200, good)), newFake(t, answering(200, good))
	c, _ := newClient(t, Config{Addresses: []string{first.URL, second.URL}})
	fresh, err := NewClient(c.config)
	if err != nil {
		t.Fatal(err)
	}
	c.first = fresh.first
	for range 64 {
		if _, err := c.Query(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if first.asked.Load() == 0 || second.asked.Load() == 0 {
		t.Errorf("asked %d and %d times", first.asked.Load(), second.asked.Load())
	}
}

// Only status 200 is an answer.
func TestStatus(t *testing.T) {
	for _, status := range []int{201, 202, 204, 206, 300, 302, 304, 400, 401, 403, 404, 429, 500, 503} {
		s := newFake(t, answering(status, good))
		c, _ := newClient(t, Config{Addresses: []string{s.URL}})
		_, err := c.Query(t.Context(), request)
		expectRefusal(t, err, fmt.Sprint("status ", status))
		if refused := status == 401 || status == 403; errors.Is(err, ErrRefused) != refused {
			t.Errorf("%d: %v, want it refused: %v", status, err, refused)
		}
		if s.asked.Load() != 1 {
			t.Errorf("%d: asked %d times", status, s.asked.Load())
		}
	}
}

// A server that wants https is asked there, once, with the same query.
func TestHTTPSPort(t *testing.T) {
	for _, method := range []string{MethodGet, MethodPost} {
		var plain, repeated string
		note := func(at *string, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			*at = req.Method + req.RequestURI + string(body)
		}
		secure, config := newSecureFake(t, func(w http.ResponseWriter, req *http.Request) {
			note(&repeated, req)
			io.WriteString(w, good)
		})
		_, port, err := net.SplitHostPort(secure.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s := newFake(t, func(w http.ResponseWriter, req *http.Request) {
			note(&plain, req)
			answering(403, `{"message": "TLS_REQUIRED", "https_port": `+port+`}`)(w, req)
		})
		c, _ := newClient(t, Config{Addresses: []string{s.URL + "/a?b=c"}, Method: method, TLS: func() *tls.Config { return config }})
		if _, err := c.Query(t.Context(), request); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if plain != repeated || plain == "" {
			t.Errorf("asked %q, then %q", plain, repeated)
		}

		distrustful, _ := newClient(t, Config{Addresses: []string{s.URL}, Method: method})
		_, err = distrustful.Query(t.Context(), request)
		expectRefusal(t, err, "certificate signed by unknown authority")
	}
	for _, body := range []string{``, `{}`, `{"https_port": 0}`, `{"https_port": 65536}`, `{"https_port": "4152"}`, `null`} {
		s := newFake(t, answering(403, body))
		c, _ := newClient(t, Config{Addresses: []string{s.URL}})
		_, err := c.Query(t.Context(), request)
		expectRefusal(t, err, "refused with status 403")
		if s.asked.Load() != 1 {
			t.Errorf("%s: asked %d times", body, s.asked.Load())
		}
	}
}

// Over https a 403 is what it says, even with a port.
func TestHTTPSIsNotRepeated(t *testing.T) {
	f, config := newSecureFake(t, answering(403, `{"https_port": 1}`))
	c, _ := newClient(t, Config{Addresses: []string{f.URL}, TLS: func() *tls.Config { return config }})
	_, err := c.Query(t.Context(), request)
	expectRefusal(t, err, "refused with status 403")
	if f.asked.Load() != 1 {
		t.Errorf("asked %d times", f.asked.Load())
	}
}

// A new TLS configuration is used from the next query on, and connections that the old one trusted
// are not.
func TestTLSConfigurationOfTheMoment(t *testing.T) {
	f, trusting := newSecureFake(t, answering(200, good))
	distrustful := &tls.Config{RootCAs: x509.NewCertPool()}
	config := trusting
	c, _ := newClient(t, Config{Addresses: []string{f.URL}, TLS: func() *tls.Config { return config }})
	for range 3 {
		if _, err := c.Query(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if f.connections() != 1 {
		t.Errorf("%d connections under one configuration", f.connections())
	}
	config = distrustful
	_, err := c.Query(t.Context(), request)
	expectRefusal(t, err, "certificate signed by unknown authority")
	config = trusting
	if _, err := c.Query(t.Context(), request); err != nil {
		t.Error(err)
	}
}

// Connections are kept, after failures too.
func TestReuse(t *testing.T) {
	for _, handler := range []http.HandlerFunc{answering(200, good), answering(500, "sorry"), answering(200, "{}")} {
		s := newFake(t, handler)
		c, _ := newClient(t, Config{Addresses: []string{s.URL}})
		for range 10 {
			c.Query(t.Context(), request)
		}
		if s.asked.Load() != 10 || s.connections() != 1 {
			t.Errorf("%d queries over %d connections", s.asked.Load(), s.connections())
		}
	}
}

func TestNewClientErrors(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Method: "GET", Addresses: []string{"h:1"}}, `auth request method "GET" is neither get nor post`},
		{Config{Method: MethodGet}, "no address of an auth server"},
		{Config{Method: MethodGet, Addresses: []string{"h:1", "ftp://h/s3cret"}}, "address 2 of auth servers: neither host:port nor a URL of http or https"},
		{Config{Method: MethodGet, Addresses: []string{""}}, "address 1 of auth servers: neither"},
		{Config{Method: MethodGet, Addresses: []string{"http://:4181/s3cret"}}, "address 1 of auth servers: neither"},
		{Config{Method: MethodGet, Addresses: []string{"http://s3cret@h:port/"}}, "address 1 of auth servers: neither"},
		{Config{Method: MethodGet, Addresses: []string{"://s3cret"}}, "address 1 of auth servers: neither"},
	} {
		_, err := NewClient(test.config)
		expectRefusal(t, err, test.want)
	}
}

// A request can be printed.
func TestRequestKeepsItsSecret(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{request, &request, struct{ R Request }{request}} {
			got := fmt.Sprintf(verb, value)
			if strings.Contains(got, secret) || strings.Contains(got, fmt.Sprintf("%x", secret)) || !strings.Contains(got, `"127.0.0.1"`) {
				t.Errorf("%s: %s", verb, got)
			}
		}
	}
}

// Many sessions ask at a time, while the TLS configuration changes.
func TestConcurrentQueries(t *testing.T) {
	s := newFake(t, answering(200, good))
	var changes sync.Mutex
	config := &tls.Config{}
	c, _ := newClient(t, Config{Addresses: []string{s.URL}, TLS: func() *tls.Config {
		changes.Lock()
		defer changes.Unlock()
		return config
	}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := c.Query(t.Context(), request); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		changes.Lock()
		config = &tls.Config{}
		changes.Unlock()
		if _, err := c.Query(t.Context(), request); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}
