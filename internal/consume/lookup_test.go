package consume

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"nsq/internal/api"
	"nsq/internal/clientopt"
)

// answering runs a nsqlookupd with one answer and returns its address.
func answering(t *testing.T, code int, body string, seen ...func(*http.Request)) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, see := range seen {
			see(r)
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func producersBody(hosts ...string) string {
	var answer api.Lookup
	for _, host := range hosts {
		answer.Producers = append(answer.Producers, api.Producer{BroadcastAddress: host, TCPPort: 4150, HTTPPort: 4151})
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return string(body)
}

func newTestLookups(t *testing.T, logger *log.Logger, options []string, addresses ...string) *lookups {
	o := clientopt.New("prog")
	for _, option := range options {
		if err := o.Set(option); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newLookups(addresses, "t", o.Config(), logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// All nsqlookupds are asked and what they know is united. One that fails is logged, one that does not
// know the topic is not.
func TestLookupsUnite(t *testing.T) {
	broken := answering(t, 500, `oops`)
	garbage := answering(t, 200, `{"producers":[{"tcp_port":"x"}]}`)
	var logged strings.Builder
	l := newTestLookups(t, log.New(&logged, "", 0), nil,
		answering(t, 200, producersBody("h1", "h2")), broken,
		answering(t, 404, `{"message":"TOPIC_NOT_FOUND"}`), garbage,
		answering(t, 200, `{"status_code":200,"data":`+producersBody("h3", "h1")+`}`)) // as before 1.0
	found, err := l.find(t.Context())
	if want := []string{"h1:4150", "h2:4150", "h3:4150"}; err != nil || !slices.Equal(found, want) || !slices.Equal(l.known(), want) {
		t.Errorf("found %q, error %v, want %q", found, err, want)
	}
	lines := strings.Split(logged.String(), "\n")
	if len(lines) != 3 || lines[0] != fmt.Sprintf("error querying nsqlookupd (http://%s/lookup?topic=t) - got response 500 Internal Server Error %q", broken, "oops") ||
		!strings.HasPrefix(lines[1], "error querying nsqlookupd (http://"+garbage+"/lookup?topic=t) - decode answer: ") {
		t.Errorf("log %q", lines)
	}
}

// When nobody answers any more, what was found before still counts. A topic that is unknown is no
// error.
func TestLookupsRemember(t *testing.T) {
	code, body := 200, producersBody("h1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}))
	defer server.Close()
	l := newTestLookups(t, discard(), nil, server.URL)
	for _, step := range []struct {
		code int
		body string
		ok   bool
	}{{200, producersBody("h1"), true}, {500, "", false}, {404, "", true}} {
		code, body = step.code, step.body
		found, err := l.find(t.Context())
		if !slices.Equal(found, []string{"h1:4150"}) || (err == nil) != step.ok {
			t.Errorf("answer %d: found %q, error %v", step.code, found, err)
		}
	}
}

// The client's own look-up finds nsqd for the keeper, and not for itself; it sees the failure of the first
// nsqlookupd as it was.
func TestRoundTrip(t *testing.T) {
	var l *lookups
	get := func(addresses ...string) (int, string) {
		l = newTestLookups(t, discard(), nil, addresses...)
		resp, err := l.httpClient().Get("http://client.invalid/lookup")
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	unknown := answering(t, 404, `{"message":"TOPIC_NOT_FOUND"}`)
	if code, body := get(unknown, answering(t, 200, producersBody("h1"))); code != 200 || body != `{"channels":[],"producers":[]}` ||
		!slices.Equal(l.known(), []string{"h1:4150"}) {
		t.Errorf("answer is %d %s, found %q", code, body, l.known())
	}
	if code, body := get(unknown, answering(t, 500, "oops")); code != 404 || body != `{"message":"TOPIC_NOT_FOUND"}` {
		t.Errorf("failure is %d %s", code, body)
	}
	if code, text := get("127.0.0.1:1", unknown); code != 0 || !strings.Contains(text, "connection refused") {
		t.Errorf("failure is %d %s", code, text)
	}
}

// The secret goes to nsqlookupds unless the (inverted) option says no; every request has the version.
func TestLookupsAuthorize(t *testing.T) {
	for option, want := range map[string]string{"skip_lookupd_authorization,true": "Bearer s", "skip_lookupd_authorization,false": ""} {
		var header http.Header
		address := answering(t, 200, producersBody(), func(r *http.Request) { header = r.Header })
		if _, err := newTestLookups(t, discard(), []string{"auth_secret,s", option}, address).find(t.Context()); err != nil {
			t.Error(err)
		}
		if header.Get("Authorization") != want || header.Get("Accept") != "application/vnd.nsq; version=1.0" {
			t.Errorf("%s: header %v", option, header)
		}
	}
}

// Addresses are taken as users write them.
func TestLookupURL(t *testing.T) {
	for address, want := range map[string]string{
		"h:4161":                    "http://h:4161/lookup?topic=t%23ephemeral",
		"http://h:4161/":            "http://h:4161/lookup?topic=t%23ephemeral",
		"https://h:4161/x/y?zone=z": "https://h:4161/x/y?topic=t%23ephemeral&zone=z",
		"h":                         "missing port",
		"http://h":                  "missing port",
		"h:x":                       `parse "http://h:x": invalid port ":x" after host`,
	} {
		got, err := lookupURL(address, "t#ephemeral")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
