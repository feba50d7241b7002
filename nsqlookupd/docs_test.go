package nsqlookupd

import (
	"testing"

	"nsq/internal/options"
	"nsq/internal/options/optionstest"
)

// sample is what NSQ's sample file sets; what it has commented out is so here, too.
//
// Source: packaging spec, section 9.2.
var sample = options.Sample{
	Active: []string{"log_level", "tcp_address", "http_address", "inactive_producer_timeout", "tombstone_lifetime"},
	Values: map[string]string{"broadcast_address": `"nsqlookupd-1.example.com"`},
}

// The sample file follows the table, and nsqlookupd starts with it, as it is and with all of its
// keys set.
func TestSampleFile(t *testing.T) {
	create := func() optionstest.Daemon { return NewOptions() }
	optionstest.SampleFile(t, "../contrib/nsqlookupd.cfg.example", create, sample)
}

// The reference of the options follows the table.
func TestReference(t *testing.T) {
	optionstest.Reference(t, "../docs/configuration.md", NewOptions().Table())
}
