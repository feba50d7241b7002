package web

import (
	gocmp "cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
	"nsq/nsqadmin/graphite"
	"nsq/nsqadmin/monitor"
)

// Every page is whole: its tags balance, it has its landmarks, its tables have captions and heads, and it
// shows what its spec lists, in the form of its address.
func TestPages(t *testing.T) {
	tests := []struct {
		path    string
		title   string
		tables  []string // headings of the panels
		content []string // texts that must be there
		links   []string // addresses that must be linked to
	}{
		{"/", "Overview", []string{"3 things are unwell", "Busiest topics", "History"},
			[]string{"1,334", "606", "orders / stuck", "no consumer while 77 messages wait", "has no channel while 12 messages wait", "is paused while 6"}, []string{"/topics/orders/stuck", "/topics/lonely"}},
		{"/topics", "Topics", []string{"Topics"}, []string{"1,314", "151", "98,765", "no channel", "no producer", "paused on 1 of 2"}, []string{"/topics/orders", "/topics/clicks%23ephemeral"}},
		{"/topics/orders", "orders", []string{"Channels", "History", "Nodes with this topic"}, []string{"1,234", "617 + 617 on disk", "99% 245.37ms"},
			[]string{"/topics/orders/billing", "/nodes/n1:4151", "/actions/pause?topic=orders", "/actions/delete?topic=orders", "/actions/tombstone?node=n1%3A4151&topic=orders"}},
		{"/topics/paused", "paused", []string{"Channels", "History", "Nodes with this topic"}, []string{"paused on 1 of 2"}, []string{"/actions/pause?topic=paused", "/actions/unpause?topic=paused"}},
		{"/topics/idle", "idle", []string{"Channels", "History", "Nodes with this topic"}, []string{"No node has this topic"}, []string{"/actions/delete?topic=idle", "/topics/idle/late"}},
		{"/topics/clicks%23ephemeral/tail%23ephemeral", "clicks#ephemeral / tail#ephemeral", []string{"Nodes with this channel", "History", "Consumers"}, nil, []string{"/actions/empty?channel=tail%23ephemeral&topic=clicks%23ephemeral"}},
		{"/topics/orders/billing", "orders / billing", []string{"Nodes with this channel", "History", "Consumers"},
			[]string{"worker-1 (id1)", "TLS", "snappy", "sampled 10%", "eu/eu-a, same zone", "not ready", "2h0m", "1,234,567", "zone 60%, region 30%, elsewhere 10%", "go-nsq/1.1.0"}, []string{"/nodes/n2:4151"}},
		{"/nodes", "Nodes", []string{"nsqd nodes"}, []string{"1.4.0", "eu/eu-a", "4150", "2 of 2", "75.5"}, []string{"/nodes/n1:4151"}},
		{"/nodes/n1:4151", "n1:4151", []string{"Topics on this node", "Channels on this node", "History", "About", "Consumers on this node"},
			[]string{"4150", "l1:4161/10.0.0.9:1", "worker-0 (id0)"}, []string{"/topics/orders", "/topics/orders/billing", "/actions/tombstone?node=n1%3A4151&topic=orders"}},
		{"/lookup", "Lookup", []string{"Create a topic or channel", "Topics without a producer", "nsqlookupd"}, []string{"l1:4161", "answers"}, []string{"/topics/idle", "/topics/idle/late", "/actions/delete?topic=idle"}},
		{"/counter", "Counter", nil, []string{"49,380", "420 a second"}, nil},
		{"/actions/recent", "Actions", []string{"Asked for here"}, []string{"No action has been asked for"}, nil},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			resp, body := newFake().get(t, test.path)
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Fatalf("answer %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
			}
			all := checkPage(t, body)
			if title := one(t, all, "title").text; title != test.title+" · nsqadmin" {
				t.Errorf("title %q", title)
			}
			if diff := cmp.Diff(test.tables, texts(find(all, "h2")), cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("panels (-want +got):\n%s", diff)
			}
			main := strings.Join(strings.Fields(one(t, all, "main").text), " ")
			for _, text := range test.content {
				if !strings.Contains(main, text) {
					t.Errorf("%q is not shown in:\n%s", text, main)
				}
			}
			for _, href := range test.links {
				if len(find(all, "a", "href="+href)) == 0 {
					t.Errorf("no link to %s", href)
				}
			}
		})
	}
}

