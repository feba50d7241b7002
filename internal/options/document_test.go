package options

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// anywhere replaces the default that depends on the machine.
var anywhere = map[string]string{"id": "5"}

// The sample has every key once, under its help, set or commented out; a value that is no default
// names the default.
func TestSample(t *testing.T) {
	s := newSettings()
	sample, err := s.table().Sample(Sample{
		Active: []string{"port", "nsqlookupd_tcp_addresses"},
		Values: map[string]string{"id": "5", "nsqlookupd_tcp_addresses": `["a:1"]`},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, settings, _ := strings.Cut(sample, "\n### Rest\n")
	want := `
## number (default from the host name)
#id = 5

## port
port = 0

## time
#msg_timeout = "1m"

## switch
#snappy = true

## host:port
#tcp_address = "0.0.0.0:4150"

## way
#method = "get"

## peer (default [])
nsqlookupd_tcp_addresses = ["a:1"]

## numbers
#percentiles = []

## demand
#tls_required = false

## version
#tls_min_version = "tls1.2"
`
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
	if strings.Contains(sample, "verbose") || strings.Contains(sample, "config_strict") {
		t.Errorf("a flag without key is in the sample\n%s", sample)
	}
}

// Whatever the values are, the file written from them gives them back.
func TestSampleLoads(t *testing.T) {
	tests := []struct {
		name   string
		change func(*settings)
	}{
		{"defaults", func(*settings) {}},
		{"times", func(s *settings) { s.Timeout = time.Hour + 30*time.Minute }},
		{"time in milliseconds", func(s *settings) { s.Timeout = 250 * time.Millisecond }},
		{"no time", func(s *settings) { s.Timeout = 0 }},
		{"switched off", func(s *settings) { s.Snappy = false }},
		{"text with quotes", func(s *settings) { s.Address = `C:\a "b"` + "\t# é" }},
		{"lists", func(s *settings) { s.Peers, s.Quantile = []string{"a:1", "b,c:1"}, []float64{1, 0.99, 0.5} }},
		{"demand everywhere", func(s *settings) { s.Required = TLSRequiredEverywhere }},
		{"demand for TCP", func(s *settings) { s.Required = TLSRequiredExceptHTTP }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := newSettings()
			test.change(want)
			sample, err := want.table().Sample(Sample{Values: anywhere})
			if err != nil {
				t.Fatal(err)
			}
			want.ID = 5
			got, warnings, _, err := load(t, Uncommented(sample))
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q in\n%s", err, warnings, sample)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s\n%s", diff, sample)
			}
		})
	}
}

// Mistakes in the description of a sample are not written into a file.
func TestSampleRefuses(t *testing.T) {
	for want, sample := range map[string]Sample{
		`sample has the unknown key "nosuch"`:                                                 {Active: []string{"nosuch"}, Values: anywhere},
		`sample has the unknown key "port2"`:                                                  {Values: map[string]string{"id": "5", "port2": "1"}},
		`sample needs an example for "id", commented out: the default depends on the machine`: {},
	} {
		if _, err := newSettings().table().Sample(sample); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := newSettings().table().Sample(Sample{Active: []string{"id"}, Values: anywhere}); err == nil {
		t.Error("a sample that sets the node id of every reader is not refused")
	}
}

// The reference has a row for each flag, with what a reader needs to use it.
func TestMarkdown(t *testing.T) {
	text := newSettings().table().Markdown()
	for _, want := range []string{
		"\n### prog: Rest\n\n| flag | key | type | default | range | meaning |\n|---|---|---|---|---|---|\n| `--node-id` |",
		"| `--node-id` | `id` | int | from the host name | 0 to 1023 | number |\n",
		"| `--msg-timeout` | `msg_timeout` | duration | `\"1m\"` | more than 0 | time |\n",
		"| `--snappy` | `snappy` | bool | `true` |  | switch |\n",
		"| `--method` | `method` | string | `\"get\"` | get, post | way |\n",
		"| `--lookupd-tcp-address` | `nsqlookupd_tcp_addresses` | list of strings | `[]` |  | peer. **Can be changed at runtime** |\n",
		"| `--percentile` | `percentiles` | list of floats | `[]` |  | numbers |\n",
		"| `--tls-required` | `tls_required` | requirement | `false` | true, false, tcp-https | demand |\n",
		"| `--verbose` | none | bool | `false` |  | deprecated",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("reference has no %q in\n%s", want, text)
		}
	}
	rows, flags := strings.Count(text, "\n| `--"), len(slices.Collect(newSettings().table().all()))
	if rows != flags {
		t.Errorf("%d rows for %d flags", rows, flags)
	}
}

// The words for a range are those of the check.
func TestLimits(t *testing.T) {
	var n int64
	var d time.Duration
	var text string
	for _, test := range []struct {
		value Value
		want  string
	}{
		{Int(&n, 1, 9), "1 to 9"},
		{Int(&n, 1, NoLimit), "1 or more"},
		{Int(&n, math.MinInt32, 65507), "65507 or less"},
		{Duration(&d, 0), "0 or more"},
		{Duration(&d, 1), "more than 0"},
		{Duration(&d, -time.Millisecond), "-1ms or more"},
		{Choice(&text, "", "require"), "empty, require"},
		{String(&text), ""},
	} {
		if got := test.value.limits(); got != test.want {
			t.Errorf("limits %q, want %q", got, test.want)
		}
	}
}

func TestShortDuration(t *testing.T) {
	tests := map[time.Duration]string{
		0: "0", time.Second: "1s", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s",
		time.Hour: "1h", 20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s", -time.Millisecond: "-1ms",
	}
	for _, d := range slices.Sorted(maps.Keys(tests)) {
		if got := shortDuration(d); got != tests[d] {
			t.Errorf("%v is written %q, want %q", d, got, tests[d])
		}
	}
}
