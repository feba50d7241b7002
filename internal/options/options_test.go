package options

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/log"
	"nsq/internal/version"
)

// settings has one option of each kind, under names like those of the daemons.
type settings struct {
	Logging
	ID       int64
	Port     int
	Timeout  time.Duration
	Snappy   bool
	Address  string
	Method   string
	Peers    []string
	Quantile []float64
	Required TLSRequirement
	MinTLS   TLSVersion
}

func newSettings() *settings {
	return &settings{
		Logging:  DefaultLogging(log.Info, "[prog] "),
		ID:       617,
		Timeout:  time.Minute,
		Snappy:   true,
		Address:  "0.0.0.0:4150",
		Method:   "get",
		Peers:    []string{},
		Quantile: []float64{},
		MinTLS:   DefaultTLSVersion,
	}
}

func (s *settings) table() *Table {
	return New("prog",
		Group{Title: "Log", Options: s.Logging.Rows()},
		Group{Title: "Rest", Options: []Option{
			{Flag: "node-id", Key: "id", Value: Int(&s.ID, 0, 1023), Refusal: "must be [0,1024)", Origin: "the host name", Help: "number"},
			{Flag: "port", Value: Int(&s.Port, 0, 65535), Argument: "number", Help: "port"},
			{Flag: "msg-timeout", Value: Duration(&s.Timeout, 1), Help: "time"},
			{Flag: "snappy", Value: Bool(&s.Snappy), Help: "switch"},
			{Flag: "tcp-address", Value: String(&s.Address), Help: "host:port"},
			{Flag: "method", Value: Choice(&s.Method, "get", "post"), Help: "way"},
			{Flag: "lookupd-tcp-address", Key: "nsqlookupd_tcp_addresses", Value: Strings(&s.Peers), Changeable: true, Help: "peer"},
			{Flag: "percentile", Key: "percentiles", Value: Floats(&s.Quantile), Help: "numbers"},
			{Flag: "tls-required", Value: TLSRequired(&s.Required), Help: "demand"},
			{Flag: "tls-min-version", Value: TLSMinVersion(&s.MinTLS), Help: "version"},
		}},
	)
}

