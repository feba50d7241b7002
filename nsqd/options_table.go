package nsqd

import (
	"math"
	"time"

	"nsq/internal/options"
)

const (
	maxPort = 1<<16 - 1

	// maxMsgSizeLimit keeps the length of a record on disk, which is a message body and 26 bytes in
	// front of it, within the 32 bits that it has.
	maxMsgSizeLimit = math.MaxInt32 - 26

	// maxUDPPayload is what fits into one datagram over IPv4.
	maxUDPPayload = 65507
)

// Table describes the options: flags, keys of the file, ranges. Its rows point into o.
//
// Source: nsqd-config spec, sections 3, 4 and 7.
func (o *Options) Table() *options.Table {
	return options.New("nsqd",
		options.Group{Title: "Node and log", Options: append(o.nodeRows(), o.Logging.Rows()...)},
		options.Group{Title: "Addresses", Options: o.addressRows()},
		options.Group{Title: "Authorisation", Options: o.authRows()},
		options.Group{Title: "Storage", Options: o.storageRows()},
		options.Group{Title: "Messages and commands", Options: o.messageRows()},
		options.Group{Title: "Limits of a client", Options: o.clientRows()},
		options.Group{Title: "Statsd", Options: o.statsdRows()},
		options.Group{Title: "End-to-end latency", Options: o.latencyRows()},
		options.Group{Title: "TLS", Options: o.tlsRows()},
		options.Group{Title: "Compression", Options: o.compressionRows()},
		options.Group{Title: "Experiments", Options: []options.Option{
			{Flag: "enable-experiment", Value: options.Strings(&o.Experiments),
				Help: "turn on a feature on trial: " + ExperimentTopologyAware + " (may be given more than once)"},
		}},
	)
}

func (o *Options) nodeRows() []options.Option {
	return []options.Option{
		{Flag: "node-id", Key: "id", Value: options.Int(&o.NodeID, 0, maxNodeID), Refusal: "must be [0,1024)",
			Help: "node part of message ids, 0 to 1023, unique in the cluster; by default made from the host name"},
		{Flag: "worker-id", Key: options.NoKey, Value: options.Bool(new(bool)),
			Help: "deprecated, has no effect: use -node-id"},
	}
}

func (o *Options) addressRows() []options.Option {
	return []options.Option{
		{Flag: "tcp-address", Value: options.String(&o.TCPAddress),
			Help: "host:port, or path of a unix socket, on which clients of the TCP protocol are served"},
		{Flag: "http-address", Value: options.String(&o.HTTPAddress),
			Help: "host:port, or path of a unix socket, on which HTTP clients are served; empty for none"},
		{Flag: "https-address", Value: options.String(&o.HTTPSAddress),
			Help: "host:port on which HTTPS clients are served when there is a certificate; empty for none"},
		{Flag: "broadcast-address", Value: options.String(&o.BroadcastAddress),
			Help: "name or address under which others reach this node; by default the host name"},
		{Flag: "broadcast-tcp-port", Value: options.Int(&o.BroadcastTCPPort, 0, maxPort),
			Help: "TCP port that is announced; 0 for the one that is bound"},
		{Flag: "broadcast-http-port", Value: options.Int(&o.BroadcastHTTPPort, 0, maxPort),
			Help: "HTTP port that is announced; 0 for the one that is bound"},
		{Flag: "lookupd-tcp-address", Key: "nsqlookupd_tcp_addresses", Changeable: true,
			Value: options.Strings(&o.NSQLookupdTCPAddresses),
			Help:  "host:port of a nsqlookupd to announce to (may be given more than once)"},
		{Flag: "topology-region", Value: options.String(&o.TopologyRegion),
			Help: "label of the region in which the node runs"},
		{Flag: "topology-zone", Value: options.String(&o.TopologyZone),
			Help: "label of the zone, within the region, in which the node runs"},
		{Flag: "http-client-connect-timeout", Value: options.Duration(&o.HTTPClientConnectTimeout, 0),
			Help: "time to connect for HTTP requests to nsqlookupd and auth servers; 0 for no limit"},
		{Flag: "http-client-request-timeout", Value: options.Duration(&o.HTTPClientRequestTimeout, 0),
			Help: "total time for one HTTP request to nsqlookupd and auth servers; 0 for no limit"},
	}
}

