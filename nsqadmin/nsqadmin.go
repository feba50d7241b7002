// Package nsqadmin is the administration daemon: the JSON API and the pages by which people look at a
// cluster and change it. This package has start and stop, the routes and the API; asking daemons is the
// business of internal/cluster, watching them that of monitor, changing them that of action, and the
// pages are those of web.
//
// Source: nsqadmin spec.
package nsqadmin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"nsq/internal/cluster"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/netserver"
	"nsq/internal/run"
	"nsq/internal/version"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/graphite"
	"nsq/nsqadmin/monitor"
	"nsq/nsqadmin/web"
)

const (
	// stopTimeout bounds a clean stop; a request that has not ended by then is broken off.
	stopTimeout = 4 * time.Second
	// pollTimeouts bounds a collection, in request timeouts: so many daemons after each other may be
	// silent in the same slot.
	pollTimeouts = 6
)

// NSQAdmin is one daemon with its listener. Its methods may be called from any goroutine.
type NSQAdmin struct {
	options  *Options
	log      *log.Logger
	settings *settings
	acl      acl
	client   *httpx.Client
	proxy    *http.Transport // to Graphite; nil without a proxy

	cluster  *cluster.Cluster // for requests
	monitor  *monitor.Monitor
	notifier *action.Notifier // nil: nobody is notified
	actor    *action.Actor

	listener net.Listener
	server   *httpx.Server
	stopping chan struct{} // closed when the stop begins
	stopOnce sync.Once
}

// New opens the listener. Until Run it accepts nothing; a NSQAdmin that is not going to run must be
// closed.
func New(opts *Options, logger *log.Logger) (*NSQAdmin, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	secure, err := opts.clientTLS()
	if err != nil {
		return nil, err
	}
	n := &NSQAdmin{
		options:  opts,
		log:      logger,
		settings: newSettings(opts, logger),
		acl:      acl{header: opts.ACLHTTPHeader, users: opts.AdminUsers},
		stopping: make(chan struct{}),
		client: httpx.NewClient(httpx.ClientConfig{
			ConnectTimeout: opts.HTTPClientConnectTimeout,
			RequestTimeout: opts.HTTPClientRequestTimeout,
			TLS:            secure,
			MaxResponse:    cluster.MaxAnswer,
		}),
	}
	if n.listener, err = netserver.Listen(opts.HTTPAddress); err != nil {
		return nil, err
	}
	logger.Infof("%s", version.Line("nsqadmin"))
	n.build()
	handler, err := n.handler()
	if err != nil {
		return nil, errors.Join(err, n.listener.Close())
	}
	n.server = httpx.NewServer(n.listener, handler, logger, "HTTP")
	return n, nil
}

// build makes the parts that know the cluster. Requests and the monitor do not share slots: neither
// waits for the other's silent daemons.
func (n *NSQAdmin) build() {
	n.cluster = n.newCluster(log.Info)
	n.monitor = monitor.New(monitor.Config{
		Cluster:  n.newCluster(log.Debug),
		Interval: n.options.PollInterval,
		Window:   n.options.HistoryWindow,
		Timeout:  pollTimeouts * n.options.HTTPClientRequestTimeout,
		Log:      n.log,
	})
	if n.options.NotificationHTTPEndpoint != "" {
		n.notifier = action.NewNotifier(action.NotifierConfig{
			Endpoint:       n.options.NotificationHTTPEndpoint,
			ConnectTimeout: n.options.HTTPClientConnectTimeout,
			RequestTimeout: n.options.HTTPClientRequestTimeout,
			ACLHeader:      n.options.ACLHTTPHeader,
			Via:            hostname(n.log),
			Log:            n.log,
		})
	}
	n.actor = action.New(action.Config{Cluster: n.cluster, Notifier: n.notifier, Acted: n.monitor.Wake, Log: n.log})
}

func (n *NSQAdmin) newCluster(level log.Level) *cluster.Cluster {
	return cluster.New(cluster.Config{
		HTTP:     n.client,
		Lookupds: n.settings.lookupds,
		NSQDs:    n.options.NSQDHTTPAddresses,
		Log:      n.log,
		Level:    level,
	})
}

// graphiteProxy passes requests on to Graphite; nil where browsers go there themselves.
func (n *NSQAdmin) graphiteProxy() (http.Handler, error) {
	if !n.options.ProxyGraphite {
		return nil, nil
	}
	base, err := url.Parse(n.options.GraphiteURL)
	if err != nil {
		return nil, fmt.Errorf("failed to parse --graphite-url (%s) - %w", redacted(n.options.GraphiteURL), err)
	}
	dialer := &net.Dialer{Timeout: n.options.HTTPClientConnectTimeout}
	n.proxy = &http.Transport{
		DialContext:           dialer.DialContext,
		ResponseHeaderTimeout: n.options.HTTPClientRequestTimeout,
		IdleConnTimeout:       time.Minute,
	}
	return graphite.NewProxy(base, n.proxy, n.log), nil
}

// pages are the pages; their paths are those of mountPages.
func (n *NSQAdmin) pages() http.Handler {
	return web.New(web.Config{
		BasePath:  n.options.basePath(),
		Snapshot:  n.monitor.Snapshot,
		Changed:   n.monitor.Changed,
		Refresh:   n.monitor.Refresh,
		History:   n.monitor.History(),
		Do:        n.actor.Do,
		Admin:     n.acl.admin,
		Graphite:  n.graphite(),
		StaticDir: n.options.DevStaticDir,
		Stopping:  n.stopping,
		Log:       n.log,
	})
}

// graphite are the settings as the pages need them.
func (n *NSQAdmin) graphite() graphite.Settings {
	o := n.options
	if o.GraphiteURL == "" {
		return graphite.Settings{}
	}
	s := graphite.Settings{
		Proxied:       o.ProxyGraphite,
		CounterFormat: o.StatsdCounterFormat,
		GaugeFormat:   o.StatsdGaugeFormat,
		Prefix:        o.StatsdPrefix,
		Interval:      o.StatsdInterval,
	}
	if !s.Proxied {
		s.URL = o.GraphiteURL
	}
	return s
}

// HTTPAddr is the address on which nsqadmin is served.
func (n *NSQAdmin) HTTPAddr() net.Addr { return n.listener.Addr() }

// Run serves until ctx is cancelled or the listener fails for good, then stops: it returns nil after
// a clean stop, otherwise what went wrong. It is called once.
func (n *NSQAdmin) Run(ctx context.Context) error {
	parts := run.NewGroup(ctx)
	parts.Go(n.monitor.Run)
	if n.notifier != nil {
		parts.Go(n.notifier.Run)
	}
	parts.Go(n.serve)
	return parts.Wait()
}

// serve is the last part to start and the first to stop.
func (n *NSQAdmin) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- n.server.Serve() }()
	select {
	case <-ctx.Done():
		return errors.Join(n.Close(), <-served)
	case err := <-served:
		return errors.Join(err, n.Close())
	}
}

// Close stops serving, which takes a few seconds at most, and releases the listener. It is also what
// ends a NSQAdmin that never ran.
func (n *NSQAdmin) Close() error {
	n.stopOnce.Do(func() { close(n.stopping) })
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := n.server.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		n.log.Warnf("not everything ended in time - %s", err)
		err = nil
	}
	n.client.Close()
	if n.proxy != nil {
		n.proxy.CloseIdleConnections()
	}
	return err
}

func hostname(logger *log.Logger) string {
	name, err := os.Hostname()
	if err != nil {
		logger.Errorf("failed to get host name - %s", err)
	}
	return name
}
