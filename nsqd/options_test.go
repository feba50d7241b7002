package nsqd

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/log"
	"nsq/internal/options"
)

// row is a line of the option reference. The value is as /config answers it.
type row struct{ Flag, Key, Type, Value string }

// specified is the option reference of the spec (nsqd-config, section 4; keys: section 3), typed by
// hand so that a change of the table is noticed. %host and %id depend on the machine.
var specified = []row{
	{"version", "", "bool", ""},
	{"config", "", "string", ""},
	{"node-id", "id", "int", "%id"},
	{"log-level", "log_level", "level", "2"},
	{"log-prefix", "log_prefix", "string", `"[nsqd] "`},
	{"verbose", "", "bool", ""},
	{"worker-id", "", "bool", ""},

	{"tcp-address", "tcp_address", "string", `"0.0.0.0:4150"`},
	{"http-address", "http_address", "string", `"0.0.0.0:4151"`},
	{"https-address", "https_address", "string", `"0.0.0.0:4152"`},
	{"broadcast-address", "broadcast_address", "string", "%host"},
	{"broadcast-tcp-port", "broadcast_tcp_port", "int", "0"},
	{"broadcast-http-port", "broadcast_http_port", "int", "0"},
	{"lookupd-tcp-address", "nsqlookupd_tcp_addresses", "string", "[]"},
	{"http-client-connect-timeout", "http_client_connect_timeout", "duration", "2000000000"},
	{"http-client-request-timeout", "http_client_request_timeout", "duration", "5000000000"},
	{"topology-region", "topology_region", "string", `""`},
	{"topology-zone", "topology_zone", "string", `""`},
	{"auth-http-address", "auth_http_addresses", "string", "[]"},
	{"auth-http-request-method", "auth_http_request_method", "string", `"get"`},

	{"data-path", "data_path", "string", `""`},
	{"mem-queue-size", "mem_queue_size", "int", "10000"},
	{"max-bytes-per-file", "max_bytes_per_file", "int", "104857600"},
	{"sync-every", "sync_every", "int", "2500"},
	{"sync-timeout", "sync_timeout", "duration", "2000000000"},
	{"queue-scan-worker-pool-max", "queue_scan_worker_pool_max", "int", "4"},
	{"queue-scan-selection-count", "queue_scan_selection_count", "int", "20"},

	{"msg-timeout", "msg_timeout", "duration", "60000000000"},
	{"max-msg-timeout", "max_msg_timeout", "duration", "900000000000"},
	{"max-msg-size", "max_msg_size", "int", "1048576"},
	{"max-req-timeout", "max_req_timeout", "duration", "3600000000000"},
	{"max-body-size", "max_body_size", "int", "5242880"},

	{"max-heartbeat-interval", "max_heartbeat_interval", "duration", "60000000000"},
	{"max-rdy-count", "max_rdy_count", "int", "2500"},
	{"max-output-buffer-size", "max_output_buffer_size", "int", "65536"},
	{"max-output-buffer-timeout", "max_output_buffer_timeout", "duration", "30000000000"},
	{"min-output-buffer-timeout", "min_output_buffer_timeout", "duration", "25000000"},
	{"output-buffer-timeout", "output_buffer_timeout", "duration", "250000000"},
	{"max-channel-consumers", "max_channel_consumers", "int", "0"},

	{"statsd-address", "statsd_address", "string", `""`},
	{"statsd-prefix", "statsd_prefix", "string", `"nsq.%s"`},
	{"statsd-interval", "statsd_interval", "duration", "60000000000"},
	{"statsd-mem-stats", "statsd_mem_stats", "bool", "true"},
	{"statsd-udp-packet-size", "statsd_udp_packet_size", "int", "508"},
	{"statsd-exclude-ephemeral", "statsd_exclude_ephemeral", "bool", "false"},

	{"e2e-processing-latency-percentile", "e2e_processing_latency_percentiles", "float", "[]"},
	{"e2e-processing-latency-window-time", "e2e_processing_latency_window_time", "duration", "600000000000"},

	{"tls-cert", "tls_cert", "string", `""`},
	{"tls-key", "tls_key", "string", `""`},
	{"tls-client-auth-policy", "tls_client_auth_policy", "string", `""`},
	{"tls-root-ca-file", "tls_root_ca_file", "string", `""`},
	{"tls-required", "tls_required", "requirement", "0"},
	{"tls-min-version", "tls_min_version", "version", "771"},
	{"deflate", "deflate", "bool", "true"},
	{"max-deflate-level", "max_deflate_level", "int", "6"},
	{"snappy", "snappy", "bool", "true"},

	{"enable-experiment", "enable_experiment", "string", "[]"},
}

