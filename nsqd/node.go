package nsqd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"nsq/internal/api"
	"nsq/internal/options"
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
)

func (n *NSQD) httpConfig() httpd.Config {
	return httpd.Config{
		Broker:        n.broker,
		Logger:        n.logger,
		Clients:       n.sessions.Clients,
		Info:          n.info,
		ConfigGet:     n.setting,
		ConfigPut:     n.changeSetting,
		MaxMsgSize:    n.options.MaxMsgSize,
		MaxBodySize:   n.options.MaxBodySize,
		MaxReqTimeout: n.options.MaxReqTimeout,
		StartTime:     n.started,
	}
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
	}
	return n.table.Get(key)
}

// statsdPrefix is the configured prefix with the host key in place of each %s, and ends with a dot
// if there is any.
//
// Source: nsqd-http spec, section 16.
func (n *NSQD) statsdPrefix() string {
	httpPort := n.announcedPort(n.options.BroadcastHTTPPort, n.httpListener)
	host := net.JoinHostPort(n.options.BroadcastAddress, strconv.Itoa(httpPort))
	key := strings.NewReplacer(".", "_", ":", "_").Replace(host)
	prefix := strings.ReplaceAll(n.options.StatsdPrefix, "%s", key)
	if prefix != "" && !strings.HasSuffix(prefix, ".") {
		prefix += "."
	}
	return prefix
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
