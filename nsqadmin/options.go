package nsqadmin

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"time"

	"nsq/internal/log"
	"nsq/internal/options"
)

// Options are the settings of a nsqadmin: plain data. NewOptions gives the defaults; the flags, keys
// and ranges are in Table.
//
// Source: nsqadmin spec, section 2.
type Options struct {
	options.Logging

	HTTPAddress  string // listener: host:port or path of a unix socket
	BasePath     string // under which everything is served
	DevStaticDir string // folder from which assets are read at each request; empty: the embedded ones

	NSQLookupdHTTPAddresses []string      // nsqlookupds, host:port
	NSQDHTTPAddresses       []string      // nsqds, host:port, where there are no nsqlookupds
	PollInterval            time.Duration // between two looks at the cluster
	HistoryWindow           time.Duration // how far back the history goes

	HTTPClientConnectTimeout        time.Duration // 0: none
	HTTPClientRequestTimeout        time.Duration // total of one request; 0: none
	HTTPClientTLSInsecureSkipVerify bool          // accept any certificate of a nsqd
	HTTPClientTLSRootCAFile         string        // PEM certificates that sign those of nsqds; empty: the system's
	HTTPClientTLSCert               string        // PEM certificate to present; empty: none
	HTTPClientTLSKey                string        // its key

	GraphiteURL         string        // empty: there is none
	ProxyGraphite       bool          // browsers reach Graphite through nsqadmin
	StatsdPrefix        string        // that of the nsqds
	StatsdCounterFormat string        // of keys, with %s
	StatsdGaugeFormat   string        // of keys, with %s
	StatsdInterval      time.Duration // that of the nsqds

	AllowConfigFromCIDR      string   // who may use /config; empty: everybody
	NotificationHTTPEndpoint string   // URL that is told of actions; empty: none
	ACLHTTPHeader            string   // header that names the user
	AdminUsers               []string // users that may do actions; none: everybody may
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Logging:                  options.DefaultLogging(log.Info, "[nsqadmin] "),
		HTTPAddress:              "0.0.0.0:4171",
		BasePath:                 "/",
		NSQLookupdHTTPAddresses:  []string{},
		NSQDHTTPAddresses:        []string{},
		PollInterval:             5 * time.Second,
		HistoryWindow:            time.Hour,
		HTTPClientConnectTimeout: 2 * time.Second,
		HTTPClientRequestTimeout: 5 * time.Second,
		StatsdPrefix:             "nsq.%s",
		StatsdCounterFormat:      "stats.counters.%s.count",
		StatsdGaugeFormat:        "stats.gauges.%s",
		StatsdInterval:           time.Minute,
		AllowConfigFromCIDR:      "127.0.0.1/8",
		ACLHTTPHeader:            "X-Forwarded-User",
		AdminUsers:               []string{},
	}
}

// The keys that can be changed at runtime.
const (
	keyLogLevel = "log_level"
	keyLookupds = "nsqlookupd_http_addresses"
)

// Table describes the options: flags, keys of the file, ranges. Its rows point into o.
func (o *Options) Table() *options.Table {
	return options.New("nsqadmin",
		options.Group{Title: "Log", Options: o.Logging.Rows()},
		options.Group{Title: "Server", Options: []options.Option{
			{Flag: "http-address", Value: options.String(&o.HTTPAddress), Argument: "address",
				Help: "where pages and API are served: host:port, or the path of a unix socket"},
			{Flag: "base-path", Value: options.String(&o.BasePath), Argument: "path",
				Help: "path under which everything is served"},
			{Flag: "dev-static-dir", Value: options.String(&o.DevStaticDir), Argument: "folder",
				Help: "folder from which the pages' assets are read at each request, for development"},
		}},
		options.Group{Title: "Cluster", Options: o.clusterRows()},
		options.Group{Title: "Graphite", Options: o.graphiteRows()},
		options.Group{Title: "Access", Options: []options.Option{
			{Flag: "acl-http-header", Value: options.String(&o.ACLHTTPHeader), Argument: "name",
				Help: "header in which a trusted proxy names the user"},
			{Flag: "admin-user", Key: "admin_users", Value: options.Strings(&o.AdminUsers), Argument: "name",
				Help: "user that may create, delete, empty, pause and tombstone; without any everybody may"},
			{Flag: "allow-config-from-cidr", Value: options.String(&o.AllowConfigFromCIDR), Argument: "CIDR",
				Help: "addresses from which /config may be used; empty for all"},
			{Flag: "notification-http-endpoint", Value: options.String(&o.NotificationHTTPEndpoint), Argument: "URL",
				Help: "where each action of an admin is POSTed to"},
		}},
	)
}