func (o *Options) authRows() []options.Option {
	return []options.Option{
		{Flag: "auth-http-address", Key: "auth_http_addresses", Value: options.Strings(&o.AuthHTTPAddresses),
			Help: "host:port or URL of an auth server; clients must then AUTH (may be given more than once)"},
		{Flag: "auth-http-request-method", Value: options.Choice(&o.AuthHTTPRequestMethod, "get", "post"),
			Refusal: "must be post or get",
			Help:    "how auth servers are asked: get or post"},
	}
}

func (o *Options) storageRows() []options.Option {
	return []options.Option{
		{Flag: "data-path", Value: options.String(&o.DataPath),
			Help: "folder, which must exist, for queues and metadata; empty for the working directory"},
		{Flag: "mem-queue-size", Value: options.Int(&o.MemQueueSize, 0, options.NoLimit),
			Help: "messages that a topic, and a channel, keeps in memory; 0 sends all through disk"},
		{Flag: "max-bytes-per-file", Value: options.Int(&o.MaxBytesPerFile, 1, options.NoLimit),
			Help: "bytes of a queue file before the next one begins"},
		{Flag: "sync-every", Value: options.Int(&o.SyncEvery, 0, options.NoLimit),
			Help: "reads and writes of a queue between fsyncs; 0 for an fsync at each"},
		{Flag: "sync-timeout", Value: options.Duration(&o.SyncTimeout, 1),
			Help: "longest time between fsyncs of a queue in use"},
		{Flag: "queue-scan-worker-pool-max", Value: options.Int(&o.QueueScanWorkerPoolMax, 1, options.NoLimit),
			Help: "most workers that look for timed out and deferred messages"},
		{Flag: "queue-scan-selection-count", Value: options.Int(&o.QueueScanSelectionCount, 1, options.NoLimit),
			Help: "channels that are looked at in one scan for timed out and deferred messages"},
	}
}

func (o *Options) messageRows() []options.Option {
	return []options.Option{
		{Flag: "msg-timeout", Value: options.Duration(&o.MsgTimeout, 1),
			Help: "time after which a message in flight is requeued, unless the client asks otherwise"},
		{Flag: "max-msg-timeout", Value: options.Duration(&o.MaxMsgTimeout, 1),
			Help: "longest time in flight that a client may ask for"},
		{Flag: "max-msg-size", Value: options.Int(&o.MaxMsgSize, 1, maxMsgSizeLimit),
			Help: "bytes of a message body"},
		{Flag: "max-req-timeout", Value: options.Duration(&o.MaxReqTimeout, 0),
			Help: "longest delay with which a message may be requeued or published"},
		{Flag: "max-body-size", Value: options.Int(&o.MaxBodySize, 1, math.MaxInt32),
			Help: "bytes of the body of a command, such as MPUB"},
	}
}

func (o *Options) clientRows() []options.Option {
	return []options.Option{
		{Flag: "max-heartbeat-interval", Value: options.Duration(&o.MaxHeartbeatInterval, 0),
			Help: "longest time between heartbeats that a client may ask for"},
		{Flag: "max-rdy-count", Value: options.Int(&o.MaxRdyCount, 1, options.NoLimit),
			Help: "highest RDY count of a client"},
		{Flag: "max-output-buffer-size", Value: options.Int(&o.MaxOutputBufferSize, 0, options.NoLimit),
			Help: "most bytes of output buffer that a client may ask for"},
		{Flag: "max-output-buffer-timeout", Value: options.Duration(&o.MaxOutputBufferTimeout, 0),
			Help: "longest time between flushes that a client may ask for"},
		{Flag: "min-output-buffer-timeout", Value: options.Duration(&o.MinOutputBufferTimeout, 0),
			Help: "shortest time between flushes that a client may ask for"},
		// -1 is what a client sends for "no timed flush", in milliseconds.
		{Flag: "output-buffer-timeout", Value: options.Duration(&o.OutputBufferTimeout, -time.Millisecond),
			Help: "time between flushes, unless the client asks otherwise; 0 for no timed flush"},
		{Flag: "max-channel-consumers", Value: options.Int(&o.MaxChannelConsumers, 0, options.NoLimit),
			Help: "consumers that a channel may have; 0 for no limit"},
		{Flag: "max-connections", Value: options.Int(&o.MaxConnections, 0, options.NoLimit),
			Help: "TCP connections that may be open at a time; 0 for no limit"},
	}
}

