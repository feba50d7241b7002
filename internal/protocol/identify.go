package protocol

import (
	"encoding/json"
)

// Identify is the body of an IDENTIFY command. Zero means "not set" for every field.
//
// Source: nsqd-tcp spec, section 6.1.
type Identify struct {
	ClientID            string `json:"client_id"`
	Hostname            string `json:"hostname"`
	UserAgent           string `json:"user_agent"`
	FeatureNegotiation  bool   `json:"feature_negotiation"`
	HeartbeatInterval   int    `json:"heartbeat_interval"`    // milliseconds, -1 disables
	OutputBufferSize    int    `json:"output_buffer_size"`    // bytes, -1 disables
	OutputBufferTimeout int    `json:"output_buffer_timeout"` // milliseconds, -1 disables
	TLSv1               bool   `json:"tls_v1"`
	Snappy              bool   `json:"snappy"`
	Deflate             bool   `json:"deflate"`
	DeflateLevel        int    `json:"deflate_level"`
	SampleRate          int32  `json:"sample_rate"` // percent
	MsgTimeout          int    `json:"msg_timeout"` // milliseconds
	TopologyRegion      string `json:"topology_region"`
	TopologyZone        string `json:"topology_zone"`
}

// DecodeIdentify reads the body of an IDENTIFY. Unknown members are ignored; the document null is
// an empty object.
func DecodeIdentify(body []byte) (*Identify, error) {
	var request Identify
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	return &request, nil
}

// IdentifyResponse is the answer to an IDENTIFY that asked for feature negotiation, its members in
// the order of the wire.
//
// Source: nsqd-tcp spec, section 6.2.
type IdentifyResponse struct {
	MaxRdyCount         int64  `json:"max_rdy_count"`
	Version             string `json:"version"`
	MaxMsgTimeout       int64  `json:"max_msg_timeout"` // milliseconds
	MsgTimeout          int64  `json:"msg_timeout"`     // milliseconds
	TLSv1               bool   `json:"tls_v1"`
	Deflate             bool   `json:"deflate"`
	DeflateLevel        int    `json:"deflate_level"`
	MaxDeflateLevel     int    `json:"max_deflate_level"`
	Snappy              bool   `json:"snappy"`
	SampleRate          int32  `json:"sample_rate"`
	AuthRequired        bool   `json:"auth_required"`
	OutputBufferSize    int    `json:"output_buffer_size"`    // bytes
	OutputBufferTimeout int64  `json:"output_buffer_timeout"` // milliseconds
	TopologyRegion      string `json:"topology_region"`
	TopologyZone        string `json:"topology_zone"`
}