// load reads a command line, with a settings file if there is a text for one.
func load(t *testing.T, file string, args ...string) (s *settings, warnings []string, stderr string, err error) {
	t.Helper()
	if file != "" {
		args = append(args, "--config="+configFile(t, file))
	}
	s = newSettings()
	var out, errOut strings.Builder
	warnings, err = s.table().Load(args, &out, &errOut)
	if out.Len() > 0 {
		t.Errorf("stdout has %q", out.String())
	}
	return s, warnings, errOut.String(), err
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prog.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is given is taken: by flag, by file, and nothing else changes.
func TestLoadSets(t *testing.T) {
	tests := []struct {
		name string
		file string
		args []string
		want func(*settings)
	}{
		{name: "defaults", want: func(*settings) {}},
		{name: "one dash, next argument", args: []string{"-node-id", "5"}, want: func(s *settings) { s.ID = 5 }},
		{name: "two dashes, equals", args: []string{"--node-id=5"}, want: func(s *settings) { s.ID = 5 }},
		{name: "hexadecimal", args: []string{"--node-id=0x1F"}, want: func(s *settings) { s.ID = 31 }},
		{name: "underscore", args: []string{"--port=4_150"}, want: func(s *settings) { s.Port = 4150 }},
		{name: "last one wins", args: []string{"--node-id=5", "--node-id=6"}, want: func(s *settings) { s.ID = 6 }},
		{name: "duration", args: []string{"--msg-timeout=1m30s"}, want: func(s *settings) { s.Timeout = 90 * time.Second }},
		{name: "boolean false", args: []string{"--snappy=F"}, want: func(s *settings) { s.Snappy = false }},
		{name: "boolean bare", args: []string{"--snappy=0", "--snappy"}, want: func(*settings) {}},
		{name: "deprecated", args: []string{"--verbose"}, want: func(*settings) {}},
		{name: "end of flags", args: []string{"--node-id=5", "--"}, want: func(s *settings) { s.ID = 5 }},
		{name: "strings add up, commas stay", args: []string{"--lookupd-tcp-address=a:1", "--lookupd-tcp-address=b:1,c:1"},
			want: func(s *settings) { s.Peers = []string{"a:1", "b:1,c:1"} }},
		{name: "floats add up, sorted", args: []string{"--percentile=0.5,0.99", "--percentile=1"},
			want: func(s *settings) { s.Quantile = []float64{1, 0.99, 0.5} }},
		{name: "log level in any case", args: []string{"--log-level=DeBug"}, want: func(s *settings) { s.LogLevel = log.Debug }},
		{name: "tls-required bare", args: []string{"--tls-required"}, want: func(s *settings) { s.Required = TLSRequiredEverywhere }},
		{name: "tls-required word", args: []string{"--tls-required=TCP-https"}, want: func(s *settings) { s.Required = TLSRequiredExceptHTTP }},
		{name: "tls-required form of true", args: []string{"--tls-required=tRUE"}, want: func(s *settings) { s.Required = TLSRequiredEverywhere }},
		{name: "tls-min-version", args: []string{"--tls-min-version=TLS1.2"}, want: func(s *settings) { s.MinTLS = 771 }},
		{name: "tls-min-version empty", args: []string{"--tls-min-version=tls1.3", "--tls-min-version="}, want: func(*settings) {}},

		{name: "file integer", file: `id = 5`, want: func(s *settings) { s.ID = 5 }},
		{name: "file quoted integer is decimal", file: `id = "010"`, want: func(s *settings) { s.ID = 10 }},
		{name: "file duration", file: `msg_timeout = "7s"`, want: func(s *settings) { s.Timeout = 7 * time.Second }},
		{name: "file duration in milliseconds", file: `msg_timeout = 1500`, want: func(s *settings) { s.Timeout = 1500 * time.Millisecond }},
		{name: "file boolean", file: `snappy = false`, want: func(s *settings) { s.Snappy = false }},
		{name: "file boolean in quotes", file: `snappy = "f"`, want: func(s *settings) { s.Snappy = false }},
		{name: "file boolean 0", file: `snappy = 0`, want: func(s *settings) { s.Snappy = false }},
		{name: "file boolean 1", file: `snappy = 1`, want: func(*settings) {}},
		{name: "file string", file: `tcp_address = "h:1"`, want: func(s *settings) { s.Address = "h:1" }},
		{name: "file strings", file: `nsqlookupd_tcp_addresses = ["b:1", "a:1"]`, want: func(s *settings) { s.Peers = []string{"b:1", "a:1"} }},
		{name: "file strings with commas", file: `nsqlookupd_tcp_addresses = "b:1, a:1,"`, want: func(s *settings) { s.Peers = []string{"b:1", "a:1"} }},
		{name: "file no strings", file: `nsqlookupd_tcp_addresses = ""`, want: func(*settings) {}},
		{name: "file floats in their order", file: `percentiles = [0.5, 1, 0.9]`, want: func(s *settings) { s.Quantile = []float64{0.5, 1, 0.9} }},
		{name: "file floats with commas", file: `percentiles = " 0.5, 1"`, want: func(s *settings) { s.Quantile = []float64{0.5, 1} }},
		{name: "file tls-required boolean", file: `tls_required = true`, want: func(s *settings) { s.Required = TLSRequiredEverywhere }},
		{name: "file tls-required number", file: `tls_required = 1`, want: func(s *settings) { s.Required = TLSRequiredEverywhere }},
		{name: "file tls-required word", file: `tls_required = "tcp-https"`, want: func(s *settings) { s.Required = TLSRequiredExceptHTTP }},
		{name: "file tls-min-version empty", file: `tls_min_version = ""`, want: func(*settings) {}},
		{name: "file log level", file: `log_level = "error"`, want: func(s *settings) { s.LogLevel = log.Error }},
		{name: "file log prefix", file: `log_prefix = "x "`, want: func(s *settings) { s.LogPrefix = "x " }},

		{name: "flag over file", file: `id = 5`, args: []string{"--node-id=7"}, want: func(s *settings) { s.ID = 7 }},
		{name: "flag equal to the default over file", file: `id = 5`, args: []string{"--node-id=617"}, want: func(*settings) {}},
		{name: "flag list replaces the one of the file", file: `nsqlookupd_tcp_addresses = ["f:1"]`, args: []string{"--lookupd-tcp-address=a:1"},
			want: func(s *settings) { s.Peers = []string{"a:1"} }},
		{name: "empty flag list empties the one of the file", file: `nsqlookupd_tcp_addresses = ["f:1"]`, args: []string{"--lookupd-tcp-address="},
			want: func(*settings) {}},
		{name: "empty flag list of numbers", file: `percentiles = [1]`, args: []string{"--percentile="}, want: func(*settings) {}},
		{name: "flag over a wrong value of the file", file: `id = "x"`, args: []string{"--node-id=7"}, want: func(s *settings) { s.ID = 7 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, warnings, stderr, err := load(t, test.file, test.args...)
			if err != nil || len(warnings) > 0 || stderr != "" {
				t.Fatalf("error %v, warnings %q, stderr %q", err, warnings, stderr)
			}
			want := newSettings()
			test.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// A wrong command line: the words of the flag package, then the usage, and code 2.
func TestLoadRefusesCommandLine(t *testing.T) {
	tests := []struct{ arg, want string }{
		{"-nosuch", "flag provided but not defined: -nosuch"},
		{"--node-id=abc", `invalid value "abc" for flag -node-id: parse error`},
		{"--node-id=9223372036854775808", `invalid value "9223372036854775808" for flag -node-id: value out of range`},
		{"--msg-timeout=60", `invalid value "60" for flag -msg-timeout: parse error`},
		{"--snappy=5", `invalid boolean value "5" for -snappy: parse error`},
		{"--tls-required=bogus", `invalid boolean value "bogus" for -tls-required: strconv.ParseBool: parsing "bogus": invalid syntax`},
		{"--tls-min-version=ssl3.0", `invalid value "ssl3.0" for flag -tls-min-version: unknown tlsVersionOption "ssl3.0"`},
		{"--log-level=WARNING", `invalid value "WARNING" for flag -log-level: invalid log level 'WARNING' (debug, info, warn, error, fatal)`},
		{"--percentile=0.5,x", `invalid value "0.5,x" for flag -percentile: parse error`},
		{"--port", "flag needs an argument: -port"},
		{"false", `unexpected argument "false": every setting is a flag, and a boolean one takes its value after "="`},
	}
	for _, test := range tests {
		_, _, stderr, err := load(t, "", "--snappy", test.arg)
		if err != (Exit{Code: 2}) {
			t.Errorf("%s: error %v, want exit code 2", test.arg, err)
		}
		message, rest, _ := strings.Cut(stderr, "\n")
		if message != test.want || !strings.HasPrefix(rest, "Usage of prog:\n") {
			t.Errorf("%s: stderr begins %q and goes on %.30q\nwant %q and the usage", test.arg, message, rest, test.want)
		}
	}
}

// A wrong value in the file is an error that names the key, and is never half taken.
func TestLoadRefusesFile(t *testing.T) {
	tests := []struct{ file, want string }{
		{`id = 5.5`, "failed parsing id 5.5 - want a whole number"},
		{`id = true`, "failed parsing id true - want a whole number"},
		{`id = "0x10"`, "failed parsing id 0x10 - parse error"},
		{`id = "9223372036854775808"`, "failed parsing id 9223372036854775808 - value out of range"},
		{`msg_timeout = 5.5`, `failed parsing msg_timeout 5.5 - want a duration such as "1m30s", or whole milliseconds`},
		{`msg_timeout = "60"`, `failed parsing msg_timeout 60 - want a duration such as "1m30s", or whole milliseconds`},
		{`msg_timeout = 9223372036855`, "failed parsing msg_timeout 9223372036855 - value out of range"},
		{`msg_timeout = -9223372036855`, "failed parsing msg_timeout -9223372036855 - value out of range"},
		{`snappy = 2`, "failed parsing snappy 2 - want true or false"},
		{`snappy = "yes"`, "failed parsing snappy yes - want true or false"},
		{`tcp_address = 5`, "failed parsing tcp_address 5 - want a string in quotes"},
		{`nsqlookupd_tcp_addresses = ["a:1", 5]`, "failed parsing nsqlookupd_tcp_addresses [a:1 5] - want a list of strings"},
		{`nsqlookupd_tcp_addresses = 5`, "failed parsing nsqlookupd_tcp_addresses 5 - want a list of strings"},
		{"[[nsqlookupd_tcp_addresses]]\na = 1", "failed parsing nsqlookupd_tcp_addresses [map[a:1]] - want a list of strings"},
		{`percentiles = [1, "0.5"]`, "failed parsing percentiles [1 0.5] - want a list of numbers"},
		{`percentiles = 1`, "failed parsing percentiles 1 - want a list of numbers"},
		{`percentiles = "1,x"`, "failed parsing percentiles 1,x - want numbers separated by commas"},
		{`log_level = "loud"`, "failed parsing log_level loud"},
		{`log_level = 2`, "failed parsing log_level 2"},
		{`tls_required = "maybe"`, "failed parsing tls_required maybe"},
		{`tls_min_version = "ssl3.0"`, "failed parsing tls_min_version ssl3.0"},
	}
	for _, test := range tests {
		got, _, stderr, err := load(t, test.file)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v\nwant %s", test.file, err, test.want)
		}
		if errors.As(err, new(Exit)) || stderr != "" {
			t.Errorf("%s: the error is to be reported by the caller, stderr has %q", test.file, stderr)
		}
		if diff := cmp.Diff(newSettings(), got); diff != "" {
			t.Errorf("%s: settings changed (-want +got):\n%s", test.file, diff)
		}
	}
}

// A file that cannot be read at all.
func TestLoadUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	huge := configFile(t, "# "+strings.Repeat("x", maxFileSize))
	broken := configFile(t, "this is no toml = = \n")
	tests := []struct{ path, want string }{
		{dir + "/missing", "failed to load config file " + dir + "/missing - open " + dir + "/missing: no such file or directory"},
		{dir, "failed to load config file " + dir + " - read " + dir + ": is a directory"},
		{huge, "failed to load config file " + huge + " - larger than 1048576 bytes"},
		{broken, "failed to load config file " + broken + " - toml: line 1"},
	}
	for _, test := range tests {
		_, _, _, err := load(t, "", "--config="+test.path)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("error %v\nwant %s", err, test.want)
		}
	}
}

// Unknown keys are told, with a guess at what was meant, and do no harm; strictly they are an error.
func TestLoadUnknownKeys(t *testing.T) {
	tests := []struct{ key, hint string }{
		{"no_such_key", ""},
		{"node_id", ` (did you mean "id"?)`},
		{"msg-timeout", ` (did you mean "msg_timeout"?)`},
		{"lookupd_tcp_address", ` (did you mean "nsqlookupd_tcp_addresses"?)`},
		{"verbose", " (a flag only)"},
		{"version", " (a flag only)"},
		{"Msg_Timeout", ""},
	}
	for _, test := range tests {
		path := configFile(t, test.key+" = true\nport = 9\n")
		problem := `unknown key "` + test.key + `"` + test.hint

		s, warnings, _, err := load(t, "", "--config="+path)
		want := []string{"config file " + path + ": " + problem + " is ignored"}
		if diff := cmp.Diff(want, warnings); err != nil || diff != "" {
			t.Errorf("%s: error %v, warnings (-want +got):\n%s", test.key, err, diff)
		}
		if s.Port != 9 {
			t.Errorf("%s: the key after it is not read", test.key)
		}

		_, _, _, err = load(t, "", "--config-strict", "--config="+path)
		if want := "failed to load config file " + path + " - " + problem; err == nil || err.Error() != want {
			t.Errorf("%s: strict error %v\nwant %s", test.key, err, want)
		}
	}
	if _, warnings, _, err := load(t, "port = 9", "--config-strict"); err != nil || len(warnings) > 0 {
		t.Errorf("strict with a good file: error %v, warnings %q", err, warnings)
	}
}

// Help goes to stderr with code 0 and shows the defaults, not what came before it on the line.
func TestHelp(t *testing.T) {
	for _, arg := range []string{"--help", "-h"} {
		_, _, stderr, err := load(t, "", "--node-id=5", arg)
		if err != (Exit{Code: 0}) {
			t.Errorf("%s: error %v, want exit code 0", arg, err)
		}
		want := "Usage of prog:\n\nProgram:\n  -config path\n    \tTOML file"
		if !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: help begins %.80q\nwant %q", arg, stderr, want)
		}
		for _, want := range []string{
			"\nRest:\n  -node-id int\n    \tnumber (default 617, from the host name; key id)\n  -port number\n    \tport (default 0)\n",
			"  -msg-timeout duration\n    \ttime (default 1m)\n",
			"  -snappy\n    \tswitch (default true)\n",
			"  -tcp-address string\n    \thost:port (default \"0.0.0.0:4150\")\n",
			"  -lookupd-tcp-address string\n    \tpeer (may be given more than once; key nsqlookupd_tcp_addresses)\n",
			"  -tls-required\n    \tdemand\n",
			"  -tls-min-version version\n    \tversion (default tls1.2)\n",
			"  -log-prefix text\n    \ttext at the start of every log line; JSON has no place for it (default \"[prog] \")\n",
		} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: help has no %q in\n%s", arg, want, stderr)
			}
		}
	}
}