// A fragment is the main part of the same page: what the script patches in is what a reload would show.
func TestFragmentIsThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the age of the data stands still
		f := newFake()
		for _, path := range []string{"/topics", "/topics/orders", "/nodes/n1:4151"} {
			_, whole := f.get(t, path)
			_, part := f.get(t, path+"?fragment=1")
			start, end := strings.Index(whole, "<main"), strings.Index(whole, "</main>")
			if got, want := strings.TrimSpace(part), whole[start:end+len("</main>")]; got != want {
				t.Errorf("fragment of %s differs:\n%s", path, cmp.Diff(want, got))
			}
		}
	})
}

// What is not there is said so. The address of a topic, channel or node is answered with 200 whether
// it is known or not, as scripts expect; any other with 404.
func TestMissing(t *testing.T) {
	for path, status := range map[string]int{
		"/topics/none":               http.StatusOK,
		"/topics/orders/none":        http.StatusOK,
		"/topics/none/none":          http.StatusOK,
		"/nodes/none:1":              http.StatusOK,
		"/none":                      http.StatusNotFound,
		"/actions/result?id=x":       http.StatusNotFound,
		"/actions/sing?topic=orders": http.StatusNotFound,
	} {
		resp, body := newFake().get(t, path)
		if resp.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, status)
		}
		if status == http.StatusOK && !strings.Contains(body, "is not known to any daemon that answered") {
			t.Errorf("%s does not say that it is unknown", path)
		}
		checkPage(t, body)
	}
}

// Before the first collection pages say that there is nothing yet, rather than that things are missing.
func TestNothingCollectedYet(t *testing.T) {
	f := newFake()
	f.snapshot = &monitor.Snapshot{}
	for _, path := range []string{"/", "/topics", "/topics/orders", "/topics/orders/billing", "/nodes", "/nodes/n1:4151", "/lookup", "/counter"} {
		resp, body := f.get(t, path)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "Nothing has been collected yet") || strings.Contains(body, "Nothing is unwell") || !strings.Contains(body, `data-age="0"`) {
			t.Errorf("%s: status %d, body:\n%s", path, resp.StatusCode, body)
		}
	}
}

