package nsqlookupd

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/options/optionstest"
)

// The table is that of the spec (nsqlookupd, section 2.1) and --config-strict: flag, key, type, and
// the default as JSON.
func TestOptionsAreAsSpecified(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := [][4]string{
		{"config", "", "string", ""},
		{"config-strict", "", "bool", ""},
		{"version", "", "bool", ""},
		{"log-level", "log_level", "level", "2"},
		{"log-prefix", "log_prefix", "string", `"[nsqlookupd] "`},
		{"log-format", "log_format", "string", `"text"`},
		{"verbose", "", "bool", ""},
		{"tcp-address", "tcp_address", "string", `"0.0.0.0:4160"`},
		{"http-address", "http_address", "string", `"0.0.0.0:4161"`},
		{"broadcast-address", "broadcast_address", "string", `"` + host + `"`},
		{"inactive-producer-timeout", "inactive_producer_timeout", "duration", "300000000000"},
		{"tombstone-lifetime", "tombstone_lifetime", "duration", "45000000000"},
	}
	if diff := cmp.Diff(want, optionstest.Rows(t, NewOptions().Table())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// A time of nothing or less would hide every producer, or none ever.
func TestOptionsRefuseSenselessTimes(t *testing.T) {
	tests := []struct{ arg, want string }{
		{"--inactive-producer-timeout=0", "--inactive-producer-timeout must be at least 1ns, is 0s"},
		{"--inactive-producer-timeout=-5s", "--inactive-producer-timeout must be at least 1ns, is -5s"},
		{"--inactive-producer-timeout=1ns", ""},
		{"--tombstone-lifetime=0s", "--tombstone-lifetime must be at least 1ns, is 0s"},
		{"--tombstone-lifetime=-1ms", "--tombstone-lifetime must be at least 1ns, is -1ms"},
		{"--tombstone-lifetime=1ns", ""},
	}
	for _, test := range tests {
		o := NewOptions()
		var sink strings.Builder
		if _, err := o.Table().Load([]string{test.arg}, &sink, &sink); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := o.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: error %q, want %q", test.arg, got, test.want)
		}
	}
}
