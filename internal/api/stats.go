package api

// Stats is the answer of nsqd's /stats?format=json, for all of it or for what the request's filters
// left.
//
// The same type reads the answers of older daemons: what they do not report is zero or nil.
//
// Source: nsqd-http spec, section 11.1.
type Stats struct {
	Version   string          `json:"version"`
	Health    string          `json:"health"`           // "OK", or "NOK - " and what is wrong
	StartTime int64           `json:"start_time"`       // Unix seconds
	Topics    []TopicStats    `json:"topics"`           // sorted by name; nil when the topic asked for does not exist
	Memory    *Memory         `json:"memory,omitempty"` // nil when not asked for
	Producers []ProducerStats `json:"producers"`        // nil when there are none or not asked for
}

// TopicStats is a topic of a nsqd. Counters begin at 0 with the process.
type TopicStats struct {
	TopicName            string               `json:"topic_name"`
	Channels             []ChannelStats       `json:"channels"`      // sorted by name
	Depth                int64                `json:"depth"`         // messages that wait in the topic, in memory and on disk
	BackendDepth         int64                `json:"backend_depth"` // those of them on disk
	MessageCount         uint64               `json:"message_count"` // messages accepted
	MessageBytes         uint64               `json:"message_bytes"` // the sum of their bodies
	Paused               bool                 `json:"paused"`
	E2eProcessingLatency E2eProcessingLatency `json:"e2e_processing_latency"` // of all channels
}

// ChannelStats is a channel of a topic. Counters begin at 0 with the process.
type ChannelStats struct {
	ChannelName          string               `json:"channel_name"`
	Depth                int64                `json:"depth"`         // messages that wait, neither in flight nor deferred
	BackendDepth         int64                `json:"backend_depth"` // those of them on disk
	InFlightCount        int64                `json:"in_flight_count"`
	DeferredCount        int64                `json:"deferred_count"`
	MessageCount         uint64               `json:"message_count"` // messages received from the topic
	ZoneLocalMsgCount    uint64               `json:"zone_local_msg_count,omitempty"`
	RegionLocalMsgCount  uint64               `json:"region_local_msg_count,omitempty"`
	GlobalMsgCount       uint64               `json:"global_msg_count,omitempty"`
	RequeueCount         uint64               `json:"requeue_count"`
	TimeoutCount         uint64               `json:"timeout_count"`
	ClientCount          int                  `json:"client_count"` // right even where Clients was not asked for
	Clients              []ClientStats        `json:"clients"`      // nil when not asked for
	Paused               bool                 `json:"paused"`
	E2eProcessingLatency E2eProcessingLatency `json:"e2e_processing_latency"`
}

// ClientStats is a TCP connection of a nsqd: a consumer, a producer, or both.
type ClientStats struct {
	// Topic and Channel are what the client is subscribed to, empty if nothing. They are no part of
	// the answer: there the place of the client tells.
	Topic   string `json:"-"`
	Channel string `json:"-"`

	ClientID            string `json:"client_id"`
	Hostname            string `json:"hostname"`
	Version             string `json:"version"`        // of the protocol: "V2"
	RemoteAddress       string `json:"remote_address"` // ip:port, or "@" on a unix socket
	State               int32  `json:"state"`          // 0 init, 1 disconnected, 2 connected, 3 subscribed, 4 closing
	ReadyCount          int64  `json:"ready_count"`
	InFlightCount       int64  `json:"in_flight_count"`
	MessageCount        uint64 `json:"message_count"` // messages sent to the client
	ZoneLocalMsgCount   uint64 `json:"zone_local_msg_count,omitempty"`
	RegionLocalMsgCount uint64 `json:"region_local_msg_count,omitempty"`
	GlobalMsgCount      uint64 `json:"global_msg_count,omitempty"`
	FinishCount         uint64 `json:"finish_count"`
	RequeueCount        uint64 `json:"requeue_count"`
	ConnectTS           int64  `json:"connect_ts"`  // Unix seconds
	SampleRate          int32  `json:"sample_rate"` // percent; 0 is all
	Deflate             bool   `json:"deflate"`
	Snappy              bool   `json:"snappy"`
	UserAgent           string `json:"user_agent"`
	Authed              bool   `json:"authed,omitempty"`
	AuthIdentity        string `json:"auth_identity,omitempty"`
	AuthIdentityURL     string `json:"auth_identity_url,omitempty"`
	TopologyZone        string `json:"topology_zone"`   // as the client said
	TopologyRegion      string `json:"topology_region"` // as the client said

	// PubCounts tells what the client has published: empty unless it is a producer.
	PubCounts []PubCount `json:"pub_counts,omitempty"`

	TLS                           bool   `json:"tls"`
	TLSCipherSuite                string `json:"tls_cipher_suite"` // empty without TLS
	TLSVersion                    string `json:"tls_version"`      // "TLS1.3"; empty without TLS
	TLSNegotiatedProtocol         string `json:"tls_negotiated_protocol"`
	TLSNegotiatedProtocolIsMutual bool   `json:"tls_negotiated_protocol_is_mutual"` // always true under TLS
}

// ProducerStats is a client that has published.
type ProducerStats = ClientStats

// PubCount is how many messages a client has published to a topic.
type PubCount struct {
	Topic string `json:"topic"`
	Count uint64 `json:"count"`
}

// Memory describes the heap and the garbage collector of a process. Pauses are microseconds, at the
// percentile of their name, over the last 256.
type Memory struct {
	HeapObjects       uint64 `json:"heap_objects"`
	HeapIdleBytes     uint64 `json:"heap_idle_bytes"`
	HeapInUseBytes    uint64 `json:"heap_in_use_bytes"`
	HeapReleasedBytes uint64 `json:"heap_released_bytes"`
	GCPauseUsec100    uint64 `json:"gc_pause_usec_100"`
	GCPauseUsec99     uint64 `json:"gc_pause_usec_99"`
	GCPauseUsec95     uint64 `json:"gc_pause_usec_95"`
	NextGCBytes       uint64 `json:"next_gc_bytes"`
	GCTotalRuns       uint32 `json:"gc_total_runs"`
}

// Figure is a number by its name in the answer.
type Figure struct {
	Name  string
	Value uint64
}

// Gauges are the figures that go up and down: all but the count of runs.
func (m *Memory) Gauges() []Figure {
	return []Figure{
		{"heap_objects", m.HeapObjects},
		{"heap_idle_bytes", m.HeapIdleBytes},
		{"heap_in_use_bytes", m.HeapInUseBytes},
		{"heap_released_bytes", m.HeapReleasedBytes},
		{"gc_pause_usec_100", m.GCPauseUsec100},
		{"gc_pause_usec_99", m.GCPauseUsec99},
		{"gc_pause_usec_95", m.GCPauseUsec95},
		{"next_gc_bytes", m.NextGCBytes},
	}
}

// E2eProcessingLatency is the time from the publishing of messages to their FIN.
type E2eProcessingLatency struct {
	Count       int                 `json:"count"`       // messages looked at
	Percentiles []LatencyPercentile `json:"percentiles"` // in the order of the configuration; nil when not measured
}

// LatencyPercentile is one quantile of a latency.
type LatencyPercentile struct {
	Quantile float64 `json:"quantile"` // 0 to 1
	Value    float64 `json:"value"`    // nanoseconds
}
