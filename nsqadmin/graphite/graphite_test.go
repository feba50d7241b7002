package graphite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/httpx"
	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The expressions are what Graphite understands, with the names that nsqd pushes.
func TestExpressions(t *testing.T) {
	s := &Settings{Prefix: "nsq.%s", CounterFormat: "stats.counters.%s.count", GaugeFormat: "stats.gauges.%s", Interval: 10 * time.Second}
	bare := &Settings{Prefix: "nsq.%s.", Interval: time.Minute}
	const host = "stats.gauges.nsq.127_0_0_1_4151."
	tests := []struct{ got, want string }{
		{s.Topic("127.0.0.1:4151", "a", "depth"), "sumSeries(" + host + "topic.a.depth)"},
		{s.Topic(AllHosts, "a", "message_count"), "sumSeries(stats.counters.nsq.*.topic.a.message_count.count)"},
		{s.Channel(AllHosts, "tail#ephemeral", "x y/z", "clients"), "sumSeries(stats.gauges.nsq.*.topic.tailephemeral.channel.x_y-z.clients)"},
		{s.Memory("127.0.0.1:4151", "heap_objects"), host + "mem.heap_objects"},
		{s.Memory("[::1]:4151", "gc_runs"), "stats.counters.nsq.[__1]_4151.mem.gc_runs.count"},
		{s.Counter(), "sumSeries(stats.counters.nsq.*.topic.*.channel.*.message_count.count)"},
		{s.Latency("127.0.0.1:4151", "t", "", 0.99), "scale(" + host + "topic.t.e2e_processing_latency_99,0.000001)"},
		{s.Latency(AllHosts, "t", "c", 0.999), "scale(averageSeries(stats.gauges.nsq.*.topic.t.channel.c.e2e_processing_latency_100),0.000001)"},
		{s.Summarized("x", false), `summarize(x,"10sec","avg")`},
		{s.Summarized("x", true), `summarize(scale(x,0.1),"10sec","avg")`},
		{bare.Topic("h", "t", "depth"), "sumSeries(nsq.h.topic.t.depth)"},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("%s\nwant %s", test.got, test.want)
		}
	}
}

// A rate is the first value over the interval; an answer without one is an error.
func TestRate(t *testing.T) {
	tests := []struct{ answer, want string }{
		{`[{"target":"x","datapoints":[[20,1],[99,2]]}]`, "2.00"},
		{`[{"target":"x","datapoints":[[-1,1]]}]`, "N/A"},
		{`[{"target":"x","datapoints":[[null,1]]}]`, ""},
		{`[{"target":"x","datapoints":[[]]}]`, ""},
		{`[{"target":"x"}]`, ""},
		{`[]`, ""},
		{`{`, ""},
	}
	for _, test := range tests {
		var asked *http.Request
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			asked = req
			fmt.Fprint(w, test.answer)
		}))
		client := httpx.NewClient(httpx.ClientConfig{})
		base, err := url.Parse(server.URL + "/graphite/")
		if err != nil {
			t.Fatal(err)
		}
		base.User = url.UserPassword("joe", "secret")
		got, err := Rate(context.Background(), client, base.String(), 10*time.Second, "a b")
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v", test.answer, got, err)
		}
		if uri := asked.URL.RequestURI(); uri != "/graphite/render?format=json&from=-20sec&target=a+b&until=-10sec" {
			t.Errorf("asked for %s", uri)
		}
		if user, password, _ := asked.BasicAuth(); user != "joe" || password != "secret" {
			t.Errorf("asked as %s:%s", user, password)
		}
		client.Close()
		server.Close()
	}
}

// Requests are passed on below the path of the URL with its credentials; what comes back is no page
// of ours. A Graphite that is down is 502.
func TestProxy(t *testing.T) {
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = req
		fmt.Fprint(w, "image")
	}))
	base, err := url.Parse(server.URL + "/graphite")
	if err != nil {
		t.Fatal(err)
	}
	base.User = url.UserPassword("joe", "secret")
	transport := &http.Transport{}
	proxy := NewProxy(base, transport, log.Discard())
	answer := httptest.NewRecorder()
	request := httptest.NewRequest("GET", "http://admin.example/base/render?target=a%20b&x=1", nil)
	request.RemoteAddr = "192.0.2.1:5"
	proxy.ServeHTTP(answer, request)
	if answer.Code != 200 || answer.Body.String() != "image" || answer.Header().Get("Content-Security-Policy") != "sandbox" {
		t.Errorf("answer: %d %q %v", answer.Code, answer.Body, answer.Header())
	}
	user, password, _ := asked.BasicAuth()
	if asked.URL.RequestURI() != "/graphite/render?target=a%20b&x=1" || asked.Host != "admin.example" ||
		user+password != "joesecret" || asked.Header.Get("X-Forwarded-For") != "192.0.2.1" {
		t.Errorf("asked %s of %s as %s:%s for %s", asked.URL, asked.Host, user, password, asked.Header.Get("X-Forwarded-For"))
	}
	transport.CloseIdleConnections()
	server.Close()
	answer = httptest.NewRecorder()
	proxy.ServeHTTP(answer, httptest.NewRequest("GET", "http://admin.example/render", nil))
	if answer.Code != http.StatusBadGateway || answer.Body.Len() != 0 {
		t.Errorf("Graphite is down: %d %q", answer.Code, answer.Body)
	}
}
