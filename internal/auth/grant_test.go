package auth

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var received = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDecodeRefuses(t *testing.T) {
	entry := func(fields string) string { return `{"ttl":1,"authorizations":[{},{` + fields + `}]}` }
	for _, test := range []struct{ answer, want string }{
		{``, "answer is not JSON"},
		{`{`, "answer is not JSON"},
		{`{"ttl":1} {}`, "answer is not JSON"},
		{strings.Repeat("[", 1<<20), "answer is not JSON"},
		{`[]`, `wrong type at ""`},
		{`"ok"`, `wrong type at ""`},
		{`null`, "ttl 0"},
		{`{}`, "ttl 0"},
		{`{"ttl":null}`, "ttl 0"},
		{`{"ttl":0}`, "ttl 0"},
		{`{"ttl":-1}`, "ttl -1"},
		{`{"ttl":"60"}`, `wrong type at "ttl"`},
		{`{"ttl":1.5}`, `wrong type at "ttl"`},
		{`{"ttl":1e3}`, `wrong type at "ttl"`},
		{`{"ttl":true}`, `wrong type at "ttl"`},
		{`{"ttl":9223372036854775808}`, `wrong type at "ttl"`},
		{`{"ttl":1,"identity":5}`, `wrong type at "identity"`},
		{`{"ttl":1,"identity_url":[]}`, `wrong type at "identity_url"`},
		{`{"ttl":1,"authorizations":{}}`, `wrong type at "authorizations"`},
		{`{"ttl":1,"authorizations":["x"]}`, `wrong type at "authorizations"`},
		{entry(`"topic":5`), `wrong type at "authorizations.topic"`},
		{entry(`"channels":"x"`), `wrong type at "authorizations.channels"`},
		{entry(`"permissions":"publish"`), `wrong type at "authorizations.permissions"`},
		{entry(`"permissions":["publish","Subscribe"]`), "entry 2 of answer: unknown permission"},
		{entry(`"permissions":[""]`), "entry 2 of answer: unknown permission"},
		{entry(`"topic":"("`), "entry 2 of answer: topic: compile expression: missing closing )"},
		{entry(`"topic":"(?=x)"`), "entry 2 of answer: topic: compile expression: invalid or unsupported Perl syntax"},
		{entry(`"channels":["x","a**"]`), "entry 2 of answer: channel: compile expression: invalid nested repetition operator"},
		{entry(`"topic":"a{1001}"`), "invalid repeat count"},
		{entry(`"topic":"` + strings.Repeat("x", maxExpression+1) + `"`), "expression is longer than 16384 bytes"},
		{entry(`"topic":"(` + strings.Repeat("x", 300) + `){1000}"`), "larger than 262144 instructions"},
		{entry(`"topic":"((a{100}){100}){10}"`), "invalid repeat count"},
	} {
		_, err := decode([]byte(test.answer), received)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %v, want %q", test.answer, err, test.want)
		}
	}
}

// Many small expressions cannot become large together either.
func TestLargeProgramsTogether(t *testing.T) {
	var entries []string
	for i := range 400 {
		entries = append(entries, fmt.Sprintf(`{"topic":"t%d[a-z]{999}"}`, i))
	}
	_, err := decode([]byte(`{"ttl":1,"authorizations":[`+strings.Join(entries, ",")+`]}`), received)
	if err == nil || !strings.Contains(err.Error(), "instructions") {
		t.Errorf("%v", err)
	}
	// Equal ones count once, and so many entries as somebody may really have are fine.
	for i := range entries {
		entries[i] = `{"topic":"t[a-z]{999}"}`
	}
	for i := range 2000 {
		entries = append(entries, fmt.Sprintf(`{"topic":"^orders\\.region-%d\\..*$","channels":[".*"],"permissions":["publish"]}`, i))
	}
	g, err := decode([]byte(`{"ttl":1,"authorizations":[`+strings.Join(entries, ",")+`]}`), received)
	if err != nil {
		t.Fatal(err)
	}
	if g.Entries() != 2400 || !g.Allows(Publish, "orders.region-1999.x", "") || g.Allows(Publish, "orders.region-2000.x", "") {
		t.Errorf("%d entries", g.Entries())
	}
}

func TestTTL(t *testing.T) {
	for ttl, want := range map[int64]time.Time{
		1:             received.Add(time.Second),
		3600:          received.Add(time.Hour),
		maxTTL:        received.Add(time.Duration(maxTTL) * time.Second),
		maxTTL + 1:    received.Add(time.Duration(maxTTL) * time.Second),
		math.MaxInt64: received.Add(time.Duration(maxTTL) * time.Second),
	} {
		g, err := decode(fmt.Appendf(nil, `{"ttl":%d}`, ttl), received)
		if err != nil || !g.Expires().Equal(want) || !want.After(received) {
			t.Errorf("ttl %d: %v, %v", ttl, g, err)
		}
	}
}

