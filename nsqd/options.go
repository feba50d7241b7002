package nsqd

import (
	"crypto/md5"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"time"

	"nsq/internal/log"
	"nsq/internal/options"
)

// ExperimentTopologyAware is the name in Options.Experiments that turns on deliveries which prefer
// clients of the same zone and region.
const ExperimentTopologyAware = "topology-aware-consumption"

// maxNodeID is the largest node id; it has ten bits in a message id.
const maxNodeID = 1023

// Options are the settings of a nsqd: plain data. NewOptions gives the defaults; the flags, keys
// and ranges are in Table.
//
// Source: nsqd-config spec, section 4.
type Options struct {
	options.Logging

	NodeID int64 // node part of message ids, 0 to 1023

	// Addresses.

	TCPAddress               string        // listener of the TCP protocol: host:port or path of a unix socket
	HTTPAddress              string        // HTTP listener, same forms; empty: none
	HTTPSAddress             string        // HTTPS listener, host:port; empty, or without certificate: none
	BroadcastAddress         string        // name under which others reach this node
	BroadcastTCPPort         int           // announced port; 0: the one that is bound
	BroadcastHTTPPort        int           // announced port; 0: the one that is bound
	NSQLookupdTCPAddresses   []string      // nsqlookupds to announce to, host:port
	TopologyRegion           string        // label of the place where the node runs
	TopologyZone             string        // label of the place within the region
	HTTPClientConnectTimeout time.Duration // of HTTP requests that nsqd makes; 0: none
	HTTPClientRequestTimeout time.Duration // total of one such request; 0: none

	// Authorisation.

	AuthHTTPAddresses     []string // auth servers, host:port or URL; any makes AUTH necessary
	AuthHTTPRequestMethod string   // "get" or "post"

	// Storage.

	DataPath        string        // folder of queues and metadata; empty: the working directory
	MemQueueSize    int64         // messages kept in memory by a topic and by a channel; 0: all go through disk
	MaxBytesPerFile int64         // bytes of a queue file before the next begins
	SyncEvery       int64         // reads and writes of a queue between fsyncs; 0: fsync at each
	SyncTimeout     time.Duration // longest time between fsyncs of a queue in use

	QueueScanWorkerPoolMax  int // most goroutines that look for due messages
	QueueScanSelectionCount int // channels looked at in one scan

	// Messages and commands.

	MsgTimeout    time.Duration // how long a message is in flight unless the client asks otherwise
	MaxMsgTimeout time.Duration // most that a client may ask for, by IDENTIFY and by TOUCH
	MaxMsgSize    int64         // bytes of a message body
	MaxReqTimeout time.Duration // longest delay of REQ, DPUB and defer
	MaxBodySize   int64         // bytes of the body of a command

	// Limits of a client.

	MaxHeartbeatInterval   time.Duration // most that a client may ask for
	MaxRdyCount            int64         // most that a client may ask for
	MaxOutputBufferSize    int64         // bytes, most that a client may ask for
	MaxOutputBufferTimeout time.Duration // most that a client may ask for
	MinOutputBufferTimeout time.Duration // least that a client may ask for
	OutputBufferTimeout    time.Duration // flush interval unless the client asks otherwise; 0 or less: no timed flush
	MaxChannelConsumers    int           // consumers of a channel; 0: no limit
	MaxConnections         int           // TCP connections at a time; 0: no limit

	// Statsd.

	StatsdAddress          string        // host:port of the daemon to push to, over UDP; empty: none
	StatsdPrefix           string        // start of the names, %s stands for the host key
	StatsdInterval         time.Duration // between pushes
	StatsdMemStats         bool          // push memory and garbage collector figures too
	StatsdUDPPacketSize    int           // bytes of a datagram at most
	StatsdExcludeEphemeral bool          // leave ephemeral topics and channels out

	// Metrics.

	MetricsMaxTopics int // topics, and channels, that /metrics shows one by one; 0: no limit

	// End-to-end latency.

	E2EProcessingLatencyPercentiles []float64     // each above 0 and at most 1; none: not measured
	E2EProcessingLatencyWindowTime  time.Duration // how far back they look

	// TLS and compression.

	TLSCert             string                 // path of the PEM certificate
	TLSKey              string                 // path of the PEM key
	TLSClientAuthPolicy string                 // "", "require" or "require-verify"
	TLSRootCAFile       string                 // path of PEM certificates that sign clients and auth servers
	TLSRequired         options.TLSRequirement // of clients
	TLSMinVersion       options.TLSVersion     // least that is accepted
	DeflateEnabled      bool                   // let clients negotiate deflate
	MaxDeflateLevel     int                    // 1 to 9, most that a client may ask for
	SnappyEnabled       bool                   // let clients negotiate snappy

	Experiments []string // names of features on trial, such as ExperimentTopologyAware
}