// The version goes to stdout with code 0, before the file is looked at.
func TestVersion(t *testing.T) {
	var stdout, stderr strings.Builder
	_, err := newSettings().table().Load([]string{"--config=/missing", "--version"}, &stdout, &stderr)
	if err != (Exit{Code: 0}) || stderr.Len() > 0 {
		t.Errorf("error %v, stderr %q", err, stderr.String())
	}
	if want := version.Line("prog") + "\n"; stdout.String() != want {
		t.Errorf("stdout %q, want %q", stdout.String(), want)
	}
}

// Each kind has its form in /config.
func TestGet(t *testing.T) {
	s := newSettings()
	s.Quantile = []float64{1, 0.99, 0.5}
	s.Required = TLSRequiredEverywhere
	tests := []struct{ key, want string }{
		{"id", "617"},
		{"port", "0"},
		{"msg_timeout", "60000000000"},
		{"snappy", "true"},
		{"tcp_address", `"0.0.0.0:4150"`},
		{"nsqlookupd_tcp_addresses", "[]"},
		{"percentiles", "[1,0.99,0.5]"},
		{"log_level", "2"},
		{"log_prefix", `"[prog] "`},
		{"tls_required", "2"},
		{"tls_min_version", "771"},
	}
	for _, test := range tests {
		v, ok := s.table().Get(test.key)
		got, err := json.Marshal(v)
		if !ok || err != nil || string(got) != test.want {
			t.Errorf("Get(%q) = %s, %v, error %v; want %s", test.key, got, ok, err, test.want)
		}
	}
	if v, _ := s.table().Get("tcp_address"); v != "0.0.0.0:4150" {
		t.Errorf("a string is answered as %T", v)
	}
	s.Peers = nil
	if v, _ := s.table().Get("nsqlookupd_tcp_addresses"); v == nil {
		t.Error("a nil list is answered as nothing, want a nil []string")
	} else if got, _ := json.Marshal(v); string(got) != "null" {
		t.Errorf("a nil list is answered as %s, want null", got)
	}
	for _, key := range []string{"", "-", "nosuch", "node_id", "ID", "config", "config_strict", "version", "verbose"} {
		if v, ok := s.table().Get(key); ok {
			t.Errorf("Get(%q) = %v, want nothing", key, v)
		}
	}
}

