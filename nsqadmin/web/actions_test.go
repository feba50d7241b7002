package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
	"nsq/internal/cluster"
	"nsq/nsqadmin/action"
)

// A confirmation names what is destroyed, and wants the name typed where there are messages; its form
// does without JavaScript exactly what was asked for, once.
func TestConfirmThenAct(t *testing.T) {
	tests := []struct {
		query   string // of the confirmation
		effects []string
		typed   string // what has to be typed
		want    action.Action
	}{
		{"delete?topic=orders", []string{"1,342 messages will be lost on 2 nodes", "2 channels go with it: billing, stuck", "3 consumers will be disconnected"}, "orders", action.Action{Kind: action.Delete, Topic: "orders"}},
		{"delete?topic=idle", []string{"0 messages will be lost", "1 channel goes with it: late"}, "", action.Action{Kind: action.Delete, Topic: "idle"}},
		{"delete?topic=orders&channel=billing", []string{"1,241 messages will be lost on 2 nodes"}, "billing", action.Action{Kind: action.Delete, Topic: "orders", Channel: "billing"}},
		{"delete?topic=gone", []string{"No daemon that answered knows it"}, "", action.Action{Kind: action.Delete, Topic: "gone"}},
		{"empty?topic=orders", []string{"3 messages that wait in the topic itself on 2 nodes will be lost", "Messages in its channels stay"}, "", action.Action{Kind: action.Empty, Topic: "orders"}},
		{"empty?topic=orders&channel=billing", []string{"1,241 messages on 2 nodes will be lost"}, "", action.Action{Kind: action.Empty, Topic: "orders", Channel: "billing"}},
		{"pause?topic=orders", []string{"no channel gets any, until it is unpaused"}, "", action.Action{Kind: action.Pause, Topic: "orders"}},
		{"pause?topic=orders&channel=billing", []string{"no consumer gets any", "3 consumers are connected"}, "", action.Action{Kind: action.Pause, Topic: "orders", Channel: "billing"}},
		{"unpause?topic=clicks%23ephemeral", []string{"Messages flow"}, "", action.Action{Kind: action.Unpause, Topic: "clicks#ephemeral"}},
		{"tombstone?topic=orders&node=n1:4151", []string{"no longer name this node", "will be deleted on this node", "1,292 messages will be lost there"}, "orders", action.Action{Kind: action.Tombstone, Topic: "orders", Node: "n1:4151"}},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			f := newFake()
			handler := New(f.config)
			_, body := answer(handler, httptest.NewRequest(http.MethodGet, "/actions/"+test.query, nil))
			all := checkPage(t, body)
			shown := strings.Join(texts(find(all, "li")), " ")
			for _, effect := range test.effects {
				if !strings.Contains(shown, effect) {
					t.Errorf("%q is not said in %q", effect, shown)
				}
			}
			form := one(t, all, "form", "class=confirm", "method=post")
			fields := url.Values{}
			for _, input := range find(all, "input", "type=hidden") {
				fields.Set(input.attr["name"], input.attr["value"])
			}
			if typing := find(all, "input", "name=confirm"); (len(typing) == 1) != (test.typed != "") {
				t.Errorf("%d names to type", len(typing))
			}
			if test.typed != "" {
				for _, wrong := range []string{"", "wrong", strings.ToUpper(test.typed)} {
					fields.Set("confirm", wrong)
					resp, body := post(handler, form.attr["action"], fields.Encode())
					if resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, "Nothing was done") {
						t.Errorf("after typing %q: status %d", wrong, resp.StatusCode)
					}
					one(t, checkPage(t, body), "form", "class=confirm")
				}
				fields.Set("confirm", test.typed)
			}
			if len(f.actions()) > 0 {
				t.Fatalf("done without confirmation: %v", f.actions())
			}
			resp, _ := post(handler, form.attr["action"], fields.Encode())
			if resp.StatusCode != http.StatusSeeOther {
				t.Fatalf("status %d", resp.StatusCode)
			}
			for range 2 { // loading the result again does nothing again
				result, body := answer(handler, httptest.NewRequest(http.MethodGet, resp.Header.Get("Location"), nil))
				checkPage(t, body)
				if result.StatusCode != http.StatusOK || !strings.Contains(body, "n1:4151") {
					t.Errorf("result %d:\n%s", result.StatusCode, body)
				}
			}
			if diff := cmp.Diff([]action.Action{test.want}, f.actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if f.fresh != 1 {
				t.Errorf("%d refreshes before the result is shown", f.fresh)
			}
		})
	}
}