// ours are the options that NSQ did not have.
var ours = []row{
	{"config-strict", "", "bool", ""},
	{"log-format", "log_format", "string", `"text"`},
	{"max-connections", "max_connections", "int", "0"},
	{"metrics-max-topics", "metrics_max_topics", "int", "500"},
}

// The table is that of the spec and our additions: names, keys, types, defaults, nothing else.
func TestTableIsAsSpecified(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]row{}
	for _, r := range append(specified, ours...) {
		switch r.Value {
		case "%host":
			r.Value = asJSON(t, host)
		case "%id":
			r.Value = asJSON(t, nodeIDOf(host))
		}
		want[r.Flag] = r
	}
	got := map[string]row{}
	table := NewOptions().Table()
	for _, group := range table.Groups() {
		for _, option := range group.Options {
			r := row{Flag: option.Flag, Key: option.TOMLKey(), Type: option.Value.Type()}
			if r.Key != "" {
				value, ok := table.Get(r.Key)
				if !ok {
					t.Errorf("Get does not know %q", r.Key)
				}
				r.Value = asJSON(t, value)
			}
			if _, twice := got[r.Flag]; twice {
				t.Errorf("--%s is there twice", r.Flag)
			}
			got[r.Flag] = r
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// Each row has a help of its own, in one line.
func TestTableHelps(t *testing.T) {
	helps := map[string]string{}
	for _, group := range NewOptions().Table().Groups() {
		for _, option := range group.Options {
			if option.Help == "" || strings.Contains(option.Help, "\n") || helps[option.Help] != "" {
				t.Errorf("--%s has the help %q, as has %q", option.Flag, option.Help, helps[option.Help])
			}
			helps[option.Help] = option.Flag
		}
	}
}

// Each flag with a key sets a field of its own, and each field has such a flag.
func TestTableFields(t *testing.T) {
	argument := map[string]string{
		"string": "x", "int": "7", "duration": "7ms", "level": "fatal", "float": "0.7", "requirement": "true", "version": "tls1.3",
	}
	set := map[string]string{} // field to flag
	for _, r := range append(specified, ours...) {
		if r.Key == "" {
			continue
		}
		text := argument[r.Type]
		if r.Type == "bool" {
			text = map[string]string{"true": "false", "false": "true"}[r.Value]
		}
		defaults, o := fields(NewOptions()), NewOptions()
		var sink strings.Builder
		if _, err := o.Table().Load([]string{"--" + r.Flag + "=" + text}, &sink, &sink); err != nil {
			t.Fatalf("--%s=%s: %v", r.Flag, text, err)
		}
		changed := 0
		for name, value := range fields(o) {
			if !cmp.Equal(value, defaults[name]) {
				changed++
				if set[name] != "" {
					t.Errorf("--%s sets %s, as does --%s", r.Flag, name, set[name])
				}
				set[name] = r.Flag
			}
		}
		if changed != 1 {
			t.Errorf("--%s=%s sets %d fields", r.Flag, text, changed)
		}
	}
	for name := range fields(NewOptions()) {
		if set[name] == "" {
			t.Errorf("no flag sets %s", name)
		}
	}
}

// fields are the values of all options by name.
func fields(o *Options) map[string]any {
	values := map[string]any{}
	v := reflect.ValueOf(o).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if !field.Anonymous {
			values[field.Name] = v.FieldByIndex(field.Index).Interface()
		}
	}
	return values
}

// At runtime exactly two options change.
func TestChangeable(t *testing.T) {
	var got []string
	for _, group := range NewOptions().Table().Groups() {
		for _, option := range group.Options {
			if option.Changeable {
				got = append(got, option.TOMLKey())
			}
		}
	}
	if diff := cmp.Diff([]string{"log_level", "nsqlookupd_tcp_addresses"}, got); diff != "" {
		t.Errorf("changeable (-want +got):\n%s", diff)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The default node id of a host is what it was in NSQ: message ids go on.
func TestNodeIDOf(t *testing.T) {
	if got := nodeIDOf("vm"); got != 617 {
		t.Errorf("node id of vm is %d, want 617", got)
	}
}

// Settings with which nsqd would misbehave are refused with a text that names the flag; those at
// the edge are not. Texts without a value are NSQ's own.
func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		want   string // empty: accepted
	}{
		{"defaults", func(*Options) {}, ""},
		{"deflate level 0", func(o *Options) { o.MaxDeflateLevel = 0 }, "--max-deflate-level must be [1,9]"},
		{"deflate level 1", func(o *Options) { o.MaxDeflateLevel = 1 }, ""},
		{"deflate level 9", func(o *Options) { o.MaxDeflateLevel = 9 }, ""},
		{"deflate level 10", func(o *Options) { o.MaxDeflateLevel = 10 }, "--max-deflate-level must be [1,9]"},
		{"node id -1", func(o *Options) { o.NodeID = -1 }, "--node-id must be [0,1024)"},
		{"node id 0", func(o *Options) { o.NodeID = 0 }, ""},
		{"node id 1023", func(o *Options) { o.NodeID = 1023 }, ""},
		{"node id 1024", func(o *Options) { o.NodeID = 1024 }, "--node-id must be [0,1024)"},
		{"tls required without certificate", func(o *Options) { o.TLSRequired = options.TLSRequiredEverywhere },
			"cannot require TLS client connections without TLS key and cert"},
		{"tcp-https without certificate", func(o *Options) { o.TLSRequired = options.TLSRequiredExceptHTTP },
			"cannot require TLS client connections without TLS key and cert"},
		{"policy without certificate", func(o *Options) { o.TLSClientAuthPolicy = "require" },
			"cannot require TLS client connections without TLS key and cert"},
		{"tls required with certificate", func(o *Options) { o.TLSRequired, o.TLSCert, o.TLSKey = options.TLSRequiredEverywhere, "c", "k" }, ""},
		{"policy unknown", func(o *Options) { o.TLSClientAuthPolicy = "foo" },
			`--tls-client-auth-policy must be one of ["" "require" "require-verify"], is "foo"`},
		{"auth method", func(o *Options) { o.AuthHTTPRequestMethod = "put" }, "--auth-http-request-method must be post or get"},
		{"auth method in upper case", func(o *Options) { o.AuthHTTPRequestMethod = "GET" }, "--auth-http-request-method must be post or get"},
		{"auth method post", func(o *Options) { o.AuthHTTPRequestMethod = "post" }, ""},
		{"percentile 0", func(o *Options) { o.E2EProcessingLatencyPercentiles = []float64{0.5, 0} }, "invalid E2E processing latency percentile: 0"},
		{"percentile 1", func(o *Options) { o.E2EProcessingLatencyPercentiles = []float64{0.5, 1} }, ""},
		{"percentile 1.5", func(o *Options) { o.E2EProcessingLatencyPercentiles = []float64{1.5} }, "invalid E2E processing latency percentile: 1.5"},
		{"percentile NaN", func(o *Options) { o.E2EProcessingLatencyPercentiles = []float64{math.NaN()} }, "invalid E2E processing latency percentile: NaN"},
		{"window 0 without percentiles", func(o *Options) { o.E2EProcessingLatencyWindowTime = 0 }, ""},
		{"window 0 with percentiles", func(o *Options) {
			o.E2EProcessingLatencyWindowTime, o.E2EProcessingLatencyPercentiles = 0, []float64{1}
		},
			"--e2e-processing-latency-window-time must be more than 0 with percentiles, is 0s"},
		{"window negative", func(o *Options) { o.E2EProcessingLatencyWindowTime = -1 },
			"--e2e-processing-latency-window-time must be at least 0s, is -1ns"},

		{"mem-queue-size -1", func(o *Options) { o.MemQueueSize = -1 }, "--mem-queue-size must be at least 0, is -1"},
		{"mem-queue-size 0", func(o *Options) { o.MemQueueSize = 0 }, ""},
		{"max-bytes-per-file 0", func(o *Options) { o.MaxBytesPerFile = 0 }, "--max-bytes-per-file must be at least 1, is 0"},
		{"sync-every 0", func(o *Options) { o.SyncEvery = 0 }, ""},
		{"sync-every -1", func(o *Options) { o.SyncEvery = -1 }, "--sync-every must be at least 0, is -1"},
		{"sync-timeout 0", func(o *Options) { o.SyncTimeout = 0 }, "--sync-timeout must be at least 1ns, is 0s"},
		{"queue-scan-worker-pool-max 0", func(o *Options) { o.QueueScanWorkerPoolMax = 0 }, "--queue-scan-worker-pool-max must be at least 1, is 0"},
		{"queue-scan-selection-count 0", func(o *Options) { o.QueueScanSelectionCount = 0 }, "--queue-scan-selection-count must be at least 1, is 0"},
		{"max-msg-size 0", func(o *Options) { o.MaxMsgSize = 0 }, "--max-msg-size must be [1,2147483621], is 0"},
		{"max-msg-size largest", func(o *Options) { o.MaxMsgSize = 2147483621 }, ""},
		{"max-msg-size too large", func(o *Options) { o.MaxMsgSize = 2147483622 }, "--max-msg-size must be [1,2147483621], is 2147483622"},
		{"max-body-size 0", func(o *Options) { o.MaxBodySize = 0 }, "--max-body-size must be [1,2147483647], is 0"},
		{"max-rdy-count 0", func(o *Options) { o.MaxRdyCount = 0 }, "--max-rdy-count must be at least 1, is 0"},
		{"max-channel-consumers -1", func(o *Options) { o.MaxChannelConsumers = -1 }, "--max-channel-consumers must be at least 0, is -1"},
		{"max-output-buffer-size -1", func(o *Options) { o.MaxOutputBufferSize = -1 }, "--max-output-buffer-size must be at least 0, is -1"},
		{"output-buffer-timeout 0", func(o *Options) { o.OutputBufferTimeout = 0 }, ""},
		{"output-buffer-timeout -1", func(o *Options) { o.OutputBufferTimeout = -time.Millisecond }, ""},
		{"output-buffer-timeout -2", func(o *Options) { o.OutputBufferTimeout = -2 * time.Millisecond },
			"--output-buffer-timeout must be at least -1ms, is -2ms"},
		{"msg-timeout 0", func(o *Options) { o.MsgTimeout = 0 }, "--msg-timeout must be at least 1ns, is 0s"},
		{"msg-timeout of max-msg-timeout", func(o *Options) { o.MsgTimeout = o.MaxMsgTimeout }, ""},
		{"msg-timeout above max-msg-timeout", func(o *Options) { o.MsgTimeout = o.MaxMsgTimeout + time.Second },
			"--msg-timeout must be at most --max-msg-timeout (15m0s), is 15m1s"},
		{"statsd-interval 0", func(o *Options) { o.StatsdInterval = 0 }, ""},
		{"statsd-interval 0 with an address", func(o *Options) { o.StatsdInterval, o.StatsdAddress = 0, "h:1" },
			"--statsd-interval must be more than 0 with a statsd address, is 0s"},
		{"statsd-interval negative", func(o *Options) { o.StatsdInterval = -time.Second }, "--statsd-interval must be at least 0s, is -1s"},
		{"statsd-udp-packet-size", func(o *Options) { o.StatsdUDPPacketSize = 65508 }, "--statsd-udp-packet-size must be [-2147483648,65507], is 65508"},
		{"broadcast-tcp-port -1", func(o *Options) { o.BroadcastTCPPort = -1 }, "--broadcast-tcp-port must be [0,65535], is -1"},
		{"broadcast-http-port 65535", func(o *Options) { o.BroadcastHTTPPort = 65535 }, ""},
		{"broadcast-http-port 65536", func(o *Options) { o.BroadcastHTTPPort = 65536 }, "--broadcast-http-port must be [0,65535], is 65536"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := NewOptions()
			o.NodeID = 5
			test.change(o)
			got := ""
			if err := o.Validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error %q\nwant  %q", got, test.want)
			}
		})
	}
}

