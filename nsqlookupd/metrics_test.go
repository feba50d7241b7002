package nsqlookupd

import (
	"net/http"
	"strings"
	"testing"

	"nsq/internal/metrics/metricstest"
	"nsq/internal/version"
)

func (d *daemon) scrape() (metricstest.Values, string) {
	d.t.Helper()
	answer := d.http(http.MethodGet, "/metrics")
	if answer.status != http.StatusOK {
		d.t.Fatalf("scrape: %d %.200s", answer.status, answer.body)
	}
	return metricstest.Parse(d.t, answer.body), answer.body
}

// A scrape tells what is registered and what was asked, by the conventions of Prometheus, and is not in
// the access log.
func TestMetrics(t *testing.T) {
	d := start(t, testOptions())
	a, b := d.node("a", 4150), d.node("b", 4150)
	a.wants("REGISTER t c", "OK")
	a.wants("REGISTER u", "OK")
	a.wants("PING", "OK")
	b.wants("REGISTER t", "OK")
	b.wants("UNREGISTER t", "OK")
	d.post("/topic/create?topic=v", 200, "")
	d.post("/topic/tombstone?topic=u&node=a:4151", 200, "")
	d.get("/topics", 200, `{"topics":["t","u","v"]}`)
	d.get("/topics", 200, `{"topics":["t","u","v"]}`)
	d.get("/nowhere", 404, message("NOT_FOUND"))
	b.sends("NONSENSE\n")
	eventually(t, "the nonsense is counted", func() bool {
		values, _ := d.scrape()
		return values[`nsqlookupd_tcp_commands_total{command="_other"}`] == 1 && values["nsqlookupd_nodes"] == 1
	})

	values, text := d.scrape()
	values.Want(t, metricstest.Values{
		"nsqlookupd_topics": 3, "nsqlookupd_channels": 1, "nsqlookupd_producers": 1, "nsqlookupd_nodes": 1,
		"nsqlookupd_tombstones":                                   1,
		"nsqlookupd_tcp_connections_accepted_total":               2,
		`nsqlookupd_tcp_commands_total{command="IDENTIFY"}`:       2,
		`nsqlookupd_tcp_commands_total{command="REGISTER"}`:       3,
		`nsqlookupd_tcp_commands_total{command="UNREGISTER"}`:     1,
		`nsqlookupd_tcp_commands_total{command="PING"}`:           1,
		`nsqlookupd_http_requests_total{path="/topics"}`:          2,
		`nsqlookupd_http_requests_total{path="/lookup"}`:          0,
		`nsqlookupd_http_requests_total{path="_other"}`:           1,
		`nsqlookupd_http_requests_total{path="/topic/tombstone"}`: 1,
	})
	values.Absent(t, `nsqlookupd_http_requests_total{path="/nowhere"`)
	if n := values["nsqlookupd_http_connections"]; n < 1 {
		t.Errorf("%v HTTP connections, not even that of the scrape", n)
	}
	if n := values["nsqlookupd_http_connections_accepted_total"]; n < 7 {
		t.Errorf("%v HTTP connections accepted, fewer than there were", n)
	}
	if !strings.Contains(text, `nsqlookupd_build_info{goversion="go`) || !strings.Contains(text, `version="`+version.Version+`"} 1`) {
		t.Error("no build info")
	}
	metricstest.Lint(t, text)
	if logged := d.log.String(); strings.Contains(logged, "/metrics") || strings.Contains(logged, "metrics:") {
		t.Errorf("scrapes are in the log:\n%s", logged)
	}
	eventually(t, "connections that have ended do not count", func() bool {
		values, _ := d.scrape()
		return values["nsqlookupd_tcp_connections"] == 1 && values["nsqlookupd_http_connections"] == 1
	})
}

// The route behaves as the others do.
func TestMetricsRoute(t *testing.T) {
	d := start(t, testOptions())
	if r := d.http(http.MethodHead, "/metrics"); r.status != http.StatusOK || r.body != "" {
		t.Errorf("HEAD: %d %q", r.status, r.body)
	}
	d.post("/metrics", http.StatusMethodNotAllowed, message("METHOD_NOT_ALLOWED"))
}

// The document has the table of the code.
func TestMetricsDocument(t *testing.T) {
	metricstest.Documented(t, "../docs/metrics.md", "nsqlookupd", metricFamilies())
}
