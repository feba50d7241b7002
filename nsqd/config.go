package nsqd

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/httpx"
	"nsq/internal/lookup"
	"nsq/internal/protocol"
	"nsq/internal/version"
	"nsq/nsqd/announce"
	"nsq/nsqd/broker"
	"nsq/nsqd/session"
)

// knownChannelsWait is how long the creator of a topic waits for the channels that it has elsewhere.
const knownChannelsWait = time.Second

// unavailable refuses settings on which people rely for their safety and which have no effect yet.
func unavailable(o *Options) error {
	switch {
	case len(o.AuthHTTPAddresses) > 0:
		return errors.New("--auth-http-address: authorisation is not available in this build, remove the option to start without it")
	case o.TLSCert != "" || o.TLSKey != "":
		return errors.New("--tls-cert, --tls-key: TLS is not available in this build, remove the options to start without it")
	}
	return nil
}

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
		Logger:                  n.logger,
	}
}

// knownChannels asks the nsqlookupds; what could not be learned has been logged.
func (n *NSQD) knownChannels(ctx context.Context, topic string) []string {
	channels, _ := n.announcer.KnownChannels(ctx, topic)
	return channels
}

func (n *NSQD) clientConfig() httpx.ClientConfig {
	return httpx.ClientConfig{
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
	}
}