// No length of time may be negative, whichever it is.
func TestValidateRefusesNegativeDurations(t *testing.T) {
	for _, r := range specified {
		if r.Type != "duration" {
			continue
		}
		o := NewOptions()
		var sink strings.Builder
		if _, err := o.Table().Load([]string{"--" + r.Flag + "=-1s"}, &sink, &sink); err != nil {
			t.Fatal(err)
		}
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--"+r.Flag+" must be at least ") {
			t.Errorf("--%s=-1s: error %v", r.Flag, err)
		}
	}
}

// The values of the sample file that came with NSQ load as they are.
func TestLoadsOldSampleFile(t *testing.T) {
	const sample = `
log_level = "info"
tcp_address = "0.0.0.0:4150"
http_address = "0.0.0.0:4151"
nsqlookupd_tcp_addresses = ["127.0.0.1:4160"]
http_client_connect_timeout = "2s"
http_client_request_timeout = "5s"
mem_queue_size = 10000
max_bytes_per_file = 104857600
sync_every = 2500
sync_timeout = "2s"
msg_timeout = "60s"
max_msg_timeout = "15m"
max_msg_size = 1024768
max_req_timeout = "1h"
max_body_size = 5123840
max_heartbeat_interval = "60s"
max_rdy_count = 2500
max_output_buffer_size = 65536
max_output_buffer_timeout = "1s"
statsd_prefix = "nsq.%s"
statsd_interval = "60s"
statsd_mem_stats = true
e2e_processing_latency_percentiles = [1.0, 0.99, 0.95]
e2e_processing_latency_window_time = "10m"
tls_cert = ""
tls_key = ""
tls_required = false
tls_min_version = ""
deflate = true
max_deflate_level = 6
snappy = true
`
	path := filepath.Join(t.TempDir(), "nsqd.cfg")
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	got, want := NewOptions(), NewOptions()
	var sink strings.Builder
	warnings, err := got.Table().Load([]string{"--config", path}, &sink, &sink)
	if err != nil || len(warnings) > 0 || sink.Len() > 0 {
		t.Fatalf("error %v, warnings %q, output %q", err, warnings, sink.String())
	}
	want.NSQLookupdTCPAddresses = []string{"127.0.0.1:4160"}
	want.MaxMsgSize = 1024768
	want.MaxBodySize = 5123840
	want.MaxOutputBufferTimeout = time.Second
	want.E2EProcessingLatencyPercentiles = []float64{1, 0.99, 0.95}
	want.LogLevel = log.Info
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// Experiments that nobody knows are told, those that exist are not.
func TestWarnings(t *testing.T) {
	o := NewOptions()
	o.Experiments = []string{ExperimentTopologyAware, "warp"}
	if diff := cmp.Diff([]string{`unknown experiment "warp" has no effect`}, o.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
