package httpd

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Every way in which the routes of topics are refused.
func TestTopicRoutesRefuse(t *testing.T) {
	n := start(t, 100)
	const missing, invalid, notFound, badQuery = "MISSING_ARG_TOPIC", "INVALID_TOPIC", "TOPIC_NOT_FOUND", "INVALID_REQUEST"
	tests := []struct {
		action                     string
		noTopic, badTopic, unknown string // code, "" for success
	}{
		{"create", missing, invalid, ""},
		{"delete", missing, notFound, notFound},
		{"empty", missing, invalid, notFound},
		{"pause", missing, notFound, notFound},
		{"unpause", missing, notFound, notFound},
	}
	status := map[string]int{missing: 400, invalid: 400, notFound: 404, badQuery: 400}
	for _, test := range tests {
		t.Run(test.action, func(t *testing.T) {
			for query, code := range map[string]string{
				"":                                  test.noTopic,
				"?channel=c":                        test.noTopic,
				"?topic=":                           test.badTopic,
				"?topic=a*b":                        test.badTopic,
				"?topic=unknown-" + test.action:     test.unknown,
				"?topic=%zz":                        badQuery,
				"?topic=a;b=c":                      badQuery,
				"?topic=" + strings.Repeat("a", 65): test.badTopic,
			} {
				r := n.post("/topic/"+test.action+query, "a body that nobody wants")
				if code == "" {
					r.expect(t, http.StatusOK, "")
				} else {
					r.expectCode(t, status[code], code)
				}
			}
		})
	}
	if got := n.topicNames(); !slices.Equal(got, []string{"unknown-create"}) {
		t.Errorf("topics %q", got)
	}
}

// Every way in which the routes of channels are refused, the earlier check first.
func TestChannelRoutesRefuse(t *testing.T) {
	n := start(t, 100)
	n.setUp("/topic/create?topic=t")
	tests := []struct {
		query  string
		status int
		code   string
	}{
		{"?topic=%zz&channel=c", 400, "INVALID_REQUEST"},
		{"", 400, "MISSING_ARG_TOPIC"},
		{"?channel=c", 400, "MISSING_ARG_TOPIC"},
		{"?topic=", 400, "INVALID_ARG_TOPIC"},
		{"?topic=a*b", 400, "INVALID_ARG_TOPIC"},
		{"?topic=t", 400, "MISSING_ARG_CHANNEL"},
		{"?topic=nope", 400, "MISSING_ARG_CHANNEL"},
		{"?topic=t&channel=", 400, "INVALID_ARG_CHANNEL"},
		{"?topic=nope&channel=a*b", 400, "INVALID_ARG_CHANNEL"},
		{"?topic=nope&channel=c", 404, "TOPIC_NOT_FOUND"},
	}
	for _, action := range []string{"create", "delete", "empty", "pause", "unpause"} {
		for _, test := range tests {
			t.Run(action+test.query, func(t *testing.T) {
				n.post("/channel/"+action+test.query, "").expectCode(t, test.status, test.code)
			})
		}
		if action != "create" {
			n.post("/channel/"+action+"?topic=t&channel=nope", "").expectCode(t, 404, "CHANNEL_NOT_FOUND")
		}
	}
	if got := n.topicNames(); !slices.Equal(got, []string{"t"}) {
		t.Errorf("topics %q", got)
	}
	if channels := n.topicStats("t").Channels; len(channels) != 0 {
		t.Errorf("channels %v", channels)
	}
}

func TestTopicRoutesAct(t *testing.T) {
	n := start(t, 100)
	n.setUp("/topic/create?topic=t", "/topic/create?topic=t", "/topic/create?topic=u", "/topic/create?topic=e%23ephemeral")
	if got := n.topicNames(); !slices.Equal(got, []string{"e#ephemeral", "t", "u"}) {
		t.Fatalf("topics %q", got)
	}
	n.setUp("/topic/pause?topic=t", "/topic/pause?topic=t")
	if !n.topicStats("t").Paused || n.topicStats("u").Paused {
		t.Error("pause paused not just t")
	}
	n.post("/mpub?topic=t", "a\nb\n").expect(t, 200, "OK")
	n.post("/mpub?topic=u", "a\nb\n").expect(t, 200, "OK")
	n.setUp("/topic/empty?topic=t")
	if t0, u := n.topicStats("t").Depth, n.topicStats("u").Depth; t0 != 0 || u != 2 {
		t.Errorf("depths %d and %d after emptying t", t0, u)
	}
	n.setUp("/topic/unpause?topic=t", "/topic/unpause?topic=t")
	if n.topicStats("t").Paused {
		t.Error("still paused")
	}
	n.setUp("/topic/delete?topic=t", "/topic/delete?topic=e%23ephemeral")
	if got := n.topicNames(); !slices.Equal(got, []string{"u"}) {
		t.Errorf("topics %q", got)
	}
	n.post("/topic/delete?topic=t", "").expectCode(t, 404, "TOPIC_NOT_FOUND")
}

func TestChannelRoutesAct(t *testing.T) {
	n := start(t, 100)
	const query = "?topic=t&channel=c%23ephemeral"
	channel := func() (name string, depth int64, paused bool) {
		channels := n.topicStats("t").Channels
		if len(channels) != 1 {
			t.Fatalf("channels %v", channels)
		}
		return channels[0].Name, channels[0].Depth, channels[0].Paused
	}
	n.setUp("/topic/create?topic=t", "/channel/create"+query, "/channel/create"+query, "/channel/pause"+query, "/channel/pause"+query)
	n.post("/mpub?topic=t", "a\nb\n").expect(t, 200, "OK")
	eventually(t, "the paused channel holds both messages", func() bool {
		name, depth, paused := channel()
		return name == "c#ephemeral" && depth == 2 && paused
	})
	n.setUp("/channel/empty"+query, "/channel/unpause"+query)
	if _, depth, paused := channel(); depth != 0 || paused {
		t.Errorf("depth %d, paused %v", depth, paused)
	}
	n.setUp("/channel/delete" + query)
	if channels := n.topicStats("t").Channels; len(channels) != 0 {
		t.Errorf("channels %v", channels)
	}
	n.post("/channel/delete"+query, "").expectCode(t, 404, "CHANNEL_NOT_FOUND")
}

// What cannot be made durable is not answered with success, and the log says why.
func TestAdministrationFails(t *testing.T) {
	for _, target := range []string{
		"/topic/pause?topic=t", "/topic/unpause?topic=t", "/topic/delete?topic=t",
		"/channel/pause?topic=t&channel=c", "/channel/unpause?topic=t&channel=c", "/channel/delete?topic=t&channel=c",
	} {
		t.Run(target, func(t *testing.T) {
			n := start(t, 100)
			n.setUp("/topic/create?topic=t", "/channel/create?topic=t&channel=c")
			n.breakDisk()
			n.post(target, "").expectCode(t, 500, "INTERNAL_ERROR")
			if !strings.Contains(n.log.String(), "ERROR: HTTP handler failed - ") {
				t.Errorf("no cause in the log:\n%s", n.log)
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		n := start(t, 100)
		n.setUp("/topic/create?topic=t")
		if err := n.broker.Close(); err != nil {
			t.Fatal(err)
		}
		n.post("/topic/create?topic=u", "").expectCode(t, 500, "INTERNAL_ERROR")
		n.post("/channel/create?topic=t&channel=c", "").expectCode(t, 500, "INTERNAL_ERROR")
	})
}
