package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
)

func names(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

// Every message is one request, by default a POST, over connections that are used again, and is finished.
func TestPost(t *testing.T) {
	const total, handlers = 60, 4
	source, target := testnode.StartNSQD(t), newSite(t)
	target.answer = func(int, string) int { return 201 }
	r := start(t, source, "--post="+target.URL+"/in?k=v", "--header=X-A: b", "--header=Host: example.org", fmt.Sprint("--n=", handlers))
	messages := names("m", total)
	source.Publish("t", messages...)
	target.await(total)
	c := source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if got := target.bodies(); !slices.Equal(got, messages) || c.RequeueCount != 0 {
		t.Errorf("%d requeued, bodies %q", c.RequeueCount, got)
	}
	if got := target.got()[0]; got.method != "POST" || got.uri != "/in?k=v" || got.host != "example.org" ||
		got.header.Get("X-A") != "b" || got.header.Get("Content-Type") != defaultContentType {
		t.Errorf("request %+v", got)
	}
	if n := target.connections.Load(); n > 2*handlers { // one more may be opened while another becomes free
		t.Errorf("%d connections for %d handlers", n, handlers)
	}
}

// With --get the message is in the address, and only 200 is a success.
func TestGet(t *testing.T) {
	source, target := testnode.StartNSQD(t), newSite(t)
	target.answer = func(nth int, _ string) int { return []int{204, 201, 200}[nth-1] }
	r := start(t, source, "--get="+target.URL+"/in?e=%20&d=%s")
	source.Publish("t", "a b")
	target.await(3)
	c := source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	got := target.got()
	if len(got) != 3 || c.RequeueCount != 2 || got[0].method != "GET" || got[0].uri != "/in?e=%20&d=a+b" || got[0].body != "" {
		t.Errorf("%d requeued, requests %+v", c.RequeueCount, got)
	}
	if !strings.Contains(r.Log.String(), " Handler returned error (got status code 204) for msg ") {
		t.Errorf("log %s", r.Log.String())
	}
}

// Nothing is lost to an endpoint that fails in all its ways, with more attempts than the client by
// itself would make.
func TestFailures(t *testing.T) {
	t.Parallel()
	const total, ways = 20, 8
	source, target := testnode.StartNSQD(t), newSite(t)
	ledger := testutil.NewLedger("endpoint")
	var mu sync.Mutex
	attempts := map[string]int{}
	slow := make(chan struct{})
	target.answer = func(_ int, body string) int {
		mu.Lock()
		attempts[body]++
		attempt := attempts[body]
		mu.Unlock()
		switch attempt {
		case 1:
			if body == "m000" {
				<-slow
			}
			return 500
		case 2:
			return reset
		case 3:
			return 404
		case 4:
			return 429
		case 5:
			return 302
		case 6:
			return 400
		case 7:
			return 503
		}
		ledger.Finished("endpoint", body)
		return 200
	}
	r := start(t, source, "--post="+target.URL, "--n=20", "--http-client-request-timeout=500ms", "--consumer-opt=max_backoff_duration,0s")
	messages := names("m", total)
	ledger.Sending(messages...)
	source.Publish("t", messages...)
	ledger.Acknowledged(messages...)
	testutil.Eventually(t, func() error {
		if left := ledger.Left("endpoint"); left > 0 {
			return fmt.Errorf("%d messages are missing", left)
		}
		return nil
	})
	c := source.AwaitChannel("t", name, testnode.Drained)
	close(slow)
	r.End(0)
	if b := ledger.Balance("endpoint"); len(b.Lost)+len(b.Duplicates) > 0 {
		t.Error(b)
	}
	if want := uint64(total * (ways - 1)); uint64(c.RequeueCount) != want {
		t.Errorf("%d requeued, want %d", c.RequeueCount, want)
	}
	for _, text := range []string{"got status code 302", "Client.Timeout exceeded while awaiting headers", "EOF"} {
		if !strings.Contains(r.Log.String(), text) {
			t.Errorf("%q is not in the log", text)
		}
	}
}

// What was published while the endpoint was away arrives when it is back.
func TestEndpointAway(t *testing.T) {
	t.Parallel()
	const total = 50
	source, target := testnode.StartNSQD(t), newSite(t)
	r := start(t, source, "--post="+target.URL)
	source.Publish("t", "before")
	source.AwaitChannel("t", name, testnode.Drained)
	target.Close()
	messages := names("m", total)
	source.Publish("t", messages...)
	r.Log.Await(t, "connect: connection refused")
	source.AwaitChannel("t", name, func(c api.ChannelStats) bool { return c.RequeueCount > 5 })
	back := newSiteAt(t, target.Listener.Addr().String())
	back.await(total)
	source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if got := back.bodies(); !slices.Equal(got, messages) {
		t.Errorf("bodies %q", got)
	}
}

// A status that says that the message is wrong moves it to the dead-letter topic at once; without one,
// or if the flag says otherwise, it is tried again like others.
func TestRejected(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args      string
		dead      int
		attempts  int
		successes int
	}{
		{"--dead-letter-topic=dead", 1, 1, 1},
		{"--dead-letter-topic=dead --mode=all", 1, 1, 1},
		{"--dead-letter-topic=dead --dead-letter-status=", 0, 4, 2},
		{"--dead-letter-topic=dead --dead-letter-status=413", 0, 4, 2},
		{"--dead-letter-topic=dead --max-attempts=2 --dead-letter-status=413", 1, 2, 1},
		{"", 0, 4, 2},
	} {
		source, target := testnode.StartNSQD(t), newSite(t)
		var mu sync.Mutex
		attempts, successes := 0, 0
		target.answer = func(_ int, body string) int {
			mu.Lock()
			defer mu.Unlock()
			if body == "bad" {
				if attempts++; attempts < 4 {
					return 422
				}
			}
			successes++
			return 200
		}
		source.Create("dead", "c")
		r := start(t, source, append(strings.Fields(test.args), "--post="+target.URL)...)
		source.Publish("t", "bad", "good")
		target.await(test.attempts + 1)
		source.AwaitChannel("t", name, testnode.Drained)
		r.End(0)
		if got := source.MessageCount("dead"); got != test.dead || attempts != test.attempts || successes != test.successes {
			t.Errorf("%q: %d dead letters, %d attempts, %d successes; want %d, %d, %d",
				test.args, got, attempts, successes, test.dead, test.attempts, test.successes)
		}
	}
}

