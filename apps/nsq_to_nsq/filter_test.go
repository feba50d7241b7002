package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const dropped = "(dropped)"

func applied(f filter, body string) string {
	got, err := f.apply([]byte(body))
	switch {
	case err != nil:
		return err.Error()
	case got == nil:
		return dropped
	}
	return string(got)
}

// Which messages pass, and that those that do are not changed.
func TestRequire(t *testing.T) {
	const unknown = "no JSON object"
	for _, test := range []struct{ field, value, body, want string }{
		{"", "", "no json", "no json"},
		{"a", "", ` { "a" : null, "b":1 } `, ` { "a" : null, "b":1 } `},
		{"a", "", `{"b":1}`, dropped},
		{"a", "", `{}`, dropped},
		{"a", "", `null`, dropped},
		{"a.b", "", `{"a":{"b":1}}`, dropped},
		{"a.b", "", `{"a.b":1}`, `{"a.b":1}`},
		{"a", "", `{"\u0061":1}`, `{"\u0061":1}`},
		{"A", "", `{"a":1}`, dropped},
		{"a", "", "no json", unknown},
		{"a", "", "", unknown},
		{"a", "", `[{"a":1}]`, unknown},
		{"a", "", `1`, unknown},
		{"a", "", `"a"`, unknown},
		{"a", "", `true`, unknown},
		{"a", "", `{"a":1} {}`, unknown},
		{"a", "", `{"a":1,}`, unknown},
		{"a", "", `{"a":1`, unknown},
		{"a", "", `{"a":01}`, unknown},
		{"a", "", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), unknown},
		{"a", "", `{"a":1e400}`, `{"a":1e400}`},
		{"", "x", `{"a":1}`, `{"a":1}`}, // no field: the value does not count

		{"a", "x", `{"b":1}`, "missing field to check required value"},
		{"a", "x", `null`, "missing field to check required value"},
		{"a", "x", `{"a":"x"}`, `{"a":"x"}`},
		{"a", "x", `{"a":"\u0078"}`, `{"a":"\u0078"}`},
		{"a", "x", `{"a":"X"}`, dropped},
		{"a", "x", `{"a":"y","a":"x"}`, `{"a":"y","a":"x"}`},
		{"a", "x", `{"a":"x","a":"y"}`, dropped},
		{"a", "1", `{"a":"1"}`, `{"a":"1"}`},
		{"a", "1", `{"a":1}`, `{"a":1}`},
		{"a", "1", `{"a":1.0}`, `{"a":1.0}`},
		{"a", "1", `{"a":1e0}`, `{"a":1e0}`},
		{"a", "1.0", `{"a":1}`, `{"a":1}`},
		{"a", "01", `{"a":1}`, `{"a":1}`},
		{"a", "0", `{"a":-0.0}`, `{"a":-0.0}`},
		{"a", "1", `{"a":2}`, dropped},
		{"a", "x", `{"a":1}`, dropped},
		{"a", "1e400", `{"a":1e400}`, dropped},
		{"a", "9007199254740992", `{"a":9007199254740993}`, dropped},
		{"a", "9007199254740993", `{"a":9007199254740993}`, `{"a":9007199254740993}`},
		{"a", "-9007199254740993", `{"a":-9007199254740993}`, `{"a":-9007199254740993}`},
		{"a", "1e300", `{"a":1e300}`, `{"a":1e300}`},
		{"a", "true", `{"a":true}`, dropped},
		{"a", "true", `{"a":"true"}`, `{"a":"true"}`},
		{"a", "null", `{"a":null}`, dropped},
		{"a", "[]", `{"a":[]}`, dropped},
		{"a", "{}", `{"a":{}}`, dropped},
		{"a", "0", `{"a":false}`, dropped},
	} {
		if got := applied(filter{field: test.field, value: test.value}, test.body); got != test.want {
			t.Errorf("%q=%q %.100q: %q, want %q", test.field, test.value, test.body, got, test.want)
		}
	}
}

// What is left of messages: the listed fields in their order, keys and values as they were.
func TestWhitelist(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{"z":1,"b":2,"a":3}`, `{"z":1,"a":3}`},
		{` { "a" : [ 1, {"x" : 2.50} ] , "q":0, "z":"<&>\u2028é" } `, `{"a":[ 1, {"x" : 2.50} ],"z":"<&>\u2028é"}`},
		{`{"a":9007199254740993,"z":12345678901234567890.000}`, `{"a":9007199254740993,"z":12345678901234567890.000}`},
		{`{"a":1E+2,"z":-0.0}`, `{"a":1E+2,"z":-0.0}`},
		{`{"a":1e400}`, `{"a":1e400}`},
		{`{"\u0061":1,"q":2}`, `{"\u0061":1}`},
		{`{"a":1,"z":2,"a":3}`, `{"a":3,"z":2}`},
		{`{"q":1}`, `{}`},
		{`{}`, `{}`},
		{`null`, `{}`},
		{`{"a":null}`, `{"a":null}`},
		{"{\"a\":\"\xff\"}", "{\"a\":\"\xff\"}"},
		{`[]`, errNoJSON.Error()},
	} {
		if got := applied(filter{whitelist: []string{"z", "a"}}, test.body); got != test.want {
			t.Errorf("%q: %q, want %q", test.body, got, test.want)
		}
	}
	both := filter{field: "kind", value: "good", whitelist: []string{"id"}}
	if got := applied(both, `{"id":1,"kind":"good"}`); got != `{"id":1}` {
		t.Errorf("the required field is not listed: %q", got)
	}
	if got := applied(both, `{"id":1,"kind":"bad"}`); got != dropped {
		t.Errorf("the whitelist comes before the filter: %q", got)
	}
}

// Whatever a message is, the filter takes it as encoding/json does, and keeps nothing but what is listed.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[2,{"a":3}]}`, ` {"a" : "x\u0061" , "a":{}} `, `null`, `[`, `{"a":1e999}`, "{\"\xff\":1,\"a\":\"\xff\"}"} {
		f.Add([]byte(seed), "a", "1")
	}
	f.Fuzz(func(t *testing.T, body []byte, name, value string) {
		original := slices.Clone(body)
		defer func() {
			if !bytes.Equal(body, original) {
				t.Error("the message was changed")
			}
		}()
		if _, err := (&filter{field: name, value: value}).apply(body); err != nil && !errors.Is(err, errNoJSON) && !errors.Is(err, errNoField) {
			t.Errorf("error %v", err)
		}
		got, err := (&filter{whitelist: []string{name}}).apply(body)
		var object map[string]json.RawMessage
		if decoding := json.Unmarshal(body, &object); (decoding == nil) != (err == nil) {
			t.Fatalf("error %v, of encoding/json %v", err, decoding)
		} else if err != nil {
			return
		}
		want := map[string]json.RawMessage{}
		if value, ok := object[name]; ok {
			want[name] = value
		}
		var left map[string]json.RawMessage
		if err := json.Unmarshal(got, &left); err != nil || !reflect.DeepEqual(left, want) {
			t.Errorf("%q is left, error %v; want %q", got, err, want)
		}
	})
}
