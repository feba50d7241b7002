package nsqlookupd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/version"
	"nsq/nsqlookupd/registry"
)

func message(text string) string { return `{"message":"` + text + `"}` }

// Every route, in an order in which each answer follows from what was done before.
func TestRoutes(t *testing.T) {
	d := start(t, testOptions())
	get, post := http.MethodGet, http.MethodPost
	steps := []struct {
		method, path string
		status       int
		body         string
	}{
		{get, "/ping", 200, "OK"},
		{get, "/info", 200, `{"version":"` + version.Version + `"}`},
		{get, "/topics", 200, `{"topics":[]}`},
		{get, "/nodes?topic=%zz", 200, `{"producers":[]}`},
		{get, "/debug", 200, `{}`},

		{get, "/channels", 400, message("MISSING_ARG_TOPIC")},
		{get, "/channels?topic=", 200, `{"channels":[]}`},
		{get, "/channels?topic=%zz", 400, message("INVALID_REQUEST")},
		{get, "/channels?topic=a;b", 400, message("INVALID_REQUEST")},
		{get, "/lookup", 400, message("MISSING_ARG_TOPIC")},
		{get, "/lookup?topic=", 404, message("TOPIC_NOT_FOUND")},
		{get, "/lookup?topic=a*b", 404, message("TOPIC_NOT_FOUND")},

		{post, "/topic/create", 400, message("MISSING_ARG_TOPIC")},
		{post, "/topic/create?topic=", 400, message("INVALID_ARG_TOPIC")},
		{post, "/topic/create?topic=*", 400, message("INVALID_ARG_TOPIC")},
		{post, "/topic/create?topic=t&topic=other", 200, ""},
		{post, "/topic/create?topic=t", 200, ""},
		{get, "/topics", 200, `{"topics":["t"]}`},
		{get, "/lookup?topic=t", 200, `{"channels":[],"producers":[]}`},

		{post, "/channel/create", 400, message("MISSING_ARG_TOPIC")},
		{post, "/channel/create?topic=a*b", 400, message("INVALID_ARG_TOPIC")},
		{post, "/channel/create?topic=u", 400, message("MISSING_ARG_CHANNEL")},
		{post, "/channel/create?topic=u&channel=*", 400, message("INVALID_ARG_CHANNEL")},
		{post, "/channel/create?topic=u&channel=c%23ephemeral", 200, ""},
		{post, "/channel/create?topic=u&channel=b", 200, ""},
		{get, "/topics", 200, `{"topics":["t","u"]}`},
		{get, "/channels?topic=u", 200, `{"channels":["b","c#ephemeral"]}`},

		// "*" is nobody's name.
		{get, "/channels?topic=*", 200, `{"channels":[]}`},
		{get, "/lookup?topic=*", 404, message("TOPIC_NOT_FOUND")},
		{post, "/topic/delete?topic=*", 400, message("INVALID_ARG_TOPIC")},
		{post, "/topic/tombstone?topic=*&node=a:1", 400, message("INVALID_ARG_TOPIC")},

		{post, "/channel/delete", 400, message("MISSING_ARG_TOPIC")},
		{post, "/channel/delete?topic=a*b", 400, message("INVALID_ARG_TOPIC")},
		{post, "/channel/delete?topic=u", 400, message("MISSING_ARG_CHANNEL")},
		{post, "/channel/delete?topic=u&channel=*", 400, message("INVALID_ARG_CHANNEL")},
		{post, "/channel/delete?topic=u&channel=no", 404, message("CHANNEL_NOT_FOUND")},
		{post, "/channel/delete?topic=no&channel=b", 404, message("CHANNEL_NOT_FOUND")},
		{post, "/channel/delete?topic=u&channel=b", 200, ""},
		{get, "/lookup?topic=u", 200, `{"channels":["c#ephemeral"],"producers":[]}`},

		{post, "/topic/delete", 400, message("MISSING_ARG_TOPIC")},
		{post, "/topic/delete?topic=u", 200, ""},
		{post, "/topic/delete?topic=u", 200, ""},
		{post, "/topic/delete?topic=a+b", 200, ""},
		{get, "/topics", 200, `{"topics":["t"]}`},
		{get, "/channels?topic=u", 200, `{"channels":[]}`},

		{post, "/topic/tombstone", 400, message("MISSING_ARG_TOPIC")},
		{post, "/topic/tombstone?topic=t", 400, message("MISSING_ARG_NODE")},
		{post, "/topic/tombstone?topic=no&node=a:1", 200, ""},

		{get, "/create_topic?topic=t", 404, message("NOT_FOUND")},
		{post, "/topics", 405, message("METHOD_NOT_ALLOWED")},
		{get, "/topic/create?topic=x", 405, message("METHOD_NOT_ALLOWED")},
		{get, "/topics", 200, `{"topics":["t"]}`},
	}
	for _, step := range steps {
		d.asks(step.method, step.path, step.status, step.body)
	}
	d.logs(`INFO: 400 POST /topic/delete\?topic=\* \(127`)
}

