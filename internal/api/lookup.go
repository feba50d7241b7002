package api

// TopicList is the answer of nsqlookupd's /topics.
type TopicList struct {
	Topics []string `json:"topics"`
}

// ChannelList is the answer of nsqlookupd's /channels.
type ChannelList struct {
	Channels []string `json:"channels"`
}

// Lookup is the answer of nsqlookupd's /lookup.
type Lookup struct {
	Channels  []string   `json:"channels"`
	Producers []Producer `json:"producers"`
}

// Producer is a nsqd as nsqlookupd knows it.
type Producer struct {
	RemoteAddress    string `json:"remote_address"`
	Hostname         string `json:"hostname"`
	BroadcastAddress string `json:"broadcast_address"`
	TCPPort          int    `json:"tcp_port"`
	HTTPPort         int    `json:"http_port"`
	Version          string `json:"version"`
	TopologyZone     string `json:"topology_zone"`
	TopologyRegion   string `json:"topology_region"`
}

// NodeList is the answer of nsqlookupd's /nodes.
type NodeList struct {
	Producers []Node `json:"producers"`
}

// Node is a nsqd with its topics. Tombstones says for each of Topics, in the same order, whether the
// node is hidden from look-ups of it; clients rely on the equal length.
type Node struct {
	Producer
	Tombstones []bool   `json:"tombstones"`
	Topics     []string `json:"topics"`
}

// LookupInfo is the answer of nsqlookupd's /info.
type LookupInfo struct {
	Version string `json:"version"`
}

// Registrations is the answer of nsqlookupd's /debug: by category:key:subkey, who is registered.
type Registrations map[string][]RegisteredProducer

// RegisteredProducer is a producer in one registration. Times are Unix nanoseconds; TombstonedAt is that
// of the zero time.Time where there is no tombstone.
type RegisteredProducer struct {
	BroadcastAddress string `json:"broadcast_address"`
	Hostname         string `json:"hostname"`
	HTTPPort         int    `json:"http_port"`
	ID               string `json:"id"`
	LastUpdate       int64  `json:"last_update"`
	TCPPort          int    `json:"tcp_port"`
	Tombstoned       bool   `json:"tombstoned"`
	TombstonedAt     int64  `json:"tombstoned_at"`
	TopologyRegion   string `json:"topology_region"`
	TopologyZone     string `json:"topology_zone"`
	Version          string `json:"version"`
}
