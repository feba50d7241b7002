package nsqlookupd

import (
	"os"
	"time"

	"nsq/internal/log"
	"nsq/internal/options"
)

// Options are the settings of a nsqlookupd: plain data. NewOptions gives the defaults; the flags,
// keys and ranges are in Table.
//
// Source: nsqlookupd spec, section 2.
type Options struct {
	options.Logging

	TCPAddress       string // listener for nsqd, host:port
	HTTPAddress      string // listener of the HTTP API, host:port
	BroadcastAddress string // name under which nsqd reaches this nsqlookupd

	InactiveProducerTimeout time.Duration // silence after which a producer is hidden
	TombstoneLifetime       time.Duration // how long a tombstone hides a producer of a topic
}

// NewOptions returns the defaults. The broadcast address is empty where the system cannot tell the
// host name; nsqd then complains in its log and works without asking this nsqlookupd for channels.
func NewOptions() *Options {
	o := &Options{
		Logging:                 options.DefaultLogging(log.Info, "[nsqlookupd] "),
		TCPAddress:              "0.0.0.0:4160",
		HTTPAddress:             "0.0.0.0:4161",
		InactiveProducerTimeout: 5 * time.Minute,
		TombstoneLifetime:       45 * time.Second,
	}
	if host, err := os.Hostname(); err == nil {
		o.BroadcastAddress = host
	}
	return o
}

// Table describes the options: flags, keys of the file, ranges. Its rows point into o.
func (o *Options) Table() *options.Table {
	return options.New("nsqlookupd",
		options.Group{Title: "Log", Options: o.Logging.Rows()},
		options.Group{Title: "Addresses", Options: []options.Option{
			{Flag: "tcp-address", Value: options.String(&o.TCPAddress), Argument: "host:port",
				Help: "where nsqd nodes are served"},
			{Flag: "http-address", Value: options.String(&o.HTTPAddress), Argument: "host:port",
				Help: "where HTTP is served: consumers and tools"},
			{Flag: "broadcast-address", Value: options.String(&o.BroadcastAddress), Argument: "name", Origin: "the host name",
				Help: "name or address under which nsqd nodes reach the HTTP API"},
		}},
		options.Group{Title: "Producers", Options: []options.Option{
			{Flag: "inactive-producer-timeout", Value: options.Duration(&o.InactiveProducerTimeout, 1),
				Help: "time without a sign of life of a nsqd after which /lookup and /nodes no longer name it"},
			{Flag: "tombstone-lifetime", Value: options.Duration(&o.TombstoneLifetime, 1),
				Help: "time for which a tombstone keeps a nsqd out of the answers of /lookup for a topic"},
		}},
	)
}

// Validate returns the first setting that nsqlookupd cannot work with, naming its flag.
func (o *Options) Validate() error { return o.Table().Validate() }
