package api

// AdminTopic is a topic as nsqadmin answers it: of one node, or summed over all that have it. Then
// Node is "*" and Nodes has the parts.
//
// Source: nsqadmin spec, sections 6.2, 6.3 and 8.
type AdminTopic struct {
	Node                string          `json:"node"`     // HTTP address, "*" for all, empty where no node has the topic
	Hostname            string          `json:"hostname"` // empty in a sum
	TopicName           string          `json:"topic_name"`
	Depth               int64           `json:"depth"`
	MemoryDepth         int64           `json:"memory_depth"`
	BackendDepth        int64           `json:"backend_depth"`
	MessageCount        uint64          `json:"message_count"`
	DeliveryMsgCount    uint64          `json:"delivery_msg_count"`
	ZoneLocalMsgCount   uint64          `json:"zone_local_msg_count,omitempty"`
	RegionLocalMsgCount uint64          `json:"region_local_msg_count,omitempty"`
	GlobalMsgCount      uint64          `json:"global_msg_count,omitempty"`
	Nodes               []*AdminTopic   `json:"nodes"`    // nil in a part
	Channels            []*AdminChannel `json:"channels"` // nil in a sum without any, empty in a part
	Paused              bool            `json:"paused"`   // in a sum: on at least one node
	Latency             *AdminLatency   `json:"e2e_processing_latency"`
}

// AdminChannel is a channel as nsqadmin answers it: of one node, or summed over all that have it.
type AdminChannel struct {
	Node                string          `json:"node"`
	Hostname            string          `json:"hostname"`
	TopicName           string          `json:"topic_name"`
	ChannelName         string          `json:"channel_name"`
	Depth               int64           `json:"depth"`
	MemoryDepth         int64           `json:"memory_depth"`
	BackendDepth        int64           `json:"backend_depth"`
	InFlightCount       int64           `json:"in_flight_count"`
	DeferredCount       int64           `json:"deferred_count"`
	RequeueCount        uint64          `json:"requeue_count"`
	TimeoutCount        uint64          `json:"timeout_count"`
	MessageCount        uint64          `json:"message_count"`
	DeliveryMsgCount    uint64          `json:"delivery_msg_count,omitempty"`
	ZoneLocalMsgCount   uint64          `json:"zone_local_msg_count,omitempty"`
	RegionLocalMsgCount uint64          `json:"region_local_msg_count,omitempty"`
	GlobalMsgCount      uint64          `json:"global_msg_count,omitempty"`
	ClientCount         int             `json:"client_count"`
	Nodes               []*AdminChannel `json:"nodes"`   // nil in a part
	Clients             []*AdminClient  `json:"clients"` // nil where there are none or they were not asked for
	Paused              bool            `json:"paused"`
	Latency             *AdminLatency   `json:"e2e_processing_latency"`
}

// AdminClient is a consumer of a channel, with the node it is connected to.
type AdminClient struct {
	Node            string `json:"node"` // HTTP address of the nsqd
	RemoteAddress   string `json:"remote_address"`
	Version         string `json:"version"`
	ClientID        string `json:"client_id"`
	Hostname        string `json:"hostname"`
	UserAgent       string `json:"user_agent"`
	ConnectTS       int64  `json:"connect_ts"` // Unix seconds
	Connected       int64  `json:"connected"`  // nanoseconds since then; negative where clocks differ
	InFlightCount   int64  `json:"in_flight_count"`
	ReadyCount      int64  `json:"ready_count"`
	FinishCount     uint64 `json:"finish_count"`
	RequeueCount    uint64 `json:"requeue_count"`
	MessageCount    uint64 `json:"message_count"`
	SampleRate      int32  `json:"sample_rate"` // percent; 0 is all
	Deflate         bool   `json:"deflate"`
	Snappy          bool   `json:"snappy"`
	Authed          bool   `json:"authed"`
	AuthIdentity    string `json:"auth_identity"`
	AuthIdentityURL string `json:"auth_identity_url"`
	TLS             bool   `json:"tls"`
	TLSCipherSuite  string `json:"tls_cipher_suite"`
	TLSVersion      string `json:"tls_version"`
	TLSProtocol     string `json:"tls_negotiated_protocol"`
	TLSMutual       bool   `json:"tls_negotiated_protocol_is_mutual"`
	NodeRegion      string `json:"node_topology_region,omitempty"` // of the nsqd
	NodeZone        string `json:"node_topology_zone,omitempty"`   // of the nsqd
	TopologyRegion  string `json:"topology_region,omitempty"`      // of the client
	TopologyZone    string `json:"topology_zone,omitempty"`        // of the client
}

// AdminLatency is an end-to-end latency, of one node or averaged over several.
type AdminLatency struct {
	Count       int                `json:"count"` // messages looked at
	Percentiles []*AdminPercentile `json:"percentiles"`
	Topic       string             `json:"topic"`   // empty in a part, as are the next two
	Channel     string             `json:"channel"` // empty for that of a topic
	Host        string             `json:"host"`    // "*"
}

