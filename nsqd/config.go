package nsqd

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"time"

	"nsq/internal/api"
	"nsq/internal/auth"
	"nsq/internal/diskq"
	"nsq/internal/httpx"
	"nsq/internal/lookup"
	"nsq/internal/options"
	"nsq/internal/protocol"
	"nsq/internal/statsd"
	"nsq/internal/tlsconf"
	"nsq/internal/version"
	"nsq/nsqd/announce"
	"nsq/nsqd/broker"
	"nsq/nsqd/session"
)

// knownChannelsWait is how long the creator of a topic waits for the channels that it has elsewhere.
const knownChannelsWait = time.Second

func (n *NSQD) dataPath() string {
	if n.options.DataPath == "" {
		return "."
	}
	return n.options.DataPath
}

// store is where the broker keeps what memory does not hold.
func (n *NSQD) store() *broker.ClassicStore {
	return &broker.ClassicStore{
		Path: n.dataPath(),
		Queues: diskq.Config{
			Path:            n.dataPath(),
			MaxBytesPerFile: n.options.MaxBytesPerFile,
			MinRecord:       protocol.MessageHeaderSize,
			MaxRecord:       int32(n.options.MaxMsgSize) + protocol.MessageHeaderSize,
			SyncEvery:       n.options.SyncEvery,
			SyncTimeout:     n.options.SyncTimeout,
			Logger:          n.logger,
			Health:          n.health.Set,
			Meter:           n.disk,
		},
	}
}

func (n *NSQD) brokerConfig() broker.Config {
	o := n.options
	return broker.Config{
		MemQueueSize:            int(o.MemQueueSize),
		NodeID:                  o.NodeID,
		MaxMsgTimeout:           o.MaxMsgTimeout,
		MaxChannelConsumers:     o.MaxChannelConsumers,
		QueueScanSelectionCount: o.QueueScanSelectionCount,
		QueueScanWorkerPoolMax:  o.QueueScanWorkerPoolMax,
		Store:                   n.store(),
		Health:                  &n.health,
		KnownChannels:           n.knownChannels,
		KnownChannelsWait:       knownChannelsWait,
		Changed:                 n.announcer.Changed,
		Latency:                 n.latency,
		DeliveryLatency:         n.deliveries,
		Logger:                  n.logger,
	}
}

// knownChannels asks the nsqlookupds; what could not be learned has been logged.
func (n *NSQD) knownChannels(ctx context.Context, topic string) []string {
	channels, _ := n.announcer.KnownChannels(ctx, topic)
	return channels
}

// offersTLS says whether there is a certificate, or half of one, which is an error.
func (n *NSQD) offersTLS() bool { return n.options.TLSCert != "" || n.options.TLSKey != "" }

// tlsRequirement is from whom TLS is required. To ask clients for certificates requires it.
func (n *NSQD) tlsRequirement() options.TLSRequirement {
	if n.options.TLSClientAuthPolicy != "" && n.options.TLSRequired == options.TLSNotRequired {
		return options.TLSRequiredEverywhere
	}
	return n.options.TLSRequired
}

// takeCertificates reads the files of TLS, for our listeners and for the servers that we ask.
func (n *NSQD) takeCertificates() (err error) {
	o := n.options
	if n.offersTLS() {
		n.tls, err = tlsconf.NewServer(tlsconf.ServerConfig{
			CertFile:         o.TLSCert,
			KeyFile:          o.TLSKey,
			RootCAFile:       o.TLSRootCAFile,
			ClientAuthPolicy: o.TLSClientAuthPolicy,
			MinVersion:       uint16(o.TLSMinVersion),
			Logger:           n.logger,
		})
		if err != nil {
			return err
		}
	}
	n.clientTLS, err = tlsconf.NewClient(tlsconf.ClientConfig{
		RootCAFile: o.TLSRootCAFile,
		MinVersion: uint16(o.TLSMinVersion),
		Logger:     n.logger,
	})
	return err
}

// tlsConfig is for our listeners, nil without a certificate.
func (n *NSQD) tlsConfig() *tls.Config {
	if n.tls == nil {
		return nil
	}
	return n.tls.Config()
}

