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
		options.Group{Title: "Metrics", Options: []options.Option{
			{Flag: "metrics-max-topics", Value: options.Int(&o.MetricsMaxTopics, 0, options.NoLimit), Argument: "topics",
				Help: "topics, and channels of all topics, that /metrics shows one by one, the others summed up; 0 for no limit"},
		}},
		options.Group{Title: "End-to-end latency", Options: o.latencyRows()},
		options.Group{Title: "TLS", Options: o.tlsRows()},
		options.Group{Title: "Compression", Options: o.compressionRows()},
		options.Group{Title: "Experiments", Options: []options.Option{
			{Flag: "enable-experiment", Value: options.Strings(&o.Experiments), Argument: "name",
				Help: "turn on a feature on trial: " + ExperimentTopologyAware},
		}},
	)
}

func (o *Options) nodeRows() []options.Option {
	return []options.Option{
		{Flag: "node-id", Key: "id", Value: options.Int(&o.NodeID, 0, maxNodeID), Refusal: "must be [0,1024)", Origin: "the host name",
			Help: "node part of message ids, 0 to 1023, different on every node of a cluster"},
		{Flag: "worker-id", Key: options.NoKey, Value: options.Bool(new(bool)),
			Help: "deprecated, has no effect: use -node-id"},
	}
}

func (o *Options) addressRows() []options.Option {
	return []options.Option{
		{Flag: "tcp-address", Value: options.String(&o.TCPAddress), Argument: "address",
			Help: "host:port, or path of a unix socket, where clients of the TCP protocol are served"},
		{Flag: "http-address", Value: options.String(&o.HTTPAddress), Argument: "address",
			Help: "host:port, or path of a unix socket, where HTTP is served; empty for nowhere"},
		{Flag: "https-address", Value: options.String(&o.HTTPSAddress), Argument: "address",
			Help: "host:port where HTTPS is served if there is a certificate; empty for nowhere"},
		{Flag: "broadcast-address", Value: options.String(&o.BroadcastAddress), Argument: "name", Origin: "the host name",
			Help: "name or address under which consumers and tools reach this node"},
		{Flag: "broadcast-tcp-port", Value: options.Int(&o.BroadcastTCPPort, 0, maxPort), Argument: "port",
			Help: "TCP port that nsqlookupd is told; 0 for the one of -tcp-address"},
		{Flag: "broadcast-http-port", Value: options.Int(&o.BroadcastHTTPPort, 0, maxPort), Argument: "port",
			Help: "HTTP port that nsqlookupd is told; 0 for the one of -http-address"},
		{Flag: "lookupd-tcp-address", Key: "nsqlookupd_tcp_addresses", Changeable: true,
			Value: options.Strings(&o.NSQLookupdTCPAddresses), Argument: "host:port",
			Help: "TCP address of a nsqlookupd, which is told what topics and channels are here"},
		{Flag: "topology-region", Value: options.String(&o.TopologyRegion), Argument: "label",
			Help: "region in which the node runs; consumers there are preferred with -enable-experiment"},
		{Flag: "topology-zone", Value: options.String(&o.TopologyZone), Argument: "label",
			Help: "zone, within the region, in which the node runs; its consumers are preferred even more"},
		{Flag: "http-client-connect-timeout", Value: options.Duration(&o.HTTPClientConnectTimeout, 0),
			Help: "time to connect for HTTP requests to nsqlookupd and auth servers; 0 for no limit"},
		{Flag: "http-client-request-timeout", Value: options.Duration(&o.HTTPClientRequestTimeout, 0),
			Help: "total time for one HTTP request to nsqlookupd and auth servers; 0 for no limit"},
	}
}

func (o *Options) authRows() []options.Option {
	return []options.Option{
		{Flag: "auth-http-address", Key: "auth_http_addresses", Value: options.Strings(&o.AuthHTTPAddresses), Argument: "address",
			Help: "auth server, as host:port (which is asked at /auth over HTTP) or as a URL; with one, clients have to AUTH"},
		{Flag: "auth-http-request-method", Value: options.Choice(&o.AuthHTTPRequestMethod, "get", "post"),
			Refusal: "must be post or get", Argument: "method",
			Help: "how auth servers are asked: get (secrets in the URL) or post (in the body)"},
	}
}

