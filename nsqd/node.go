package nsqd

import (
	"errors"
	"fmt"
	"os"

	"nsq/internal/api"
	"nsq/internal/options"
	"nsq/internal/statsd"
	"nsq/internal/version"
	"nsq/nsqd/httpd"
)

// Keys of options that are more than their configured value.
const (
	keyLogLevel          = "log_level"
	keyLookupdAddresses  = "nsqlookupd_tcp_addresses"
	keyBroadcastTCPPort  = "broadcast_tcp_port"
	keyBroadcastHTTPPort = "broadcast_http_port"
	keyStatsdPrefix      = "statsd_prefix"
	keyTLSRequired       = "tls_required"
)

func (n *NSQD) httpConfig() httpd.Config {
	return httpd.Config{
		Broker:        n.broker,
		Logger:        n.logger,
		Clients:       n.sessions.Clients,
		Info:          n.info,
		Metrics:       httpd.NewMetrics(n.metricsConfig()),
		ConfigGet:     n.setting,
		ConfigPut:     n.changeSetting,
		MaxMsgSize:    n.options.MaxMsgSize,
		MaxBodySize:   n.options.MaxBodySize,
		MaxReqTimeout: n.options.MaxReqTimeout,
		StartTime:     n.started,
		TLSRequired:   n.tlsRequirement() == options.TLSRequiredEverywhere,
		HTTPSPort:     n.httpsPort,
	}
}

// httpsPort is where HTTPS is served, 0 where it is not.
func (n *NSQD) httpsPort() int {
	if n.httpsListener == nil {
		return 0
	}
	return port(n.httpsListener.Addr())
}

// info is what /info tells.
func (n *NSQD) info() (api.Info, error) {
	host, err := os.Hostname()
	if err != nil {
		return api.Info{}, err
	}
	o := n.options
	info := api.Info{
		Version:                version.Version,
		BroadcastAddress:       o.BroadcastAddress,
		Hostname:               host,
		TCPPort:                port(n.tcpListener.Addr()),
		StartTime:              n.started.Unix(),
		MaxHeartbeatInterval:   int64(o.MaxHeartbeatInterval),
		MaxOutputBufferSize:    o.MaxOutputBufferSize,
		MaxOutputBufferTimeout: int64(o.MaxOutputBufferTimeout),
		MaxDeflateLevel:        o.MaxDeflateLevel,
		TopologyZone:           o.TopologyZone,
		TopologyRegion:         o.TopologyRegion,
	}
	if n.httpListener != nil {
		info.HTTPPort = port(n.httpListener.Addr())
	}
	return info, nil
}

// setting is the value of an option as /config shows it: what is in effect where that is more than what
// was configured.
func (n *NSQD) setting(key string) (any, bool) {
	n.settings.RLock()
	defer n.settings.RUnlock()
	switch key {
	case keyBroadcastTCPPort:
		return n.announcedPort(n.options.BroadcastTCPPort, n.tcpListener), true
	case keyBroadcastHTTPPort:
		return n.announcedPort(n.options.BroadcastHTTPPort, n.httpListener), true
	case keyStatsdPrefix:
		return n.statsdPrefix(), true
	case keyTLSRequired:
		return int(n.tlsRequirement()), true
	}
	return n.table.Get(key)
}

// statsdPrefix is the prefix in effect: with the host key, and ending with a dot if there is any.
func (n *NSQD) statsdPrefix() string {
	httpPort := n.announcedPort(n.options.BroadcastHTTPPort, n.httpListener)
	return statsd.Prefix(n.options.StatsdPrefix, statsd.HostKey(n.options.BroadcastAddress, httpPort))
}

// changeSetting gives an option a new value, which takes effect at once and is not kept.
func (n *NSQD) changeSetting(key string, body []byte) (any, error) {
	n.settings.Lock()
	err := n.table.Set(key, body)
	if err == nil {
		n.apply(key)
	}
	n.settings.Unlock()
	switch {
	case errors.Is(err, options.ErrBadValue):
		return nil, fmt.Errorf("%w: %w", httpd.ErrBadValue, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", httpd.ErrNotChangeable, err)
	}
	value, _ := n.setting(key)
	return value, nil
}

// apply makes a changed option take effect.
func (n *NSQD) apply(key string) {
	switch key {
	case keyLogLevel:
		n.logger.SetLevel(n.options.LogLevel)
	case keyLookupdAddresses:
		n.announcer.SetAddresses(n.options.NSQLookupdTCPAddresses)
	}
}
