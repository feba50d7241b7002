package nsqadmin

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/log"
	"nsq/internal/options/optionstest"
)

// The table is that of the spec (nsqadmin, section 2.1) and our own additions: flag, key, type, and
// the default as JSON.
func TestOptionsAreAsSpecified(t *testing.T) {
	want := [][4]string{
		{"config", "", "string", ""},
		{"config-strict", "", "bool", ""},
		{"version", "", "bool", ""},
		{"log-level", "log_level", "level", "2"},
		{"log-prefix", "log_prefix", "string", `"[nsqadmin] "`},
		{"log-format", "log_format", "string", `"text"`},
		{"verbose", "", "bool", ""},
		{"http-address", "http_address", "string", `"0.0.0.0:4171"`},
		{"base-path", "base_path", "string", `"/"`},
		{"dev-static-dir", "dev_static_dir", "string", `""`},
		{"lookupd-http-address", "nsqlookupd_http_addresses", "string", "[]"},
		{"nsqd-http-address", "nsqd_http_addresses", "string", "[]"},
		{"poll-interval", "poll_interval", "duration", "5000000000"},
		{"history-window", "history_window", "duration", "3600000000000"},
		{"http-client-connect-timeout", "http_client_connect_timeout", "duration", "2000000000"},
		{"http-client-request-timeout", "http_client_request_timeout", "duration", "5000000000"},
		{"http-client-tls-insecure-skip-verify", "http_client_tls_insecure_skip_verify", "bool", "false"},
		{"http-client-tls-root-ca-file", "http_client_tls_root_ca_file", "string", `""`},
		{"http-client-tls-cert", "http_client_tls_cert", "string", `""`},
		{"http-client-tls-key", "http_client_tls_key", "string", `""`},
		{"graphite-url", "graphite_url", "string", `""`},
		{"proxy-graphite", "proxy_graphite", "bool", "false"},
		{"statsd-prefix", "statsd_prefix", "string", `"nsq.%s"`},
		{"statsd-counter-format", "statsd_counter_format", "string", `"stats.counters.%s.count"`},
		{"statsd-gauge-format", "statsd_gauge_format", "string", `"stats.gauges.%s"`},
		{"statsd-interval", "statsd_interval", "duration", "60000000000"},
		{"acl-http-header", "acl_http_header", "string", `"X-Forwarded-User"`},
		{"admin-user", "admin_users", "string", "[]"},
		{"allow-config-from-cidr", "allow_config_from_cidr", "string", `"127.0.0.1/8"`},
		{"notification-http-endpoint", "notification_http_endpoint", "string", `""`},
	}
	if diff := cmp.Diff(want, optionstest.Rows(t, NewOptions().Table())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// What nsqadmin cannot work with is refused with the words of the contract, in its order.
func TestValidation(t *testing.T) {
	cert, key, _ := makeCertificate(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const good = "--lookupd-http-address=127.0.0.1:4161"
	tests := []struct {
		args []string
		want string
	}{
		{[]string{good}, ""},
		{[]string{good, "--lookupd-http-address=name.that.nobody.knows.invalid:4161"}, ""},
		{[]string{good, "--http-client-tls-cert=" + cert, "--http-client-tls-key=" + key, "--http-client-tls-root-ca-file=" + cert}, ""},
		{[]string{good, "--graphite-url=/graphite"}, ""},
		{nil, "--nsqd-http-address or --lookupd-http-address required"},
		{[]string{good, "--nsqd-http-address=junk", "--http-client-tls-key=x"}, "use --nsqd-http-address or --lookupd-http-address not both"},
		{[]string{good, "--http-client-tls-cert=x"}, "--http-client-tls-key must be specified with --http-client-tls-cert"},
		{[]string{good, "--http-client-tls-key=x"}, "--http-client-tls-cert must be specified with --http-client-tls-key"},
		{[]string{good, "--http-client-tls-cert=/no", "--http-client-tls-key=/key"}, "failed to LoadX509KeyPair /no, /key - open /no: no such file or directory"},
		{[]string{good, "--http-client-tls-root-ca-file=/no"}, "failed to read TLS root CA file /no - open /no: no such file or directory"},
		{[]string{good, "--http-client-tls-root-ca-file=" + empty}, "failed to AppendCertsFromPEM " + empty},
		{[]string{"--lookupd-http-address=http://h:1"}, "failed to resolve --lookupd-http-address (http://h:1) - address http://h:1: too many colons in address"},
		{[]string{"--nsqd-http-address=h"}, "failed to resolve --nsqd-http-address (h) - address h: missing port in address"},
		{[]string{"--nsqd-http-address=h:99999"}, "failed to resolve --nsqd-http-address (h:99999) - address 99999: invalid port"},
		{[]string{good, "--proxy-graphite"}, "--graphite-url must be specified with --proxy-graphite"},
		{[]string{good, "--proxy-graphite", "--graphite-url=http://%zz"}, `failed to parse --graphite-url (unreadable) - invalid URL escape "%zz"`},
		{[]string{good, "--allow-config-from-cidr=nope"}, "failed to parse --allow-config-from-cidr (nope) - invalid CIDR address: nope"},
		{[]string{good, "--notification-http-endpoint=h:1/x"}, "failed to parse --notification-http-endpoint (h:1/x) - want http:// or https:// and a host"},
		{[]string{good, "--base-path=/a/:b"}, "--base-path must not contain ':' or '*', is /a/:b"},
		{[]string{good, "--poll-interval=1ms"}, "--poll-interval must be at least 100ms, is 1ms"},
	}
	for _, test := range tests {
		o := NewOptions()
		var sink strings.Builder
		if _, err := o.Table().Load(test.args, &sink, &sink); err != nil {
			t.Fatalf("%v: %v\n%s", test.args, err, &sink)
		}
		got := ""
		if err := o.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v: %q\nwant %q", test.args, got, test.want)
		}
	}
}

// A listener that cannot be opened is named.
func TestListenFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := NewOptions()
	o.NSQDHTTPAddresses, o.HTTPAddress = []string{"h:1"}, taken.Addr().String()
	_, err = New(o, log.Discard())
	if want := "listen (" + o.HTTPAddress + ") failed - "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A nsqadmin that never runs lets go of its listener.
func TestCloseWithoutRun(t *testing.T) {
	o := NewOptions()
	o.NSQDHTTPAddresses, o.HTTPAddress = []string{"h:1"}, "127.0.0.1:0"
	n, err := New(o, log.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", n.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