// Every page names who did not answer; the overview has the worst first.
func TestFailuresAreNamed(t *testing.T) {
	f := newFake()
	f.snapshot = ailing()
	for _, path := range []string{"/", "/topics", "/topics/orders", "/nodes", "/nodes/n2:4151", "/lookup", "/counter"} {
		_, body := f.get(t, path)
		all := checkPage(t, body)
		if notices := strings.Join(texts(find(all, "div", "class=notice bad")), " "); !strings.Contains(notices, "n2:4151 /stats: i/o timeout") || !strings.Contains(notices, "l2:4161 /nodes: connection refused") {
			t.Errorf("%s: notices %q", path, notices)
		}
	}
	_, body := f.get(t, "/")
	var kinds []string
	for _, e := range elements(t, body) {
		if strings.HasSuffix(e.in, "/li") && strings.HasPrefix(e.attr["class"], "label ") {
			kinds = append(kinds, e.text+e.attr["class"][len("label"):])
		}
	}
	want := []string{"lookupd bad", "node bad", "node bad", "channel bad", "topic warn", "topic warn"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// hostile is text that a node could send in the hope that a page takes it for its own.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>' javascript:{{.}} ]]> ../../x?y#z %2f`

// Text of nodes and clients stays text on every page, in attributes, drawings and addresses too.
func TestHostileTexts(t *testing.T) {
	f := newFake()
	channel := sum(part("n1", hostile, hostile, 5, 1))
	channel.Clients[0].Hostname, channel.Clients[0].UserAgent, channel.Clients[0].ClientID = hostile, hostile, hostile
	channel.Clients[0].Authed, channel.Clients[0].AuthIdentity, channel.Clients[0].AuthIdentityURL = true, hostile, "javascript:alert(3)"
	channel.Clients[0].TLS, channel.Clients[0].TLSVersion, channel.Clients[0].TopologyRegion = true, hostile, hostile
	topics := []*monitor.Topic{topicOf(hostile, 5, channel)}
	node := nodeOf("n1", topics)
	node.Address, node.Hostname, node.Version, node.Health, node.TopologyZone = hostile, hostile, hostile, hostile, hostile
	node.RemoteAddresses = []string{hostile}
	f.snapshot = &monitor.Snapshot{Seq: 1, Topics: topics, Nodes: []*monitor.Node{node}, Lookupds: []monitor.Lookupd{{Address: hostile, Err: hostile}}}
	escaped := url.PathEscape(hostile)
	paths := []string{"/", "/topics", "/topics/" + escaped, "/topics/" + escaped + "/" + escaped, "/nodes", "/nodes/" + escaped, "/lookup",
		"/topics?q=" + url.QueryEscape(hostile), "/topics?sort=" + url.QueryEscape(hostile) + "&other=" + url.QueryEscape(hostile),
		"/topics/none" + escaped, "/actions/create?topic=" + url.QueryEscape(hostile), "/actions/delete?topic=" + url.QueryEscape(hostile),
		"/actions/result?id=" + url.QueryEscape(hostile)}
	for _, path := range paths {
		_, body := f.get(t, path)
		all := checkPage(t, body)
		if scripts := find(all, "script"); len(scripts) != 1 || len(find(all, "img")) != 0 {
			t.Errorf("%s: a text became an element", path)
		}
		for _, a := range find(all, "a") {
			if u, err := url.Parse(a.attr["href"]); err != nil || u.Scheme != "" && u.Host != "nsq.io" {
				t.Errorf("%s: link to %q", path, a.attr["href"])
			}
		}
	}
	// The address of what has the name leads to it.
	_, body := f.get(t, "/topics/"+escaped+"/"+escaped)
	if title := one(t, elements(t, body), "title").text; title != hostile+" / "+hostile+" · nsqadmin" {
		t.Errorf("title %q", title)
	}
}

// Behind a base path every address of a page is below it, and the pages are where it says.
func TestBasePath(t *testing.T) {
	f := newFake()
	f.config.BasePath = "/foo/bar"
	for _, path := range []string{"/foo/bar", "/foo/bar/topics", "/foo/bar/topics/orders", "/foo/bar/topics/orders/billing", "/foo/bar/nodes", "/foo/bar/nodes/n1:4151",
		"/foo/bar/lookup", "/foo/bar/counter", "/foo/bar/actions/recent", "/foo/bar/actions/delete?topic=orders"} {
		resp, body := f.get(t, path)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
		for _, e := range checkPage(t, body) {
			for _, name := range []string{"href", "src", "action", "data-events"} {
				address, ok := e.attr[name]
				if ok && address != "/foo/bar" && !strings.HasPrefix(address, "/foo/bar/") && !strings.HasPrefix(address, "/foo/bar?") && address != "#main" && address != "https://nsq.io/" {
					t.Errorf("%s: %s=%q", path, name, address)
				}
			}
		}
	}
	for _, path := range []string{"/", "/topics", "/foo", "/static/app.js"} {
		if resp, _ := f.get(t, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
}

// Every answer forbids scripts of the page itself, frames, and forms that go elsewhere.
func TestPolicy(t *testing.T) {
	f := newFake()
	for _, path := range []string{"/", "/topics/none", "/static/app.js", "/static/none", "/actions/delete?topic=orders"} {
		resp, _ := f.get(t, path)
		got := resp.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: policy %q lacks %q", path, got, part)
			}
		}
		if strings.Contains(got, "unsafe") || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, resp.Header)
		}
	}
}

