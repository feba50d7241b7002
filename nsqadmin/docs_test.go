package nsqadmin

import (
	"testing"

	"nsq/internal/options"
	"nsq/internal/options/optionstest"
)

// sample is what NSQ's sample file sets, but for the nsqds: with nsqlookupds there are none to name.
//
// Source: packaging spec, section 9.3.
var sample = options.Sample{
	Active: []string{"log_level", "http_address", "graphite_url", "proxy_graphite", "statsd_prefix", "statsd_counter_format",
		"statsd_gauge_format", "statsd_interval", "notification_http_endpoint", "nsqlookupd_http_addresses"},
	Values: map[string]string{
		"nsqlookupd_http_addresses": `["127.0.0.1:4161"]`,
		"nsqd_http_addresses":       `["127.0.0.1:4151"]`,
		"admin_users":               `["admin"]`,
	},
}

// The sample file follows the table, and nsqadmin starts with it, as it is and with all of its keys
// set but one: it takes nsqlookupds or nsqds, not both.
func TestSampleFile(t *testing.T) {
	create := func() optionstest.Daemon { return NewOptions() }
	optionstest.SampleFile(t, "../contrib/nsqadmin.cfg.example", create, sample, "--nsqd-http-address=")
}

// The reference of the options follows the table.
func TestReference(t *testing.T) {
	optionstest.Reference(t, "../docs/configuration.md", NewOptions().Table())
}
