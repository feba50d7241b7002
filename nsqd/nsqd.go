// Package nsqd is the message daemon: it wires the broker to its fronts, TCP and HTTP, to its store
// and to the nsqlookupds, and starts and stops them in order.
//
// Source: nsqd-config spec, sections 8 to 10.
package nsqd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"nsq/internal/auth"
	"nsq/internal/diskq"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/metrics/histogram"
	"nsq/internal/netserver"
	"nsq/internal/options"
	"nsq/internal/protocol"
	"nsq/internal/quantile"
	"nsq/internal/run"
	"nsq/internal/statefile"
	"nsq/internal/tlsconf"
	"nsq/internal/version"
	"nsq/nsqd/announce"
	"nsq/nsqd/broker"
	"nsq/nsqd/httpd"
	"nsq/nsqd/session"
)

// stopTimeout is how long the end of connections and requests is waited for.
const stopTimeout = 5 * time.Second

// NSQD is a message daemon. It is made by New and lives in Run.
type NSQD struct {
	options *Options
	table   *options.Table
	logger  *log.Logger
	started time.Time

	health     broker.Health
	disk       *diskq.Meter
	deliveries *histogram.Durations

	settings sync.RWMutex // guards those options that /config can change

	folder        *statefile.Lock
	tls           *tlsconf.Server // nil without a certificate
	clientTLS     *tlsconf.Client
	auth          *auth.Client // nil where clients need no AUTH
	latency       *quantile.Plan
	tcpListener   net.Listener
	httpListener  net.Listener // nil without one
	httpsListener net.Listener // nil without one

	// Made at the beginning of Run.
	broker    *broker.Broker
	sessions  *session.Server
	client    *httpx.Client
	announcer *announce.Announcer
	doors     doors
}