// NewOptions returns the defaults. Where the system cannot tell the host name, the broadcast
// address is empty and the node id -1, which Validate refuses unless it was set.
func NewOptions() *Options {
	o := &Options{
		Logging: options.DefaultLogging(log.Info, "[nsqd] "),
		NodeID:  -1,

		TCPAddress:               "0.0.0.0:4150",
		HTTPAddress:              "0.0.0.0:4151",
		HTTPSAddress:             "0.0.0.0:4152",
		NSQLookupdTCPAddresses:   []string{},
		HTTPClientConnectTimeout: 2 * time.Second,
		HTTPClientRequestTimeout: 5 * time.Second,

		AuthHTTPAddresses:     []string{},
		AuthHTTPRequestMethod: "get",

		MemQueueSize:            10000,
		MaxBytesPerFile:         100 << 20,
		SyncEvery:               2500,
		SyncTimeout:             2 * time.Second,
		QueueScanWorkerPoolMax:  4,
		QueueScanSelectionCount: 20,

		MsgTimeout:    time.Minute,
		MaxMsgTimeout: 15 * time.Minute,
		MaxMsgSize:    1 << 20,
		MaxReqTimeout: time.Hour,
		MaxBodySize:   5 << 20,

		MaxHeartbeatInterval:   time.Minute,
		MaxRdyCount:            2500,
		MaxOutputBufferSize:    64 << 10,
		MaxOutputBufferTimeout: 30 * time.Second,
		MinOutputBufferTimeout: 25 * time.Millisecond,
		OutputBufferTimeout:    250 * time.Millisecond,

		StatsdPrefix:        "nsq.%s",
		StatsdInterval:      time.Minute,
		StatsdMemStats:      true,
		StatsdUDPPacketSize: 508,

		MetricsMaxTopics: 500,

		E2EProcessingLatencyPercentiles: []float64{},
		E2EProcessingLatencyWindowTime:  10 * time.Minute,

		TLSMinVersion:   options.DefaultTLSVersion,
		DeflateEnabled:  true,
		MaxDeflateLevel: 6,
		SnappyEnabled:   true,

		Experiments: []string{},
	}
	if host, err := os.Hostname(); err == nil {
		o.BroadcastAddress = host
		o.NodeID = nodeIDOf(host)
	}
	return o
}

// nodeIDOf derives the default node id from the host name. The result is part of message ids and
// must stay what it was in NSQ.
//
// Source: nsqd-config spec, section 13.
func nodeIDOf(host string) int64 {
	digest := md5.Sum([]byte(host))
	return int64(crc32.ChecksumIEEE(digest[:]) % (maxNodeID + 1))
}

// Validate returns the first setting that nsqd cannot work with, naming its flag. It does not
// touch the disk or the network.
//
// Source: nsqd-config spec, section 7.
func (o *Options) Validate() error {
	if err := o.Table().Validate(); err != nil {
		return err
	}
	if (o.TLSRequired != options.TLSNotRequired || o.TLSClientAuthPolicy != "") && o.TLSCert == "" && o.TLSKey == "" {
		return errors.New("cannot require TLS client connections without TLS key and cert")
	}
	for _, percentile := range o.E2EProcessingLatencyPercentiles {
		if !(percentile > 0 && percentile <= 1) { // NaN is neither
			return fmt.Errorf("invalid E2E processing latency percentile: %v", percentile)
		}
	}
	if len(o.E2EProcessingLatencyPercentiles) > 0 && o.E2EProcessingLatencyWindowTime == 0 {
		return errors.New("--e2e-processing-latency-window-time must be more than 0 with percentiles, is 0s")
	}
	if o.StatsdAddress != "" && o.StatsdInterval == 0 {
		return errors.New("--statsd-interval must be more than 0 with a statsd address, is 0s")
	}
	if o.MsgTimeout > o.MaxMsgTimeout {
		return fmt.Errorf("--msg-timeout must be at most --max-msg-timeout (%v), is %v", o.MaxMsgTimeout, o.MsgTimeout)
	}
	return nil
}

// Warnings tells of settings that are accepted and have no effect, for the log.
func (o *Options) Warnings() []string {
	var warnings []string
	for _, name := range o.Experiments {
		if name != ExperimentTopologyAware {
			warnings = append(warnings, fmt.Sprintf("unknown experiment %q has no effect", name))
		}
	}
	return warnings
}