// Many thousands of topics cost a page no more than those it shows.
func TestThousandsOfTopics(t *testing.T) {
	f := newFake()
	var topics []*monitor.Topic
	for i := range 5000 {
		topics = append(topics, &monitor.Topic{AdminTopic: &api.AdminTopic{TopicName: fmt.Sprintf("topic-%04d", i)}, Totals: monitor.Totals{Depth: int64(i * 7 % 5000)}})
	}
	f.snapshot = &monitor.Snapshot{Seq: 1, Topics: topics, Nodes: []*monitor.Node{nodeOf("n1", nil)}}
	for _, path := range []string{"/", "/topics", "/topics?page=50", "/topics?q=topic", "/nodes", "/lookup", "/counter"} {
		_, body := f.get(t, path)
		if len(body) > 100_000 {
			t.Errorf("%s: %d bytes", path, len(body))
		}
	}
	_, body := f.get(t, "/topics?q=TOPIC-4&sort=depth&page=2")
	all := checkPage(t, body)
	if names := rowNames(all); len(names) != pageRows || !slices.IsSortedFunc(names, func(a, b string) int {
		return gocmp.Compare(f.snapshot.Topic(b).Totals.Depth, f.snapshot.Topic(a).Totals.Depth)
	}) {
		t.Errorf("page 2 shows %d: %q", len(names), names)
	}
	if pager := one(t, all, "nav", "class=pager"); !strings.Contains(pager.text, "101–200 of 1,000") || !strings.Contains(pager.text, "Page 2 of 10") {
		t.Errorf("pager %q", pager.text)
	}
	one(t, all, "a", "href=/topics?page=3&q=TOPIC-4&sort=depth", "rel=next")
	one(t, all, "a", "href=/topics?page=1&q=TOPIC-4&sort=depth", "rel=prev")
}

// Pages can be used by who has no JavaScript: searching and sorting are a form and links, and no link
// needs a script.
func TestSearchAndSortWithoutScript(t *testing.T) {
	f := newFake()
	_, body := f.get(t, "/topics?q=O&sort=topic&dir=desc")
	all := checkPage(t, body)
	if diff := cmp.Diff([]string{"orders", "lonely"}, rowNames(all)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	form := one(t, all, "form", "role=search", "method=get", "action=/topics")
	if len(find(all, "input", "type=search", "name=q", "value=O")) != 1 || form.attr["data-view"] != "" {
		t.Error("the form does not hold the search")
	}
	one(t, all, "input", "type=hidden", "name=sort", "value=topic")
	if heads := find(all, "th", "aria-sort=descending"); len(heads) != 1 || heads[0].text != "Topic" {
		t.Errorf("sorted by %q", texts(heads))
	}
	one(t, all, "a", "href=/topics?dir=asc&q=O&sort=topic")
	_, body = f.get(t, "/topics?q=nothing")
	if !strings.Contains(body, "Nothing here matches “nothing”.") {
		t.Error("an empty result is not said")
	}
}

// Rows do not trade places between two requests when they are equal in what they are sorted by.
func TestOrderIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the age of the data stands still
		f := newFake()
		f.snapshot.Nodes[0].Hostname, f.snapshot.Nodes[1].Hostname = "same", "same"
		_, first := f.get(t, "/nodes?fragment=1")
		slices.Reverse(f.snapshot.Nodes)
		if _, second := f.get(t, "/nodes?fragment=1"); first != second {
			t.Error("nodes with the same hostname changed places")
		}
	})
}

// In direct mode there is no nsqlookupd to talk of.
func TestDirectMode(t *testing.T) {
	f := newFake()
	f.snapshot.Direct, f.snapshot.Lookupds = true, nil
	_, lookup := f.get(t, "/lookup")
	checkPage(t, lookup)
	_, nodes := f.get(t, "/nodes")
	if !strings.Contains(lookup, "No nsqlookupd is configured") || strings.Contains(nodes, "Lookupds") {
		t.Error("nsqlookupd is shown in direct mode")
	}
}