// The headers by which clients tell the kinds of answers apart.
func TestHeaders(t *testing.T) {
	d := start(t, testOptions())
	const jsonType, nsqType = "application/json; charset=utf-8", "nsq; version=1.0"
	tests := []struct {
		method, path             string
		status                   int
		contentType, nsq, length string
	}{
		{"GET", "/ping", 200, "text/plain; charset=utf-8", "", "2"},
		{"GET", "/topics", 200, jsonType, nsqType, "13"},
		{"GET", "/lookup", 400, jsonType, nsqType, "31"},
		{"POST", "/topic/create?topic=t", 200, "", nsqType, "0"},
		{"GET", "/debug", 200, jsonType, nsqType, "2"},
		{"HEAD", "/debug", 200, jsonType, nsqType, ""},
		{"HEAD", "/ping", 200, "text/plain; charset=utf-8", "", "2"},
		{"HEAD", "/topics", 200, jsonType, nsqType, "16"},
		{"HEAD", "/lookup", 400, jsonType, nsqType, "31"},
		{"HEAD", "/topic/create?topic=x", 405, jsonType, nsqType, "32"},
	}
	for _, test := range tests {
		r := d.http(test.method, test.path)
		got := []any{r.status, r.header.Get("Content-Type"), r.header.Get("X-NSQ-Content-Type"), r.header.Get("Content-Length")}
		diff(t, test.method+" "+test.path, []any{test.status, test.contentType, test.nsq, test.length}, got)
	}
	if allow := d.http("GET", "/topic/create").header.Get("Allow"); allow != "OPTIONS, POST" {
		t.Errorf("Allow: %s", allow)
	}
}

// A tombstone hides one node of one topic and shows in /nodes; both spellings of IPv6 match.
func TestTombstone(t *testing.T) {
	d := start(t, testOptions())
	for _, host := range []string{"a", "fd00::1"} {
		p := d.node(host, 4150)
		p.wants("REGISTER t", "OK")
		p.wants("REGISTER u", "OK")
	}
	d.post("/topic/tombstone?topic=t&node=a:4151", 200, "")
	d.post("/topic/tombstone?topic=u&node=[fd00::1]:4151", 200, "")
	stones := map[string][]bool{}
	var nodes api.NodeList
	decode(t, d.http("GET", "/nodes").body, &nodes)
	for _, n := range nodes.Producers {
		diff(t, "topics", []string{"t", "u"}, n.Topics)
		stones[n.BroadcastAddress] = n.Tombstones
	}
	diff(t, "tombstones", map[string][]bool{"a": {true, false}, "fd00::1": {false, true}}, stones)
	for topic, want := range map[string]string{"t": "fd00::1", "u": "a"} {
		var answer api.Lookup
		decode(t, d.http("GET", "/lookup?topic="+topic).body, &answer)
		if len(answer.Producers) != 1 || answer.Producers[0].BroadcastAddress != want {
			t.Errorf("producers of %s: %+v, want %s", topic, answer.Producers, want)
		}
	}
}

// /debug shows everything that has producers, with times and tombstones.
func TestDebug(t *testing.T) {
	d := start(t, testOptions())
	before := time.Now().UnixNano()
	p := d.node("b", 4150)
	p.wants("REGISTER t1 c1", "OK")
	d.post("/channel/create?topic=t1&channel=empty", 200, "")
	d.post("/topic/tombstone?topic=t1&node=b:4151", 200, "")
	r := d.http("GET", "/debug")
	var got api.Registrations
	decode(t, r.body, &got)
	const never = -6795364578871345152
	if want := `"tombstoned":false,"tombstoned_at":-6795364578871345152,"topology_region":"r","topology_zone":"z","version":"1.0"}`; !strings.Contains(r.body, want) {
		t.Errorf("%s lacks %s", r.body, want)
	}
	for key, producers := range got {
		if len(producers) != 1 {
			t.Fatalf("%s has %d producers", key, len(producers))
		}
		for _, at := range []int64{producers[0].LastUpdate, producers[0].TombstonedAt} {
			if at != never && (at < before || at > time.Now().UnixNano()) {
				t.Errorf("%s: time %d", key, at)
			}
		}
		if producers[0].Tombstoned != (producers[0].TombstonedAt != never) {
			t.Errorf("%s: tombstone %+v", key, producers[0])
		}
		producers[0].LastUpdate, producers[0].TombstonedAt = 0, 0
	}
	plain := api.RegisteredProducer{
		BroadcastAddress: "b", Hostname: "h-b", HTTPPort: 4151, TCPPort: 4150, ID: p.conn.LocalAddr().String(),
		TopologyRegion: "r", TopologyZone: "z", Version: "1.0",
	}
	marked := plain
	marked.Tombstoned = true
	diff(t, "/debug", api.Registrations{"client::": {plain}, "channel:t1:c1": {plain}, "topic:t1:": {marked}}, got)
}

// An answer that cannot be written to its end is not finished, and no more of the database is read.
func TestDebugToDeadReader(t *testing.T) {
	db := registry.New(time.Hour, time.Hour)
	p := db.Identify(registry.Peer{RemoteAddress: "a"}, time.Now())
	for i := range 10_000 {
		db.Register(p, fmt.Sprint("t", i), "", time.Now())
	}
	seen := 0
	all := func(yield func(registry.Registration, []registry.Entry) bool) {
		for r, entries := range db.All() {
			if seen++; !yield(r, entries) {
				return
			}
		}
	}
	if err := writeRegistrations(deadWriter{}, all); !errors.Is(err, io.ErrClosedPipe) || seen > 1000 {
		t.Errorf("error %v after %d registrations", err, seen)
	}
}

type deadWriter struct{}

func (deadWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func decode(t *testing.T, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
}

// The profiles answer, at the address of the index with and without a slash.
func TestProfiles(t *testing.T) {
	d := start(t, testOptions())
	for _, path := range []string{"/debug/pprof", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/goroutine", "/debug/pprof/mutex"} {
		if r := d.http("GET", path); r.status != 200 || r.body == "" {
			t.Errorf("GET %s: %d", path, r.status)
		}
	}
}