func (o *Options) statsdRows() []options.Option {
	return []options.Option{
		{Flag: "statsd-address", Value: options.String(&o.StatsdAddress),
			Help: "host:port of a statsd daemon to push to, over UDP; empty for none"},
		{Flag: "statsd-prefix", Value: options.String(&o.StatsdPrefix),
			Help: "start of the names that are pushed, %s stands for the host key"},
		{Flag: "statsd-interval", Value: options.Duration(&o.StatsdInterval, 0),
			Help: "time between pushes"},
		{Flag: "statsd-mem-stats", Value: options.Bool(&o.StatsdMemStats),
			Help: "push figures of memory and garbage collection too"},
		{Flag: "statsd-udp-packet-size", Value: options.Int(&o.StatsdUDPPacketSize, math.MinInt32, maxUDPPayload),
			Help: "most bytes of a datagram; 0 or less for 4096"},
		{Flag: "statsd-exclude-ephemeral", Value: options.Bool(&o.StatsdExcludeEphemeral),
			Help: "leave out ephemeral topics and channels"},
	}
}

func (o *Options) latencyRows() []options.Option {
	return []options.Option{
		{Flag: "e2e-processing-latency-percentile", Key: "e2e_processing_latency_percentiles",
			Value: options.Floats(&o.E2EProcessingLatencyPercentiles),
			Help:  "percentiles to keep of the time from publish to finish, each above 0 and at most 1, separated by commas (may be given more than once)"},
		{Flag: "e2e-processing-latency-window-time", Value: options.Duration(&o.E2EProcessingLatencyWindowTime, 0),
			Help: "how far back the percentiles look"},
	}
}

func (o *Options) tlsRows() []options.Option {
	return []options.Option{
		{Flag: "tls-cert", Value: options.String(&o.TLSCert),
			Help: "path of the certificate, PEM"},
		{Flag: "tls-key", Value: options.String(&o.TLSKey),
			Help: "path of the key of the certificate, PEM"},
		{Flag: "tls-client-auth-policy", Value: options.Choice(&o.TLSClientAuthPolicy, "", "require", "require-verify"),
			Help: "certificates of clients: require (any), require-verify (signed by the root CA), empty for none"},
		{Flag: "tls-root-ca-file", Value: options.String(&o.TLSRootCAFile),
			Help: "path of the certificates, PEM, that sign those of clients and auth servers"},
		{Flag: "tls-required", Value: options.TLSRequired(&o.TLSRequired),
			Help: "demand TLS of clients: true, false, or tcp-https to leave plain HTTP open"},
		{Flag: "tls-min-version", Value: options.TLSMinVersion(&o.TLSMinVersion),
			Help: "oldest version of TLS that is accepted: tls1.0, tls1.1, tls1.2 or tls1.3"},
	}
}

func (o *Options) compressionRows() []options.Option {
	return []options.Option{
		{Flag: "deflate", Value: options.Bool(&o.DeflateEnabled),
			Help: "let clients negotiate deflate"},
		{Flag: "max-deflate-level", Value: options.Int(&o.MaxDeflateLevel, 1, 9), Refusal: "must be [1,9]",
			Help: "highest level of deflate that a client may negotiate, 1 to 9; more takes more CPU"},
		{Flag: "snappy", Value: options.Bool(&o.SnappyEnabled),
			Help: "let clients negotiate snappy"},
	}
}