// Nobody can change a list by writing to an answer.
func TestGetCopies(t *testing.T) {
	s := newSettings()
	s.Peers = []string{"a:1"}
	v, _ := s.table().Get("nsqlookupd_tcp_addresses")
	v.([]string)[0] = "evil"
	if s.Peers[0] != "a:1" {
		t.Error("the answer is the list itself")
	}
}

// A change is whole or not at all, and the errors tell why not.
func TestSet(t *testing.T) {
	tests := []struct {
		key, body string
		err       error
		want      func(*settings)
	}{
		{key: "log_level", body: "dEbug", want: func(s *settings) { s.LogLevel = log.Debug }},
		{key: "log_level", body: "warning", err: ErrBadValue},
		{key: "log_level", body: "debug\n", err: ErrBadValue},
		{key: "log_level", body: `"debug"`, err: ErrBadValue},
		{key: "log_level", body: "1", err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: ` ["x:1","y:1"] `, want: func(s *settings) { s.Peers = []string{"x:1", "y:1"} }},
		{key: "nsqlookupd_tcp_addresses", body: `[]`, want: func(s *settings) { s.Peers = []string{} }},
		{key: "nsqlookupd_tcp_addresses", body: ` null `, want: func(s *settings) { s.Peers = nil }},
		{key: "nsqlookupd_tcp_addresses", body: `["zzz:1",5]`, err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: `["zzz:1",null]`, err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: `["zzz:1"] x`, err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: `zzz:1`, err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: `"zzz:1"`, err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: `{}`, err: ErrBadValue},
		{key: "nsqlookupd_tcp_addresses", body: ``, err: ErrBadValue},
		{key: "id", body: "5", err: ErrNotChangeable},
		{key: "log_prefix", body: "x", err: ErrNotChangeable},
		{key: "nosuch", body: "5", err: ErrUnknownOption},
		{key: "verbose", body: "true", err: ErrUnknownOption},
		{key: "-", body: "true", err: ErrUnknownOption},
	}
	for _, test := range tests {
		got, want := newSettings(), newSettings()
		got.Peers = []string{"old:1"}
		want.Peers = []string{"old:1"}
		if test.want != nil {
			test.want(want)
		}
		if err := got.table().Set(test.key, []byte(test.body)); !errors.Is(err, test.err) {
			t.Errorf("Set(%q, %q) = %v, want %v", test.key, test.body, err, test.err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Set(%q, %q): settings (-want +got):\n%s", test.key, test.body, diff)
		}
	}
}

// A changed value is within its range too.
func TestSetValidates(t *testing.T) {
	n := 5
	table := New("prog", Group{Options: []Option{{Flag: "n", Value: Int(&n, 0, 9), Changeable: true}}})
	if err := table.Set("n", []byte("10")); !errors.Is(err, ErrBadValue) || n != 5 {
		t.Errorf("error %v, value %d", err, n)
	}
	if err := table.Set("n", []byte("9")); err != nil || n != 9 {
		t.Errorf("error %v, value %d", err, n)
	}
}

// Values out of range are refused with flag, range and value, those at the edge are not.
func TestValidate(t *testing.T) {
	tests := []struct {
		change func(*settings)
		want   string
	}{
		{func(s *settings) {}, ""},
		{func(s *settings) { s.ID = 0 }, ""},
		{func(s *settings) { s.ID = 1023 }, ""},
		{func(s *settings) { s.ID = -1 }, "--node-id must be [0,1024)"},
		{func(s *settings) { s.ID = 1024 }, "--node-id must be [0,1024)"},
		{func(s *settings) { s.Port = 65535 }, ""},
		{func(s *settings) { s.Port = 65536 }, "--port must be [0,65535], is 65536"},
		{func(s *settings) { s.Timeout = 1 }, ""},
		{func(s *settings) { s.Timeout = math.MaxInt64 }, ""},
		{func(s *settings) { s.Timeout = 0 }, "--msg-timeout must be at least 1ns, is 0s"},
		{func(s *settings) { s.Method = "post" }, ""},
		{func(s *settings) { s.Method = "GET" }, `--method must be one of ["get" "post"], is "GET"`},
	}
	for _, test := range tests {
		s := newSettings()
		test.change(s)
		got := ""
		if err := s.table().Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("error %q, want %q", got, test.want)
		}
	}
}

// The logger follows level and prefix.
func TestLogger(t *testing.T) {
	var out strings.Builder
	l := DefaultLogging(log.Warn, "[x] ")
	logger := l.Logger(&out)
	logger.Infof("quiet")
	logger.Warnf("loud")
	if got := out.String(); !strings.HasPrefix(got, "[x] ") || !strings.HasSuffix(got, " WARNING: loud\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("log is %q", got)
	}
}