// A result tells done, partly done and failed apart, daemon by daemon, and says what could not be read.
func TestResults(t *testing.T) {
	var report cluster.Report
	report.Add(cluster.Failures{{Target: "n2:4151", Stage: "/topic/delete", Err: errors.New("refused")}})
	var read cluster.Report
	read.Add(cluster.Failures{{Target: "l2:4161", Stage: "/lookup", Err: errors.New("timed out")}})
	good := api.AdminResult{Target: "n1:4151", Stage: "/topic/delete"}
	bad := api.AdminResult{Target: "n2:4151", Stage: "/topic/delete", Error: "refused"}
	tests := []struct {
		name    string
		outcome *action.Outcome
		err     error
		kind    string
		text    string
		rows    []string
	}{
		{"done", &action.Outcome{Results: []api.AdminResult{good}}, nil, "good", "Done: topic gone is deleted.", []string{"n1:4151"}},
		{"partly", &action.Outcome{Results: []api.AdminResult{good, bad}, Report: report}, nil, "warn", "Partly done: 1 of 2 requests failed.", []string{"n1:4151", "n2:4151"}},
		{"failed", &action.Outcome{Results: []api.AdminResult{bad}, Report: report}, nil, "bad", "Failed: topic gone is not deleted anywhere.", []string{"n2:4151"}},
		{"nothing", &action.Outcome{}, nil, "warn", "Nothing was done: no daemon has it.", nil},
		{"read", &action.Outcome{Results: []api.AdminResult{good}, Report: read}, nil, "warn", "some daemons did not answer.l2:4161 /lookup: timed out", []string{"n1:4151"}},
		{"unreachable", nil, &cluster.Unreachable{Kind: "nsqlookupd"}, "bad", "not deleted anywhere.failed to query any nsqlookupd", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake()
			f.outcome = func(action.Action) (*action.Outcome, error) { return test.outcome, test.err }
			handler := New(f.config)
			resp, _ := post(handler, "/actions/delete", "topic=gone")
			_, body := answer(handler, httptest.NewRequest(http.MethodGet, resp.Header.Get("Location"), nil))
			all := checkPage(t, body)
			if text := texts(find(all, "div", "class=notice "+test.kind)); len(text) != 1 || !strings.Contains(text[0], test.text) {
				t.Errorf("notice %q", text)
			}
			if rows := rowNames(all); strings.Join(rows, " ") != strings.Join(test.rows, " ") {
				t.Errorf("rows %q", rows)
			}
			_, body = answer(handler, httptest.NewRequest(http.MethodGet, "/actions/recent", nil))
			if !strings.Contains(body, resp.Header.Get("Location")) || !strings.Contains(body, "Delete topic gone") {
				t.Error("the action is not among the recent ones")
			}
		})
	}
}

