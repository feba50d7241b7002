package nsqd

import (
	"testing"

	"nsq/internal/options"
	"nsq/internal/options/optionstest"
)

// sample is what NSQ's sample file sets; what it has commented out is so here, too.
//
// Source: packaging spec, section 9.1.
var sample = options.Sample{
	Active: []string{
		"log_level",
		"tcp_address", "http_address", "nsqlookupd_tcp_addresses", "http_client_connect_timeout", "http_client_request_timeout",
		"mem_queue_size", "max_bytes_per_file", "sync_every", "sync_timeout",
		"msg_timeout", "max_msg_timeout", "max_msg_size", "max_req_timeout", "max_body_size",
		"max_heartbeat_interval", "max_rdy_count", "max_output_buffer_size", "max_output_buffer_timeout",
		"statsd_prefix", "statsd_interval", "statsd_mem_stats",
		"e2e_processing_latency_percentiles", "e2e_processing_latency_window_time",
		"tls_cert", "tls_key", "tls_required", "tls_min_version",
		"deflate", "max_deflate_level", "snappy",
	},
	Values: map[string]string{
		"id":                                 `515`,
		"broadcast_address":                  `"nsqd-1.example.com"`,
		"nsqlookupd_tcp_addresses":           `["127.0.0.1:4160"]`,
		"data_path":                          `"/var/lib/nsq"`,
		"statsd_address":                     `"127.0.0.1:8125"`,
		"e2e_processing_latency_percentiles": `[1.0, 0.99, 0.95]`,
		"tls_client_auth_policy":             `"require-verify"`,
	},
}

// The sample file follows the table, and nsqd starts with it: as it is and, given a certificate,
// with all of its keys set.
func TestSampleFile(t *testing.T) {
	create := func() optionstest.Daemon { return NewOptions() }
	optionstest.SampleFile(t, "../contrib/nsqd.cfg.example", create, sample, "--tls-cert=cert.pem", "--tls-key=key.pem")
}

// The reference of the options follows the table.
func TestReference(t *testing.T) {
	optionstest.Reference(t, "../docs/configuration.md", NewOptions().Table())
}