// AdminPercentile is one quantile; its times are nanoseconds.
type AdminPercentile struct {
	Quantile float64  `json:"quantile"`        // 0 to 1
	Value    *float64 `json:"value,omitempty"` // nil in a sum
	Average  float64  `json:"average"`         // weighted by Count
	Max      float64  `json:"max"`
	Min      float64  `json:"min"`
	Count    int      `json:"count"`
}

// AdminNode is a nsqd as nsqadmin lists it.
type AdminNode struct {
	RemoteAddresses  []string         `json:"remote_addresses"` // "<nsqlookupd>/<address of the nsqd's connection>"; nil without nsqlookupds
	RemoteAddress    string           `json:"remote_address"`
	Hostname         string           `json:"hostname"`
	BroadcastAddress string           `json:"broadcast_address"`
	TCPPort          int              `json:"tcp_port"`
	HTTPPort         int              `json:"http_port"`
	Version          string           `json:"version"`
	TopologyZone     string           `json:"topology_zone,omitempty"`
	TopologyRegion   string           `json:"topology_region,omitempty"`
	Topics           []AdminNodeTopic `json:"topics"`      // sorted, nil when there are none
	OutOfDate        bool             `json:"out_of_date"` // an older version than another node's
}

// AdminNodeTopic is a topic that a node has.
type AdminNodeTopic struct {
	Topic      string `json:"topic"`
	Tombstoned bool   `json:"tombstoned"` // hidden from look-ups on this node
}

// AdminStatus is what every answer of nsqadmin's API ends with.
type AdminStatus struct {
	// Message is empty after a success, else it begins with "WARNING: ".
	Message string `json:"message"`
	// Errors are the failures that Message tells of, one by one; absent when there are none.
	Errors []AdminError `json:"errors,omitempty"`
}

// AdminError is one daemon that could not be asked, or did not do what it was asked.
type AdminError struct {
	Target string `json:"target"` // HTTP address of the daemon
	Stage  string `json:"stage"`  // the path of the request that failed, such as "/topic/create"
	Error  string `json:"error"`
}

// AdminTopicList is the answer of /api/topics.
type AdminTopicList struct {
	Topics []string `json:"topics"` // sorted, nil when there are none
	AdminStatus
}

// AdminInactiveTopics is the answer of /api/topics?inactive=true: by topic without producers, its
// channels, nil when there are none.
type AdminInactiveTopics struct {
	Topics map[string][]string `json:"topics"`
	AdminStatus
}

// AdminTopicAnswer is the answer of /api/topics/:topic.
type AdminTopicAnswer struct {
	*AdminTopic
	AdminStatus
}

// AdminChannelAnswer is the answer of /api/topics/:topic/:channel.
type AdminChannelAnswer struct {
	*AdminChannel
	AdminStatus
}

// AdminNodeList is the answer of /api/nodes.
type AdminNodeList struct {
	Nodes []*AdminNode `json:"nodes"` // nil when there are none
	AdminStatus
}

// AdminNodeAnswer is the answer of /api/nodes/:node.
type AdminNodeAnswer struct {
	Node          string        `json:"node"`
	Topics        []*AdminTopic `json:"topics"` // nil when there are none
	TotalMessages uint64        `json:"total_messages"`
	TotalClients  int           `json:"total_clients"`
	AdminStatus
}

// AdminCounters is the answer of /api/counter; the keys are "topic:channel:node".
type AdminCounters struct {
	Stats map[string]AdminCounter `json:"stats"`
	AdminStatus
}

// AdminCounter is the message count of a channel on a node.
type AdminCounter struct {
	Node         string `json:"node"`
	TopicName    string `json:"topic_name"`
	ChannelName  string `json:"channel_name"`
	MessageCount uint64 `json:"message_count"`
}

// AdminRate is the answer of /api/graphite.
type AdminRate struct {
	Rate string `json:"rate"` // messages a second with two decimals, or "N/A"
}

// AdminActionAnswer is the answer of an action: what became of each request that was made for it.
type AdminActionAnswer struct {
	AdminStatus
	Results []AdminResult `json:"results,omitempty"` // absent where all succeeded
}

// AdminResult is what became of one request of an action.
type AdminResult struct {
	Target string `json:"target"`          // HTTP address of the daemon
	Stage  string `json:"stage"`           // the path of the request, such as "/topic/create"
	Error  string `json:"error,omitempty"` // empty after a success
}

// AdminNotification is what the notification endpoint is sent after an action.
//
// Source: nsqadmin spec, section 10.
type AdminNotification struct {
	Action    string `json:"action"`
	Topic     string `json:"topic"`
	Channel   string `json:"channel,omitempty"`
	Node      string `json:"node,omitempty"`
	Timestamp int64  `json:"timestamp"` // Unix seconds
	User      string `json:"user,omitempty"`
	RemoteIP  string `json:"remote_ip"` // with the port
	UserAgent string `json:"user_agent"`
	URL       string `json:"url"`
	Via       string `json:"via"` // host name of the nsqadmin

	Success bool   `json:"success"`            // no request of the action failed
	ACLUser string `json:"acl_user,omitempty"` // value of the ACL header
}