// New takes the data folder and the listeners. Nothing is read or served before Run; whoever does
// not run the daemon has to call Close.
func New(opts *Options, logger *log.Logger) (*NSQD, error) {
	n := &NSQD{
		options: opts, table: opts.Table(), logger: logger, started: time.Now(),
		disk: diskq.NewMeter(), deliveries: broker.NewDeliveryLatency(),
	}
	if err := n.take(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *NSQD) take() (err error) {
	if n.folder, err = statefile.LockDir(n.options.DataPath); err != nil {
		return fmt.Errorf("failed to lock data-path: %w", err)
	}
	if err := n.options.Validate(); err != nil {
		return err
	}
	if err := n.takeCertificates(); err != nil {
		return err
	}
	if len(n.options.AuthHTTPAddresses) > 0 {
		if n.auth, err = auth.NewClient(n.authConfig()); err != nil {
			return err
		}
	}
	if n.latency, err = quantile.NewPlan(n.options.E2EProcessingLatencyPercentiles, n.options.E2EProcessingLatencyWindowTime); err != nil {
		return err
	}
	n.logger.Infof("%s", version.Line("nsqd"))
	n.logger.Infof("ID: %d", n.options.NodeID)
	for _, warning := range n.options.Warnings() {
		n.logger.Warnf("%s", warning)
	}
	if n.tcpListener, err = netserver.Listen(n.options.TCPAddress); err != nil {
		return err
	}
	if n.options.HTTPAddress != "" {
		if n.httpListener, err = netserver.Listen(n.options.HTTPAddress); err != nil {
			return err
		}
	}
	if n.options.HTTPSAddress != "" && n.tls != nil {
		n.httpsListener, err = netserver.Listen(n.options.HTTPSAddress)
	}
	return err
}

// Close lets go of what New took, for a daemon that is not run.
func (n *NSQD) Close() error {
	failed := n.closeListeners()
	if n.auth != nil {
		n.auth.Close()
	}
	if n.folder != nil {
		failed = errors.Join(failed, n.folder.Unlock())
	}
	return failed
}

func (n *NSQD) closeListeners() (failed error) {
	for _, listener := range []net.Listener{n.tcpListener, n.httpListener, n.httpsListener} {
		if listener != nil {
			failed = errors.Join(failed, listener.Close())
		}
	}
	return failed
}

// TCPAddr is where clients of the TCP protocol are served.
func (n *NSQD) TCPAddr() net.Addr { return n.tcpListener.Addr() }

// HTTPAddr is where HTTP is served, nil if it is not.
func (n *NSQD) HTTPAddr() net.Addr {
	if n.httpListener == nil {
		return nil
	}
	return n.httpListener.Addr()
}

// Run brings back what the data folder holds and serves until ctx is cancelled. Then it stops: no
// connection is accepted any more, those that are open are closed, requests end, and everything that
// memory holds goes to disk. An error says what could not be brought back, served or stored.
func (n *NSQD) Run(ctx context.Context) error {
	defer holdHeapFloor()()
	defer func() {
		if err := n.folder.Unlock(); err != nil {
			n.logger.Errorf("failed to unlock data-path - %s", err)
		}
		n.logger.Infof("NSQ: bye")
	}()
	n.client = httpx.NewClient(n.clientConfig())
	defer n.client.Close()
	if n.auth != nil {
		defer n.auth.Close()
	}
	n.announcer = announce.New(n.announceConfig())
	var err error
	if n.broker, err = broker.New(n.brokerConfig()); err != nil {
		return errors.Join(err, n.closeListeners())
	}
	n.sessions = session.NewServer(n.sessionConfig(ctx))
	tcp := n.countConnections()
	front := httpd.New(n.httpConfig())

	parts := run.NewGroup(ctx) // they stop in the opposite order
	parts.Go(n.announcer.Run)
	parts.Go(n.closeBroker)
	if n.options.StatsdAddress != "" {
		parts.Go(n.pushStats(front.Stats))
	}
	if n.httpsListener != nil {
		parts.Go(n.serve(httpx.NewTLSServer(n.doors.https, n.tlsConfig(), front.Handler(), n.logger, "HTTPS")))
	}
	if n.httpListener != nil {
		parts.Go(n.serve(httpx.NewServer(n.doors.http, front.Handler(), n.logger, "HTTP")))
	}
	parts.Go(n.serve(tcp))
	parts.Go(n.quiesce)
	return parts.Wait()
}

// quiesce is the part that ends deliveries when its turn to stop comes.
func (n *NSQD) quiesce(ctx context.Context) error {
	<-ctx.Done()
	n.broker.Quiesce()
	return nil
}

// Reload reads the certificates again. What cannot be read is logged, and what was there before
// stays in use.
func (n *NSQD) Reload() {
	err := n.clientTLS.Reload()
	if n.tls != nil {
		err = errors.Join(n.tls.Reload(), err)
	}
	if err != nil {
		n.logger.Errorf("failed to reload certificates - %s", err)
		return
	}
	n.logger.Infof("certificates reloaded")
}

// closeBroker is the part that closes the broker when its turn to stop comes.
func (n *NSQD) closeBroker(ctx context.Context) error {
	<-ctx.Done()
	return n.broker.Close()
}

// server is what TCP and HTTP servers have in common.
type server interface {
	Serve() error
	Close(ctx context.Context) error
}

// serve makes a part of a server: it is closed when its turn to stop comes, in the end by force.
func (n *NSQD) serve(s server) func(context.Context) error {
	return func(ctx context.Context) error {
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
		}
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		go func() {
			select {
			case <-run.Hurry(ctx):
				cancel()
			case <-patience.Done():
			}
		}()
		err := s.Close(patience)
		if err != nil && patience.Err() != nil {
			n.logger.Warnf("peers did not let go in time - %s", err)
			err = nil
		}
		return errors.Join(err, <-served)
	}
}

func (n *NSQD) sessionConfig(ctx context.Context) session.Config {
	return session.Config{
		Context:     ctx,
		Broker:      n.broker,
		Limits:      n.limits(),
		TLS:         n.tlsConfig(),
		TLSRequired: n.tlsRequirement() != options.TLSNotRequired,
		Auth:        n.auth,
		Logger:      n.logger,
	}
}

func (n *NSQD) tcpConfig() netserver.Config {
	return netserver.Config{
		Protocols: map[string]func(net.Conn){protocol.Magic: n.sessions.Serve},
		Reject:    protocol.AppendFrame(nil, protocol.FrameError, protocol.FaultBadProtocol.With().Error()),
		MaxConns:  n.options.MaxConnections,
		Log:       n.logger,
	}
}