func TestAllows(t *testing.T) {
	type ask struct {
		permission     Permission
		topic, channel string
	}
	for _, test := range []struct {
		entries string
		entered int
		yes, no []ask
	}{
		{`[]`, 0, nil, []ask{{Subscribe, "t", "c"}, {Publish, "t", ""}}},
		{`null`, 0, nil, []ask{{Subscribe, "t", "c"}}},
		{`[{}]`, 1, nil, []ask{{Subscribe, "t", "c"}, {Publish, "t", ""}}},
		// Matching is not anchored.
		{`[{"topic":"o","channels":["h"],"permissions":["subscribe"]}]`, 1,
			[]ask{{Subscribe, "o", "h"}, {Subscribe, "foo", "ch2"}},
			[]ask{{Subscribe, "bar", "ch"}, {Subscribe, "foo", "c"}, {Subscribe, "foo", ""}, {Publish, "foo", "h"}}},
		{`[{"topic":"^o$","channels":["^h$"],"permissions":["subscribe"]}]`, 1,
			[]ask{{Subscribe, "o", "h"}}, []ask{{Subscribe, "foo", "h"}, {Subscribe, "o", "ch"}}},
		// Letter case matters, unless the expression says otherwise.
		{`[{"topic":"(?i)orders","channels":["X"],"permissions":["subscribe"]}]`, 1,
			[]ask{{Subscribe, "ORDERS", "X"}}, []ask{{Subscribe, "ORDERS", "x"}}},
		// Publishing needs a channel expression that matches nothing at all.
		{`[{"topic":"t","channels":["^ch$"],"permissions":["publish"]}]`, 1,
			nil, []ask{{Publish, "t", ""}, {Publish, "t", "ch"}}},
		{`[{"topic":"t","channels":["^ch$",""],"permissions":["publish"]}]`, 1,
			[]ask{{Publish, "t", ""}, {Publish, "t", "ch"}}, []ask{{Subscribe, "t", "ch"}}},
		{`[{"topic":"t","channels":["^$"],"permissions":["publish"]}]`, 1,
			[]ask{{Publish, "t", ""}, {Publish, "t", "ch"}}, nil},
		// Without channels nothing is permitted.
		{`[{"topic":"t","channels":[],"permissions":["publish","subscribe"]},{"topic":"t","permissions":["publish"]}]`, 2,
			nil, []ask{{Publish, "t", ""}, {Subscribe, "t", ""}}},
		// Without a topic each is meant; without permissions none is given.
		{`[{"channels":[".*"],"permissions":["subscribe"]}]`, 1,
			[]ask{{Subscribe, "any", "c"}}, []ask{{Publish, "any", ""}}},
		{`[{"topic":".*","channels":[".*"]},{"topic":".*","channels":[".*"],"permissions":[]}]`, 2,
			nil, []ask{{Subscribe, "t", "c"}, {Publish, "t", ""}}},
		// Any entry may permit, but one has to permit everything.
		{`[{"topic":"^a$","channels":["^x$"],"permissions":["subscribe"]},{"topic":"^b$","channels":["^y$","^z$"],"permissions":["subscribe","publish"]}]`, 2,
			[]ask{{Subscribe, "a", "x"}, {Subscribe, "b", "y"}, {Subscribe, "b", "z"}},
			[]ask{{Subscribe, "a", "y"}, {Subscribe, "b", "x"}, {Publish, "b", ""}}},
	} {
		g, err := decode([]byte(`{"ttl":1,"authorizations":`+test.entries+`}`), received)
		if err != nil {
			t.Errorf("%s: %v", test.entries, err)
			continue
		}
		if g.Entries() != test.entered {
			t.Errorf("%s: %d entries", test.entries, g.Entries())
		}
		for _, a := range test.yes {
			if !g.Allows(a.permission, a.topic, a.channel) {
				t.Errorf("%s does not allow %v", test.entries, a)
			}
		}
		for _, a := range test.no {
			if g.Allows(a.permission, a.topic, a.channel) {
				t.Errorf("%s allows %v", test.entries, a)
			}
		}
	}
}

// Any bytes are an error or a grant that permits what the answer says, entry by entry.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		good, `{}`, `null`, `{"ttl":9223372036854775807}`, `{"ttl":-1}`,
		`{"TTL":5,"authorizations":[{"topic":"o","channels":["^ch$",""],"permissions":["publish"]},{}]}`,
		`{"ttl":1,"authorizations":[{"topic":"((a{100}){100}){10}"}]}`, `{"ttl":1,"authorizations":[{"topic":"\\pL+("}]}`,
		`{"ttl":1,"authorizations":[{"channels":["(?i)x","\\C"],"permissions":["subscribe","subscribe"]}]}`,
	} {
		f.Add([]byte(seed), "foo", "ch")
	}
	f.Fuzz(func(t *testing.T, answer []byte, topic, channel string) {
		g, err := decode(answer, received)
		if err != nil {
			return
		}
		if !g.Expires().After(received) {
			t.Errorf("expires at %v", g.Expires())
		}
		var said struct {
			Authorizations []authorization `json:"authorizations"`
		}
		if err := json.Unmarshal(answer, &said); err != nil {
			t.Fatal(err)
		}
		if g.Entries() != len(said.Authorizations) {
			t.Errorf("%d entries of %d", g.Entries(), len(said.Authorizations))
		}
		for permission, name := range map[Permission]string{Subscribe: "subscribe", Publish: "publish"} {
			value := channel
			if permission == Publish {
				value = ""
			}
			want := slices.ContainsFunc(said.Authorizations, func(a authorization) bool {
				return slices.Contains(a.Permissions, name) && regexp.MustCompile(a.Topic).MatchString(topic) &&
					slices.ContainsFunc(a.Channels, func(c string) bool { return regexp.MustCompile(c).MatchString(value) })
			})
			if got := g.Allows(permission, topic, channel); got != want {
				t.Errorf("%s %q %q: %v, want %v", name, topic, channel, got, want)
			}
		}
	})
}
