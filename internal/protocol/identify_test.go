package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeIdentify(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       Identify
	}{
		{"nothing set", `{}`, Identify{}},
		{"null is an empty object", `null`, Identify{}},
		{"null members are not set", `{"client_id":null,"heartbeat_interval":null,"tls_v1":null,"sample_rate":null}`, Identify{}},
		{
			"every member",
			`{"client_id":"c","hostname":"h","user_agent":"u","feature_negotiation":true,"heartbeat_interval":1000,` +
				`"output_buffer_size":64,"output_buffer_timeout":25,"tls_v1":true,"snappy":true,"deflate":true,` +
				`"deflate_level":3,"sample_rate":99,"msg_timeout":5000,"topology_region":"r","topology_zone":"z"}`,
			Identify{"c", "h", "u", true, 1000, 64, 25, true, true, true, 3, 99, 5000, "r", "z"},
		},
		{"letter case of keys", `{"Client_ID":"c","HEARTBEAT_INTERVAL":-1}`, Identify{ClientID: "c", HeartbeatInterval: -1}},
		{"unknown members", `{"short_id":"s","long_id":"l","x":{"y":[1,2.5,"z"]},"client_id":"c"}`, Identify{ClientID: "c"}},
		{"the last of two wins", `{"msg_timeout":1,"msg_timeout":2}`, Identify{MsgTimeout: 2}},
		{"white space around", " \r\n\t{ \"snappy\" : true } \n", Identify{Snappy: true}},
		{"integers of all signs", `{"heartbeat_interval":-2147483648,"msg_timeout":2147483647,"output_buffer_size":-0}`, Identify{HeartbeatInterval: -2147483648, MsgTimeout: 2147483647}},
		{"escapes", `{"client_id":"\u00e9\"\\\n"}`, Identify{ClientID: "é\"\\\n"}},
		{"bytes that are no UTF-8 are replaced", "{\"client_id\":\"\xff\"}", Identify{ClientID: "\ufffd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeIdentify([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeIdentifyRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                    ``,
		"no JSON":                    `hello`,
		"a cut object":               `{"client_id":"c"`,
		"an array":                   `[]`,
		"an array of an object":      `[{}]`,
		"a string":                   `"{}"`,
		"a number":                   `1`,
		"a boolean":                  `true`,
		"trailing bytes":             `{} x`,
		"a second object":            `{}{}`,
		"a trailing zero byte":       "{}\x00",
		"a trailing comma":           `{"client_id":"c",}`,
		"single quotes":              `{'client_id':'c'}`,
		"a decimal point":            `{"heartbeat_interval":1000.0}`,
		"an exponent":                `{"heartbeat_interval":1e3}`,
		"a number as a string":       `{"heartbeat_interval":"1000"}`,
		"a number for a string":      `{"client_id":1}`,
		"an object for a string":     `{"hostname":{}}`,
		"a number for a boolean":     `{"tls_v1":1}`,
		"a string for a boolean":     `{"snappy":"true"}`,
		"an array for a number":      `{"msg_timeout":[1]}`,
		"a number of 65 bits":        `{"msg_timeout":18446744073709551616}`,
		"a sample rate of 33 bits":   `{"sample_rate":4294967296}`,
		"a wrong type in odd casing": `{"MSG_Timeout":"x"}`,
		"nesting without an end":     strings.Repeat(`{"x":`, 20000),
	} {
		if got, err := DecodeIdentify([]byte(body)); err == nil {
			t.Errorf("%s: %.80q is read as %+v", name, body, got)
		}
	}
}

// The answer has the members, the order and the escapes of the wire.
func TestIdentifyResponseBytes(t *testing.T) {
	response := IdentifyResponse{
		MaxRdyCount: 2500, Version: "1.3.0", MaxMsgTimeout: 900000, MsgTimeout: 5000, DeflateLevel: 6, MaxDeflateLevel: 6,
		OutputBufferSize: 16384, OutputBufferTimeout: 250, TopologyZone: "<a&b>",
	}
	got, err := json.Marshal(&response)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"max_rdy_count":2500,"version":"1.3.0","max_msg_timeout":900000,"msg_timeout":5000,"tls_v1":false,"deflate":false,` +
		`"deflate_level":6,"max_deflate_level":6,"snappy":false,"sample_rate":0,"auth_required":false,"output_buffer_size":16384,` +
		`"output_buffer_timeout":250,"topology_region":"","topology_zone":"\u003ca\u0026b\u003e"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is accepted is a JSON document, and encoded and read again it is the same.
func FuzzDecodeIdentify(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"client_id":"c1","hostname":"h1"}`, `{"heartbeat_interval":1e3}`, `{"sample_rate":99} x`,
		`{"feature_negotiation":true,"snappy":true,"DEFLATE":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeIdentify(body)
		if (got == nil) == (err == nil) {
			t.Fatalf("%+v and %v", got, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is accepted", body)
		}
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeIdentify(encoded)
		if err != nil || *again != *got {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}
