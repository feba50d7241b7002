// Package nsqlookupd is the directory daemon: nsqd nodes announce over TCP what they produce, clients
// ask over HTTP. This package has the two fronts and their start and stop; what is registered is the
// business of package registry, the bytes of the TCP protocol that of internal/lookup.
//
// Source: nsqlookupd spec, sections 2.3, 2.4, 3 and 5.
package nsqlookupd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/lookup"
	"nsq/internal/metrics"
	"nsq/internal/netserver"
	"nsq/internal/version"
	"nsq/nsqlookupd/registry"
)

// stopTimeout bounds a clean stop; a request that has not ended by then is broken off.
const stopTimeout = 4 * time.Second

// NSQLookupd is one directory with its two listeners. Its methods may be called from any goroutine.
type NSQLookupd struct {
	tcp          *netserver.Server
	http         *httpx.Server
	httpListener net.Listener
	log          *log.Logger
	stopTimeout  time.Duration
}

// New opens both listeners. Until Run they accept nothing; a NSQLookupd that is not going to run must
// be closed. The options are read only here.
func New(opts *Options, logger *log.Logger) (*NSQLookupd, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	logger.Infof("%s", version.Line("nsqlookupd"))
	tcpListener, err := listen(opts.TCPAddress)
	if err != nil {
		return nil, err
	}
	httpListener, err := listen(opts.HTTPAddress)
	if err != nil {
		return nil, errors.Join(err, tcpListener.Close())
	}
	self, err := json.Marshal(lookup.PeerInfo{
		BroadcastAddress: opts.BroadcastAddress,
		Hostname:         hostname(logger),
		HTTPPort:         httpListener.Addr().(*net.TCPAddr).Port,
		TCPPort:          tcpListener.Addr().(*net.TCPAddr).Port,
		Version:          version.Version,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("encode peer info: %w", err), tcpListener.Close(), httpListener.Close())
	}
	db := registry.New(opts.InactiveProducerTimeout, opts.TombstoneLifetime)
	front := newTCPFront(db, logger, self, opts.InactiveProducerTimeout)
	i := &instruments{db: db, commands: front.commands, http: metrics.NewListener(httpListener, "http")}
	var tcp *netserver.Server
	i.tcp = metrics.NewGate(tcpListener, 0, func() int { return tcp.Conns() })
	tcp = netserver.New(i.tcp, netserver.Config{
		Protocols: map[string]func(net.Conn){lookup.Magic: front.serve},
		Reject:    lookup.AppendFrame(nil, lookup.ErrBadProtocol.Text),
		Log:       logger,
	})
	router, paths := newRouter(db, i.handler(logger), logger)
	i.requests = newTally(paths...)
	return &NSQLookupd{
		tcp:          tcp,
		http:         httpx.NewServer(i.http, i.requests.counting(router), logger, "HTTP"),
		httpListener: httpListener,
		log:          logger,
		stopTimeout:  stopTimeout,
	}, nil
}

// TCPAddr is the address on which nsqd is served.
func (l *NSQLookupd) TCPAddr() net.Addr { return l.tcp.Addr() }

// HTTPAddr is the address on which HTTP clients are served.
func (l *NSQLookupd) HTTPAddr() net.Addr { return l.http.Addr() }

// Run serves until ctx is cancelled or a listener fails for good, then stops: it returns nil after a
// clean stop, otherwise what went wrong. It is called once.
func (l *NSQLookupd) Run(ctx context.Context) error {
	served := make(chan error, 2)
	for _, serve := range []func() error{l.tcp.Serve, l.http.Serve} {
		go func() { served <- serve() }()
	}
	select {
	case <-ctx.Done():
		return errors.Join(l.Close(), <-served, <-served)
	case err := <-served:
		return errors.Join(err, l.Close(), <-served)
	}
}

// Close stops serving, which takes a few seconds at most, and releases the listeners. It is also what
// ends a NSQLookupd that never ran.
func (l *NSQLookupd) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.stopTimeout)
	defer cancel()
	err := errors.Join(l.tcp.Close(ctx), l.http.Close(ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		l.log.Warnf("not everything ended in time - %s", err)
		err = nil
	}
	// A server that never served does not know its listener.
	if closing := l.httpListener.Close(); closing != nil && !errors.Is(closing, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("close listener: %w", closing))
	}
	return err
}

// listen refuses what is no host:port, for a nsqlookupd has no unix sockets.
func listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("listen (%s) failed - %w", address, err)
	}
	return netserver.Listen(address)
}

func hostname(logger *log.Logger) string {
	name, err := os.Hostname()
	if err != nil {
		logger.Errorf("failed to get host name - %s", err)
	}
	return name
}