// The modes: who gets how many of four messages, one after the other, if the second address is down.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode    string
		got     [3]int // requests of each address
		warning bool
	}{
		{mode: "hostpool", got: [3]int{2, 1, 2}},    // 1, the dead 2, 3, 1, 3
		{mode: "round-robin", got: [3]int{2, 2, 2}}, // the dead 2, 3, 1, the dead 2, 3, 1
		{mode: "all", got: [3]int{5, 5, 4}},         // the first message again, since it has failed
		{mode: "roundrobin", got: [3]int{5, 5, 4}, warning: true},
	} {
		source := testnode.StartNSQD(t)
		sites := []*site{newSite(t), newSite(t), newSite(t)}
		failures := 1
		if test.mode == "round-robin" {
			failures = 2
		}
		sites[1].answer = func(nth int, _ string) int {
			if nth <= failures {
				return 500
			}
			return 200
		}
		r := start(t, source, "--mode="+test.mode, "--n=1", "--post="+sites[0].URL, "--post="+sites[1].URL, "--post="+sites[2].URL)
		for i, message := range names("m", 4) {
			source.Publish("t", message)
			source.AwaitChannel("t", name, func(c api.ChannelStats) bool { return testnode.Drained(c) && int(c.MessageCount) == i+1 })
		}
		r.End(0)
		var got [3]int
		for i, s := range sites {
			got[i] = len(s.got())
		}
		if got != test.got {
			t.Errorf("%s: requests %v, want %v", test.mode, got, test.got)
		}
		if warned := strings.Contains(r.Log.String(), `WARNING: --mode must be one of ["hostpool" "round-robin" "epsilon-greedy"], is "roundrobin"`); warned != test.warning {
			t.Errorf("%s: warned %v; log %s", test.mode, warned, r.Log.String())
		}
	}
}

// An address that rejects a message does not keep it from the other addresses.
func TestRejectedByOne(t *testing.T) {
	source := testnode.StartNSQD(t)
	strict, other := newSite(t), newSite(t)
	strict.answer = func(int, string) int { return 400 }
	source.Create("dead", "c")
	r := start(t, source, "--mode=all", "--dead-letter-topic=dead", "--post="+strict.URL, "--post="+other.URL)
	source.Publish("t", "m")
	source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if n := source.MessageCount("dead"); n != 1 || len(strict.got()) != 1 || len(other.got()) != 1 {
		t.Errorf("%d dead letters, %d and %d requests", n, len(strict.got()), len(other.got()))
	}
}

// Messages that are not picked are finished without a request.
func TestSample(t *testing.T) {
	source, target := testnode.StartNSQD(t), newSite(t)
	r := start(t, source, "--sample=0", "--post="+target.URL)
	source.Publish("t", names("m", 10)...)
	source.AwaitChannel("t", name, func(c api.ChannelStats) bool { return testnode.Drained(c) && c.MessageCount == 10 })
	r.End(0)
	if got := target.bodies(); len(got) > 0 {
		t.Errorf("bodies %q", got)
	}
}