func (n *NSQD) authConfig() auth.Config {
	return auth.Config{
		Addresses:      n.options.AuthHTTPAddresses,
		Method:         n.options.AuthHTTPRequestMethod,
		ConnectTimeout: n.options.HTTPClientConnectTimeout,
		RequestTimeout: n.options.HTTPClientRequestTimeout,
		TLS:            n.clientTLS.Config,
		Logger:         n.logger,
	}
}

func (n *NSQD) statsdConfig() statsd.Config {
	return statsd.Config{
		Address:          n.options.StatsdAddress,
		Prefix:           n.statsdPrefix(),
		Interval:         n.options.StatsdInterval,
		PacketSize:       n.options.StatsdUDPPacketSize,
		ExcludeEphemeral: n.options.StatsdExcludeEphemeral,
	}
}

// pushStats is the part that pushes to statsd.
func (n *NSQD) pushStats(snapshot func(memory bool) api.Stats) func(context.Context) error {
	return func(ctx context.Context) error {
		statsd.Loop(ctx, n.statsdConfig(), func() api.Stats { return snapshot(n.options.StatsdMemStats) }, n.logger)
		return nil
	}
}

func (n *NSQD) clientConfig() httpx.ClientConfig {
	return httpx.ClientConfig{
		TLS:            n.clientTLS.Config(),
		ConnectTimeout: n.options.HTTPClientConnectTimeout,
		RequestTimeout: n.options.HTTPClientRequestTimeout,
		MaxResponse:    n.options.MaxBodySize,
	}
}

func (n *NSQD) announceConfig() announce.Config {
	return announce.Config{
		Addresses: n.options.NSQLookupdTCPAddresses,
		Self: lookup.Identity{
			BroadcastAddress: n.options.BroadcastAddress,
			Hostname:         hostname(),
			HTTPPort:         n.announcedPort(n.options.BroadcastHTTPPort, n.httpListener),
			TCPPort:          n.announcedPort(n.options.BroadcastTCPPort, n.tcpListener),
			TopologyRegion:   n.options.TopologyRegion,
			TopologyZone:     n.options.TopologyZone,
			Version:          version.Version,
		},
		Source:    n.registrations,
		Log:       n.logger,
		HTTP:      n.client,
		MaxAnswer: int(n.options.MaxBodySize),
	}
}

// hostname is the name of this host, empty where the system does not tell it.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// announcedPort is the port that others are told: the configured one or, if that is 0, the one of
// the listener, 0 on a unix socket or without one.
func (n *NSQD) announcedPort(configured int, listener net.Listener) int {
	if configured != 0 || listener == nil {
		return configured
	}
	return max(port(listener.Addr()), 0)
}

// port is the port of an address, -1 for that of a unix socket.
func port(address net.Addr) int {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return -1
}

// registrations are all topics and channels there are.
func (n *NSQD) registrations() []lookup.Registration {
	var all []lookup.Registration
	for _, t := range n.broker.Topics() {
		all = append(all, lookup.Registration{Topic: t.Name(), Generation: t.Generation()})
		for _, c := range t.Channels() {
			all = append(all, lookup.Registration{Topic: t.Name(), Channel: c.Name(), Generation: c.Generation()})
		}
	}
	return all
}

func (n *NSQD) limits() session.Limits {
	o := n.options
	return session.Limits{
		MaxMsgSize:             o.MaxMsgSize,
		MaxBodySize:            o.MaxBodySize,
		MaxRdyCount:            o.MaxRdyCount,
		MsgTimeout:             o.MsgTimeout,
		MaxMsgTimeout:          o.MaxMsgTimeout,
		MaxReqTimeout:          o.MaxReqTimeout,
		MaxHeartbeatInterval:   o.MaxHeartbeatInterval,
		MaxOutputBufferSize:    o.MaxOutputBufferSize,
		OutputBufferTimeout:    o.OutputBufferTimeout,
		MinOutputBufferTimeout: o.MinOutputBufferTimeout,
		MaxOutputBufferTimeout: o.MaxOutputBufferTimeout,
		MaxChannelConsumers:    o.MaxChannelConsumers,
		Snappy:                 o.SnappyEnabled,
		Deflate:                o.DeflateEnabled,
		MaxDeflateLevel:        o.MaxDeflateLevel,
		TopologyRegion:         o.TopologyRegion,
		TopologyZone:           o.TopologyZone,
		TopologyAware:          slices.Contains(o.Experiments, ExperimentTopologyAware),
	}
}
