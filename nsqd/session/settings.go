package session

import (
	"time"

	"nsq/internal/protocol"
	"nsq/internal/version"
)

// Limits bound what clients may ask for and send. They are those of nsqd's options of the same name.
type Limits struct {
	MaxMsgSize             int64 // bytes
	MaxBodySize            int64 // bytes
	MaxRdyCount            int64
	MsgTimeout             time.Duration
	MaxMsgTimeout          time.Duration
	MaxReqTimeout          time.Duration
	MaxHeartbeatInterval   time.Duration
	MaxOutputBufferSize    int64 // bytes
	OutputBufferTimeout    time.Duration
	MinOutputBufferTimeout time.Duration
	MaxOutputBufferTimeout time.Duration
	MaxChannelConsumers    int
	Snappy, Deflate        bool
	MaxDeflateLevel        int
	TopologyRegion         string
	TopologyZone           string
	TopologyAware          bool // deliver to clients of the same zone and region first
}

const (
	defaultHeartbeat        = 30 * time.Second
	defaultOutputBufferSize = 16 << 10
	// defaultBufferTimeout is the output_buffer_timeout that clients send when they do not care.
	defaultBufferTimeout  = 250 * time.Millisecond
	leastHeartbeat        = 1000 // milliseconds
	leastMsgTimeout       = 1000 // milliseconds
	leastOutputBufferSize = 64   // bytes
	maxSampleRate         = 99   // percent
	defaultDeflateLevel   = 6
	off                   = -1 // in IDENTIFY
)

// settings are what a client has negotiated: an immutable value, made by IDENTIFY.
type settings struct {
	clientID       string
	hostname       string
	userAgent      string
	topologyRegion string
	topologyZone   string

	heartbeat           time.Duration // 0 is none
	outputBufferSize    int           // bytes
	outputBufferTimeout time.Duration
	flushDelay          time.Duration
	msgTimeout          time.Duration
	sampleRate          int32 // percent

	tls          bool
	snappy       bool
	deflate      bool
	deflateLevel int
}

// defaultSettings are in effect without IDENTIFY.
func defaultSettings(limits *Limits, remoteHost string) *settings {
	return &settings{
		clientID:            remoteHost,
		hostname:            remoteHost,
		heartbeat:           defaultHeartbeat,
		outputBufferSize:    defaultOutputBufferSize,
		outputBufferTimeout: max(limits.OutputBufferTimeout, 0),
		msgTimeout:          limits.MsgTimeout,
		deflateLevel:        min(defaultDeflateLevel, limits.MaxDeflateLevel),
	}
}

// negotiate makes settings of a request. tlsAvailable says whether TLS can be granted.
//
// Source: nsqd-tcp spec, section 6.1, in the order of its checks.
func negotiate(request *protocol.Identify, limits *Limits, tlsAvailable bool) (*settings, *protocol.Error) {
	s := defaultSettings(limits, "")
	s.clientID, s.hostname, s.userAgent = request.ClientID, request.Hostname, request.UserAgent
	s.topologyRegion, s.topologyZone = request.TopologyRegion, request.TopologyZone

	switch n := request.HeartbeatInterval; {
	case n == off:
		s.heartbeat = 0
	case n == 0:
	case between(n, leastHeartbeat, milliseconds(limits.MaxHeartbeatInterval)):
		s.heartbeat = time.Duration(n) * time.Millisecond
	default:
		return nil, protocol.FaultHeartbeatInterval.With(n)
	}

	switch n := request.OutputBufferTimeout; {
	case n == off:
		s.outputBufferTimeout = 0
	case n == 0:
	case between(n, milliseconds(limits.MinOutputBufferTimeout), milliseconds(limits.MaxOutputBufferTimeout)):
		s.outputBufferTimeout = time.Duration(n) * time.Millisecond
	default:
		return nil, protocol.FaultOutputBufferTimeout.With(n)
	}

	switch n := request.OutputBufferSize; {
	case n == off:
		s.outputBufferSize, s.outputBufferTimeout = 1, 0
	case n == 0:
	case between(n, leastOutputBufferSize, limits.MaxOutputBufferSize):
		s.outputBufferSize = n
	default:
		return nil, protocol.FaultOutputBufferSize.With(n)
	}

	if request.SampleRate < 0 || request.SampleRate > maxSampleRate {
		return nil, protocol.FaultSampleRate.With(request.SampleRate)
	}
	s.sampleRate = request.SampleRate

	switch n := request.MsgTimeout; {
	case n == 0:
	case between(n, leastMsgTimeout, milliseconds(limits.MaxMsgTimeout)):
		s.msgTimeout = time.Duration(n) * time.Millisecond
	default:
		return nil, protocol.FaultMsgTimeout.With(n)
	}

	if request.FeatureNegotiation {
		s.tls = request.TLSv1 && tlsAvailable
		s.snappy = request.Snappy && limits.Snappy
		s.deflate = request.Deflate && limits.Deflate
	}
	if s.snappy && s.deflate {
		return nil, protocol.FaultTwoCompressions.With()
	}
	if s.deflate && request.DeflateLevel > 0 {
		s.deflateLevel = min(request.DeflateLevel, limits.MaxDeflateLevel)
	}

	// Frames leave as soon as there is nothing more to send. Who explicitly asks for more buffering
	// than everybody does gets it.
	if request.OutputBufferSize > defaultOutputBufferSize || s.outputBufferTimeout > defaultBufferTimeout && request.OutputBufferTimeout > 0 {
		s.flushDelay = s.outputBufferTimeout
	}
	return s, nil
}

func between(n int, low, high int64) bool { return low <= int64(n) && int64(n) <= high }

func milliseconds(d time.Duration) int64 { return d.Milliseconds() }

// bufferLimit is how many bytes of output may wait. Who did not ask for buffering has what is
// under way sent in pieces as large as they come.
func (s *settings) bufferLimit() int {
	if s.flushDelay > 0 {
		return s.outputBufferSize
	}
	return outputBufferSize
}

// response is the answer to an IDENTIFY with feature negotiation.
func (s *settings) response(limits *Limits) *protocol.IdentifyResponse {
	return &protocol.IdentifyResponse{
		MaxRdyCount:         limits.MaxRdyCount,
		Version:             version.Version,
		MaxMsgTimeout:       milliseconds(limits.MaxMsgTimeout),
		MsgTimeout:          milliseconds(s.msgTimeout),
		TLSv1:               s.tls,
		Deflate:             s.deflate,
		DeflateLevel:        s.deflateLevel,
		MaxDeflateLevel:     limits.MaxDeflateLevel,
		Snappy:              s.snappy,
		SampleRate:          s.sampleRate,
		OutputBufferSize:    s.outputBufferSize,
		OutputBufferTimeout: milliseconds(s.outputBufferTimeout),
		TopologyRegion:      limits.TopologyRegion,
		TopologyZone:        limits.TopologyZone,
	}
}