func (o *Options) storageRows() []options.Option {
	return []options.Option{
		{Flag: "data-path", Value: options.String(&o.DataPath), Argument: "folder",
			Help: "where queues and metadata are kept, an existing folder of this nsqd alone; empty for the working directory"},
		{Flag: "mem-queue-size", Value: options.Int(&o.MemQueueSize, 0, options.NoLimit), Argument: "messages",
			Help: "messages that each topic, and each channel, keeps in memory; those beyond go to disk, with 0 all of them"},
		{Flag: "max-bytes-per-file", Value: options.Int(&o.MaxBytesPerFile, 1, options.NoLimit), Argument: "bytes",
			Help: "size at which a queue on disk begins its next file"},
		{Flag: "sync-every", Value: options.Int(&o.SyncEvery, 0, options.NoLimit), Argument: "operations",
			Help: "reads and writes of a queue on disk between fsyncs; 0 for an fsync at each"},
		{Flag: "sync-timeout", Value: options.Duration(&o.SyncTimeout, 1),
			Help: "longest time between fsyncs of a queue on disk that is in use"},
		{Flag: "queue-scan-worker-pool-max", Value: options.Int(&o.QueueScanWorkerPoolMax, 1, options.NoLimit), Argument: "workers",
			Help: "most goroutines that look for messages that have timed out or are no longer deferred"},
		{Flag: "queue-scan-selection-count", Value: options.Int(&o.QueueScanSelectionCount, 1, options.NoLimit), Argument: "channels",
			Help: "most channels with such messages that are handed to the workers at a time"},
	}
}

func (o *Options) messageRows() []options.Option {
	return []options.Option{
		{Flag: "msg-timeout", Value: options.Duration(&o.MsgTimeout, 1),
			Help: "time after which a message in flight is requeued, unless the client asks otherwise"},
		{Flag: "max-msg-timeout", Value: options.Duration(&o.MaxMsgTimeout, 1),
			Help: "longest time in flight that a client may ask for"},
		{Flag: "max-msg-size", Value: options.Int(&o.MaxMsgSize, 1, maxMsgSizeLimit), Argument: "bytes",
			Help: "largest body of a message"},
		{Flag: "max-req-timeout", Value: options.Duration(&o.MaxReqTimeout, 0),
			Help: "longest delay with which a message may be requeued or published"},
		{Flag: "max-body-size", Value: options.Int(&o.MaxBodySize, 1, math.MaxInt32), Argument: "bytes",
			Help: "largest body of a command (such as MPUB, IDENTIFY or /mpub), and of an answer of nsqlookupd"},
	}
}

func (o *Options) clientRows() []options.Option {
	return []options.Option{
		{Flag: "max-heartbeat-interval", Value: options.Duration(&o.MaxHeartbeatInterval, 0),
			Help: "longest time between heartbeats that a client may ask for"},
		{Flag: "max-rdy-count", Value: options.Int(&o.MaxRdyCount, 1, options.NoLimit), Argument: "messages",
			Help: "highest RDY count of a client, which is how many messages it may have in flight"},
		{Flag: "max-output-buffer-size", Value: options.Int(&o.MaxOutputBufferSize, 0, options.NoLimit), Argument: "bytes",
			Help: "largest output buffer that a client may ask for"},
		{Flag: "max-output-buffer-timeout", Value: options.Duration(&o.MaxOutputBufferTimeout, 0),
			Help: "longest time for which a client may ask to have output held back, for larger packets"},
		{Flag: "min-output-buffer-timeout", Value: options.Duration(&o.MinOutputBufferTimeout, 0),
			Help: "shortest time for which a client may ask to have output held back"},
		// -1 is what a client sends for "no timed flush", in milliseconds.
		{Flag: "output-buffer-timeout", Value: options.Duration(&o.OutputBufferTimeout, -time.Millisecond),
			Help: "time for which output may be held back, unless the client asks otherwise; 0 or less for no timed flush"},
		{Flag: "max-channel-consumers", Value: options.Int(&o.MaxChannelConsumers, 0, options.NoLimit), Argument: "consumers",
			Help: "most consumers of a channel; 0 for no limit"},
		{Flag: "max-connections", Value: options.Int(&o.MaxConnections, 0, options.NoLimit), Argument: "connections",
			Help: "most TCP connections of clients at a time; 0 for no limit"},
	}
}