// The create form works without a confirmation; a bad name is said and can be typed again.
func TestCreate(t *testing.T) {
	f := newFake()
	handler := New(f.config)
	_, body := f.get(t, "/lookup")
	all := checkPage(t, body)
	form := one(t, all, "form", "method=post", "action=/actions/create")
	one(t, all, "input", "name=topic", "required")
	one(t, all, "input", "name=channel")
	for _, bad := range []string{"", "topic=", "topic=a%20b", "topic=*", "topic=t&channel=c%2Fd", "channel=c"} {
		resp, body := post(handler, form.attr["action"], bad)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "INVALID_") {
			t.Errorf("%q: status %d", bad, resp.StatusCode)
		}
		one(t, checkPage(t, body), "form", "action=/actions/create")
	}
	if resp, _ := post(handler, form.attr["action"], "topic=t%23ephemeral&channel=c"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("status %d", resp.StatusCode)
	}
	if diff := cmp.Diff([]action.Action{{Kind: action.Create, Topic: "t#ephemeral", Channel: "c"}}, f.actions()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// What the engine refuses is said, not shown as done.
func TestRefusedByEngine(t *testing.T) {
	f := newFake()
	f.outcome = func(action.Action) (*action.Outcome, error) { return nil, action.Invalid("NODE_NOT_FOUND") }
	resp, body := post(New(f.config), "/actions/pause", "topic=orders")
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "NODE_NOT_FOUND") {
		t.Errorf("status %d:\n%s", resp.StatusCode, body)
	}
}

// Who is no admin sees no action, and is refused one all the same; so is another site in an admin's name.
func TestWhoMayNot(t *testing.T) {
	f := newFake()
	f.admin = false
	for _, path := range []string{"/", "/topics", "/topics/orders", "/topics/idle", "/topics/orders/billing", "/nodes/n1:4151", "/lookup"} {
		_, body := f.get(t, path)
		if strings.Contains(body, "data-confirm") || strings.Contains(body, `method="post"`) || strings.Contains(body, "Tombstone") {
			t.Errorf("%s offers actions", path)
		}
	}
	for _, path := range []string{"/actions/delete?topic=idle", "/actions/create", "/actions/sing"} {
		if resp, body := f.get(t, path); resp.StatusCode != http.StatusForbidden || strings.Contains(body, "<form") {
			t.Errorf("GET %s: status %d", path, resp.StatusCode)
		}
	}
	if resp, _ := post(New(f.config), "/actions/pause", "topic=orders"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
	f.admin = true
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"} {
		req := httptest.NewRequest(http.MethodPost, "/actions/pause", strings.NewReader("topic=orders"))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set(name, value)
		if resp, _ := answer(New(f.config), req); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: status %d", name, value, resp.StatusCode)
		}
	}
	if len(f.actions()) > 0 {
		t.Errorf("done: %v", f.actions())
	}
}

// Forms that are no forms of ours do nothing.
func TestHostileForms(t *testing.T) {
	f := newFake()
	handler := New(f.config)
	tests := []struct{ path, form string }{
		{"/actions/pause", "topic=orders&x=" + strings.Repeat("y", maxForm)},
		{"/actions/pause", "topic=%zz"},
		{"/actions/pause?topic=orders", ""}, // parameters of the address are none of the form
		{"/actions/sing", "topic=orders"},
		{"/actions/delete", "topic=*"},
		{"/actions/tombstone", "topic=orders&node=169.254.169.254:80"},
		{"/actions/tombstone", "topic=orders"},
		{"/actions/delete", "topic=orders&confirm=orders2&confirm=orders"},
	}
	for _, test := range tests {
		if resp, body := post(handler, test.path, test.form); resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s %.40q: status %d", test.path, test.form, resp.StatusCode)
		} else {
			checkPage(t, body)
		}
	}
	if len(f.actions()) > 0 {
		t.Errorf("done: %v", f.actions())
	}
}

// The journal forgets the oldest.
func TestJournalIsBounded(t *testing.T) {
	var j journal
	first := j.add(entry{})
	var last string
	for range remembered {
		last = j.add(entry{})
	}
	if _, ok := j.find(first); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := j.find(last); !ok || len(j.all()) != remembered {
		t.Errorf("%d entries, the latest among them: %v", len(j.all()), ok)
	}
}