func (o *Options) clusterRows() []options.Option {
	return []options.Option{
		{Flag: "lookupd-http-address", Key: keyLookupds, Value: options.Strings(&o.NSQLookupdHTTPAddresses), Argument: "host:port",
			Changeable: true, Help: "HTTP address of a nsqlookupd"},
		{Flag: "nsqd-http-address", Key: "nsqd_http_addresses", Value: options.Strings(&o.NSQDHTTPAddresses), Argument: "host:port",
			Help: "HTTP address of a nsqd, where there is no nsqlookupd"},
		{Flag: "poll-interval", Value: options.Duration(&o.PollInterval, 100*time.Millisecond),
			Help: "time between two looks at the cluster, for pages and history"},
		{Flag: "history-window", Value: options.Duration(&o.HistoryWindow, time.Minute),
			Help: "how far back the charts of the pages go"},
		{Flag: "http-client-connect-timeout", Value: options.Duration(&o.HTTPClientConnectTimeout, 0),
			Help: "time to connect to a daemon"},
		{Flag: "http-client-request-timeout", Value: options.Duration(&o.HTTPClientRequestTimeout, 0),
			Help: "time for one request to a daemon"},
		{Flag: "http-client-tls-insecure-skip-verify", Value: options.Bool(&o.HTTPClientTLSInsecureSkipVerify),
			Help: "accept any certificate of a daemon"},
		{Flag: "http-client-tls-root-ca-file", Value: options.String(&o.HTTPClientTLSRootCAFile), Argument: "path",
			Help: "PEM certificates of those who sign the daemons' certificates"},
		{Flag: "http-client-tls-cert", Value: options.String(&o.HTTPClientTLSCert), Argument: "path",
			Help: "PEM certificate that daemons are shown"},
		{Flag: "http-client-tls-key", Value: options.String(&o.HTTPClientTLSKey), Argument: "path",
			Help: "PEM key of that certificate"},
	}
}

func (o *Options) graphiteRows() []options.Option {
	return []options.Option{
		{Flag: "graphite-url", Value: options.String(&o.GraphiteURL), Argument: "URL",
			Help: "where Graphite is, for its graphs"},
		{Flag: "proxy-graphite", Value: options.Bool(&o.ProxyGraphite),
			Help: "pass the browsers' requests to Graphite on"},
		{Flag: "statsd-prefix", Value: options.String(&o.StatsdPrefix), Argument: "prefix",
			Help: "prefix of the keys, %s for the host; as with nsqd"},
		{Flag: "statsd-counter-format", Value: options.String(&o.StatsdCounterFormat), Argument: "format",
			Help: "name of a counter in Graphite, %s for the key; empty for the key as it is"},
		{Flag: "statsd-gauge-format", Value: options.String(&o.StatsdGaugeFormat), Argument: "format",
			Help: "name of a gauge in Graphite, %s for the key; empty for the key as it is"},
		{Flag: "statsd-interval", Value: options.Duration(&o.StatsdInterval, time.Second),
			Help: "time between two pushes to statsd; as with nsqd"},
	}
}

// Validate returns the first setting that nsqadmin cannot work with. It reads the files of TLS and
// asks no name server: a daemon whose name cannot be resolved yet is one that does not answer.
func (o *Options) Validate() error {
	if err := o.Table().Validate(); err != nil {
		return err
	}
	switch lookupds, nsqds := len(o.NSQLookupdHTTPAddresses), len(o.NSQDHTTPAddresses); {
	case lookupds == 0 && nsqds == 0:
		return errors.New("--nsqd-http-address or --lookupd-http-address required")
	case lookupds > 0 && nsqds > 0:
		return errors.New("use --nsqd-http-address or --lookupd-http-address not both")
	}
	if strings.ContainsAny(o.BasePath, ":*") {
		return fmt.Errorf("--base-path must not contain ':' or '*', is %s", o.BasePath)
	}
	if _, err := o.clientTLS(); err != nil {
		return err
	}
	if err := checkAddresses("--lookupd-http-address", o.NSQLookupdHTTPAddresses); err != nil {
		return err
	}
	if err := checkAddresses("--nsqd-http-address", o.NSQDHTTPAddresses); err != nil {
		return err
	}
	if err := o.checkGraphite(); err != nil {
		return err
	}
	if o.NotificationHTTPEndpoint != "" {
		if err := checkURL(o.NotificationHTTPEndpoint); err != nil {
			return fmt.Errorf("failed to parse --notification-http-endpoint (%s) - %w", redacted(o.NotificationHTTPEndpoint), err)
		}
	}
	_, err := o.allowedNet()
	return err
}

// checkAddresses wants host:port.
func checkAddresses(flag string, addresses []string) error {
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("failed to resolve %s (%s) - %w", flag, address, err)
		}
	}
	return nil
}

// checkGraphite wants an absolute URL only where nsqadmin itself is the one to go there: browsers find
// a relative one.
func (o *Options) checkGraphite() error {
	if !o.ProxyGraphite {
		return nil
	}
	if o.GraphiteURL == "" {
		return errors.New("--graphite-url must be specified with --proxy-graphite")
	}
	if err := checkURL(o.GraphiteURL); err != nil {
		return fmt.Errorf("failed to parse --graphite-url (%s) - %w", redacted(o.GraphiteURL), err)
	}
	return nil
}

// checkURL wants an absolute URL of a web server.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		var told *url.Error // its text has the URL, perhaps with a password
		if errors.As(err, &told) {
			err = told.Err
		}
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("want http:// or https:// and a host")
	}
	return nil
}

// redacted is a URL without its password; one that cannot be parsed is not shown.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "unreadable"
	}
	return u.Redacted()
}

// allowedNet is who may use /config; nil: everybody.
func (o *Options) allowedNet() (*net.IPNet, error) {
	if o.AllowConfigFromCIDR == "" {
		return nil, nil
	}
	_, allowed, err := net.ParseCIDR(o.AllowConfigFromCIDR)
	if err != nil {
		return nil, fmt.Errorf("failed to parse --allow-config-from-cidr (%s) - %w", o.AllowConfigFromCIDR, err)
	}
	return allowed, nil
}

// basePath begins with a slash and does not end with one, unless it is nothing else.
func (o *Options) basePath() string { return path.Clean("/" + o.BasePath) }