// A request may take longer than the timeout of its message, which is not delivered a second time.
func TestSlowRequest(t *testing.T) {
	t.Parallel()
	source, target := testnode.StartNSQD(t), newSite(t)
	target.answer = func(int, string) int {
		time.Sleep(1600 * time.Millisecond) // how slow it is, not what the test waits for
		return 200
	}
	r := start(t, source, "--consumer-opt=msg_timeout,1s", "--post="+target.URL)
	source.Publish("t", "m")
	target.await(1)
	c := source.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if n := len(target.got()); n != 1 || c.TimeoutCount != 0 {
		t.Errorf("%d requests, %d timeouts", n, c.TimeoutCount)
	}
}

// The latency of successes, and only of these, is in the log.
func TestStatusLines(t *testing.T) {
	source, target := testnode.StartNSQD(t), newSite(t)
	target.answer = func(nth int, _ string) int {
		if nth == 1 {
			return 500
		}
		return 200
	}
	r := start(t, source, "--status-every=2", "--post="+target.URL)
	source.Publish("t", "a", "b")
	source.AwaitChannel("t", name, testnode.Drained)
	if strings.Contains(r.Log.String(), "finished") {
		t.Errorf("a line after two successes: %s", r.Log.String())
	}
	source.Publish("t", "c")
	r.Log.Await(t, " [aggregate]: finished 2 - 99th: ")
	r.End(0)
	if !strings.Contains(r.Log.String(), " Warning: use more than 100 status values for accurate percentiles (configured with 2)\n") {
		t.Errorf("no warning in %s", r.Log.String())
	}
}

// Redirects are followed as long as the message goes with them, or is not needed any more.
func TestRedirects(t *testing.T) {
	var target *site
	mux := http.NewServeMux()
	for path, status := range map[string]int{"/301": 301, "/302": 302, "/303": 303, "/307": 307, "/308": 308} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL+"/end", status) })
	}
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
	})
	site := newSite(t)
	site.Config.Handler = mux
	for _, test := range []struct {
		path, method string // of the last request; empty: the message did not get there
		failure      string
	}{
		{"/301", "", "got status code 301"},
		{"/302", "", "got status code 302"},
		{"/303", "GET", ""},
		{"/307", "POST", ""},
		{"/308", "POST", ""},
		{"/loop", "", `Post "/loop": stopped after 10 redirects`},
	} {
		target = newSite(t)
		r, err := newPosts([]string{site.URL + test.path}, http.Header{}, "text/x")
		if err != nil {
			t.Fatal(err)
		}
		client := newClient(0, 0, 1)
		e := endpoint{client: client, requests: r}
		failure := ""
		if err := e.send(0, []byte("m")); err != nil {
			failure = err.Error()
		}
		client.CloseIdleConnections()
		method, body := "", ""
		if got := target.got(); len(got) > 0 {
			method, body = got[0].method, got[0].body
		}
		if failure != test.failure || method != test.method || method == "POST" && body != "m" {
			t.Errorf("%s: error %q, want %q; method %q with body %q, want %q", test.path, failure, test.failure, method, body, test.method)
		}
	}
}

// An answer without end is not read to its end, and one that breaks off is a failure.
func TestStrangeAnswers(t *testing.T) {
	site := newSite(t)
	site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/short" {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "too short")
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	client := newClient(time.Second, 0, 1)
	defer client.CloseIdleConnections()
	r, err := newPosts([]string{site.URL + "/endless", site.URL + "/short"}, http.Header{}, "text/x")
	if err != nil {
		t.Fatal(err)
	}
	e := endpoint{client: client, requests: r}
	if err := e.send(0, nil); err != nil {
		t.Errorf("endless answer: %v", err)
	}
	if err := e.send(1, nil); err == nil || err.Error() != "read answer: unexpected EOF" {
		t.Errorf("answer that breaks off: %v", err)
	}
}

// A message in an address does not fill the log.
func TestShorten(t *testing.T) {
	r, err := newGets([]string{"http://127.0.0.1:1/?%s"}, http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	e := endpoint{client: newClient(time.Second, 0, 1), requests: r}
	err = e.send(0, []byte(strings.Repeat("x", 100<<10)))
	if err == nil || len(err.Error()) > 2*maxShownURL || !strings.HasSuffix(err.Error(), "connection refused") {
		t.Errorf("error %.3000v", err)
	}
}