// With Graphite pages link to its graphs, and never show how to log in there.
func TestGraphiteLinks(t *testing.T) {
	tests := []struct {
		settings graphite.Settings
		prefix   string
	}{
		{graphite.Settings{}, ""},
		{graphite.Settings{URL: "http://user:secret@graphs:8080/g"}, "http://graphs:8080/g/render?"},
		{graphite.Settings{Proxied: true}, "/b/render?"},
		{graphite.Settings{URL: "javascript:alert(1)"}, ""},
	}
	for _, test := range tests {
		f := newFake()
		f.config.BasePath, f.config.Graphite = "/b", test.settings
		for _, path := range []string{"/b/topics/orders", "/b/topics/orders/billing", "/b/nodes/n1:4151"} {
			_, body := f.get(t, path)
			found := 0
			for _, a := range find(checkPage(t, body), "a") {
				if strings.Contains(a.attr["href"], "render?") {
					found++
					if !strings.HasPrefix(a.attr["href"], test.prefix) {
						t.Errorf("link to %s", a.attr["href"])
					}
				}
			}
			if (found > 0) != (test.prefix != "") || strings.Contains(body, "secret") {
				t.Errorf("%+v: %d graphs on %s", test.settings, found, path)
			}
		}
	}
}

// Assets are served with types that browsers accept for modules, and are told from a stale copy.
func TestAssets(t *testing.T) {
	f := newFake()
	for name, kind := range map[string]string{"app.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		for _, folder := range []string{"/static/", "/fonts/"} {
			resp, body := f.get(t, folder+name)
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != kind || body == "" {
				t.Errorf("%s: %d %s", name, resp.StatusCode, resp.Header.Get("Content-Type"))
			}
			req := httptest.NewRequest(http.MethodGet, folder+name, nil)
			req.Header.Set("If-None-Match", resp.Header.Get("ETag"))
			if again, _ := answer(New(f.config), req); again.StatusCode != http.StatusNotModified {
				t.Errorf("%s again: %d", name, again.StatusCode)
			}
		}
	}
	for _, path := range []string{"/static/none.js", "/static/..", "/static/%2e%2e%2fweb.go", "/static/a%2fb", "/static/%00"} {
		resp, body := f.get(t, path)
		if resp.StatusCode == http.StatusOK || strings.Contains(body, "package web") {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	resp, body := f.get(t, "/static/none.js")
	if resp.StatusCode != http.StatusNotFound || body != "NOT_FOUND" || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("unknown asset: %d %q", resp.StatusCode, body)
	}
}

// Assets of a folder replace the embedded ones.
func TestAssetsOfAFolder(t *testing.T) {
	f := newFake()
	f.config.StaticDir = t.TempDir()
	if err := os.WriteFile(f.config.StaticDir+"/app.js", []byte("// changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, body := f.get(t, "/static/app.js"); body != "// changed" {
		t.Errorf("body %q", body)
	}
	if resp, _ := f.get(t, "/static/style.css"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// The modules load only what is served, and agree with the drawings on where the plot is.
func TestModules(t *testing.T) {
	imports := regexp.MustCompile(`from "\./([^"]+)"`)
	files, err := embedded.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]bool{"app.js": true} // by the page
	for _, file := range files {
		body, err := embedded.ReadFile("static/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range imports.FindAllSubmatch(body, -1) {
			loaded[string(found[1])] = true
		}
		if strings.Contains(string(body), "://") && file.Name() != "icon.svg" {
			t.Errorf("%s has an address of elsewhere", file.Name())
		}
		if want := fmt.Sprintf("const left = %g, right = %g;", plotLeft, plotRight); file.Name() == "chart.js" && !strings.Contains(string(body), want) {
			t.Errorf("chart.js lacks %q", want)
		}
	}
	for name := range loaded {
		if resp, _ := newFake().get(t, "/static/"+name); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".js") && !loaded[file.Name()] {
			t.Errorf("nobody loads %s", file.Name())
		}
	}
}
