// Package api has the JSON form of the answers of the HTTP APIs, for the daemons that give them and
// for the programs that read them. It is data only: it knows neither HTTP nor where the figures come
// from.
//
// Source: nsqd-http spec, sections 6 and 11; nsqlookupd spec, section 5.
package api

// Info is the answer of nsqd's /info.
//
// Source: nsqd-http spec, section 6.
type Info struct {
	Version                string `json:"version"` // semver
	BroadcastAddress       string `json:"broadcast_address"`
	Hostname               string `json:"hostname"`
	HTTPPort               int    `json:"http_port"`                 // -1 on a unix socket, 0 without the listener
	TCPPort                int    `json:"tcp_port"`                  // -1 on a unix socket
	StartTime              int64  `json:"start_time"`                // Unix seconds
	MaxHeartbeatInterval   int64  `json:"max_heartbeat_interval"`    // nanoseconds
	MaxOutputBufferSize    int64  `json:"max_output_buffer_size"`    // bytes
	MaxOutputBufferTimeout int64  `json:"max_output_buffer_timeout"` // nanoseconds
	MaxDeflateLevel        int    `json:"max_deflate_level"`
	TopologyZone           string `json:"topology_zone"`
	TopologyRegion         string `json:"topology_region"`
}