func (o *Options) statsdRows() []options.Option {
	return []options.Option{
		{Flag: "statsd-address", Value: options.String(&o.StatsdAddress), Argument: "host:port",
			Help: "UDP address of a statsd daemon that figures are pushed to; empty for none"},
		{Flag: "statsd-prefix", Value: options.String(&o.StatsdPrefix), Argument: "text",
			Help: "start of the names that are pushed; %s stands for the broadcast address and HTTP port, with _ for . and :"},
		{Flag: "statsd-interval", Value: options.Duration(&o.StatsdInterval, 0),
			Help: "time between pushes"},
		{Flag: "statsd-mem-stats", Value: options.Bool(&o.StatsdMemStats),
			Help: "push figures of memory and garbage collection too"},
		{Flag: "statsd-udp-packet-size", Value: options.Int(&o.StatsdUDPPacketSize, math.MinInt32, maxUDPPayload), Argument: "bytes",
			Help: "largest datagram; 0 or less for 4096"},
		{Flag: "statsd-exclude-ephemeral", Value: options.Bool(&o.StatsdExcludeEphemeral),
			Help: "leave out ephemeral topics and channels"},
	}
}

func (o *Options) latencyRows() []options.Option {
	return []options.Option{
		{Flag: "e2e-processing-latency-percentile", Key: "e2e_processing_latency_percentiles",
			Value: options.Floats(&o.E2EProcessingLatencyPercentiles), Argument: "numbers",
			Help: "percentiles to keep of the time from publish to FIN, such as 0.99,0.5: each above 0 and at most 1"},
		{Flag: "e2e-processing-latency-window-time", Value: options.Duration(&o.E2EProcessingLatencyWindowTime, 0),
			Help: "how far back the percentiles look"},
	}
}

func (o *Options) tlsRows() []options.Option {
	return []options.Option{
		{Flag: "tls-cert", Value: options.String(&o.TLSCert), Argument: "path",
			Help: "PEM file of the certificate, followed by intermediates; with -tls-key it turns TLS on"},
		{Flag: "tls-key", Value: options.String(&o.TLSKey), Argument: "path",
			Help: "PEM file of the key of the certificate"},
		{Flag: "tls-client-auth-policy", Value: options.Choice(&o.TLSClientAuthPolicy, "", "require", "require-verify"), Argument: "policy",
			Help: "certificates of clients: require (any), require-verify (signed by one of -tls-root-ca-file), empty for none"},
		{Flag: "tls-root-ca-file", Value: options.String(&o.TLSRootCAFile), Argument: "path",
			Help: "PEM file of the certificates that sign those of clients and auth servers; empty for those of the system"},
		{Flag: "tls-required", Value: options.TLSRequired(&o.TLSRequired),
			Help: "refuse clients without TLS; -tls-required=tcp-https leaves plain HTTP open"},
		{Flag: "tls-min-version", Value: options.TLSMinVersion(&o.TLSMinVersion),
			Help: "oldest version of TLS that is accepted: tls1.0, tls1.1, tls1.2 or tls1.3; empty for the default"},
	}
}

func (o *Options) compressionRows() []options.Option {
	return []options.Option{
		{Flag: "deflate", Value: options.Bool(&o.DeflateEnabled),
			Help: "let clients negotiate deflate compression"},
		{Flag: "max-deflate-level", Value: options.Int(&o.MaxDeflateLevel, 1, 9), Refusal: "must be [1,9]", Argument: "level",
			Help: "highest level of deflate that a client may negotiate, 1 to 9; higher takes more CPU"},
		{Flag: "snappy", Value: options.Bool(&o.SnappyEnabled),
			Help: "let clients negotiate snappy compression"},
	}
}
