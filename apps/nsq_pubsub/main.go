// Command nsq_pubsub is the HTTP face of a cluster, for programs that have no NSQ client: GET /sub streams
// the messages of a channel, POST /pub publishes one.
//
// Source: apps spec, sections 1 to 3, for what it has in common with the other utilities.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"nsq/internal/consume"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/netserver"
	"nsq/internal/tlsconf"
	"nsq/internal/touch"
	"nsq/internal/utility"
)

const (
	name = "nsq_pubsub"

	// stopTimeout bounds the stop: requests that have not ended then are cut off.
	stopTimeout = 35 * time.Second
)

const usage = `nsq_pubsub serves a cluster over HTTP:

  GET  /sub?topic=T&channel=C   the messages of a channel, for as long as the connection lasts:
                                a JSON object a line, or server-sent events with format=sse or
                                the header 'Accept: text/event-stream'; window=N has at most N
                                messages in flight
  POST /pub?topic=T             publishes the body; defer=MS delays it
  GET  /ping                    OK

  nsq_pubsub --lookupd-http-address=127.0.0.1:4161 &
  curl -N 'http://127.0.0.1:8080/sub?topic=t&channel=c' &
  curl -d hello 'http://127.0.0.1:8080/pub?topic=t'

A message is finished when it has been written to the connection, and delivered again otherwise.
Whoever reaches the address may read and publish, unless --allow-from-cidr, --allowed-user or
client certificates say otherwise.

Usage of nsq_pubsub:
`

func main() { utility.Main(newPubSub().program()) }

// pubsub is the program with its flags. The second group is made of them by early and check.
type pubsub struct {
	logLevel         string
	logPrefix        string
	address          string
	tls              tlsconf.ServerConfig
	maxConnections   int
	maxSubscriptions int
	maxBody          int64 // bytes
	maxDefer         time.Duration
	heartbeat        time.Duration // of streams
	publishTimeout   time.Duration // for one nsqd
	header           string
	users            utility.List
	nets             utility.List
	consume          *consume.Flags

	level log.Level
	gate  *gate
}

func newPubSub() *pubsub { return &pubsub{consume: consume.NewFlags(name)} }

func (p *pubsub) program() *utility.Program {
	return &utility.Program{Name: name, Flags: p.define, Early: p.early, Check: p.check, Run: p.run}
}

func (p *pubsub) define(set *flag.FlagSet) {
	set.Usage = func() {
		_, _ = io.WriteString(set.Output(), usage) // as PrintDefaults, which has nobody to tell either
		set.PrintDefaults()
	}
	set.StringVar(&p.logLevel, "log-level", "info", "what is logged at least: debug, info, warn, error or fatal")
	set.StringVar(&p.logPrefix, "log-prefix", "["+name+"] ", "what lines of the log begin with")
	set.StringVar(&p.address, "http-address", "127.0.0.1:8080", "where to serve: host:port, or path of a unix socket")
	set.StringVar(&p.tls.CertFile, "tls-cert", "", "PEM certificate to serve HTTPS with")
	set.StringVar(&p.tls.KeyFile, "tls-key", "", "its PEM key")
	set.StringVar(&p.tls.RootCAFile, "tls-root-ca-file", "", "PEM certificates that sign those of clients")
	set.StringVar(&p.tls.ClientAuthPolicy, "tls-client-auth-policy", "", "what clients must present: nothing, a certificate with require, a signed one with require-verify")
	set.IntVar(&p.maxConnections, "max-connections", 1000, "most connections at a time")
	set.IntVar(&p.maxSubscriptions, "max-subscriptions", 500, "most streams at a time")
	set.Int64Var(&p.maxBody, "max-body-size", 1<<20, "most bytes of a message to publish; not more than --max-msg-size of the nsqds")
	set.DurationVar(&p.maxDefer, "max-defer", time.Hour, "longest delay of a message to publish; not more than --max-req-timeout of the nsqds")
	set.DurationVar(&p.heartbeat, "heartbeat-interval", 15*time.Second, "how often a stream without messages shows that it lives")
	set.DurationVar(&p.publishTimeout, "publish-timeout", 5*time.Second, "how long a nsqd may take to confirm a message before the next one is tried")
	set.StringVar(&p.header, "acl-http-header", "X-Forwarded-User", "header in which a trusted proxy names the user")
	set.Var(&p.users, "allowed-user", "user that may read and publish, without any everybody may (may be given multiple times)")
	set.Var(&p.nets, "allow-from-cidr", "addresses that may read and publish, without any all may (may be given multiple times)")
	p.consume.Define(set)
}

func (p *pubsub) early(arguments []string) (err error) {
	if err := utility.NoArguments(arguments); err != nil {
		return err
	}
	if p.level, err = log.ParseLevel(p.logLevel); err != nil {
		return errors.New("--log-level is invalid")
	}
	return nil
}

func (p *pubsub) check() (err error) {
	if err := p.consume.CheckSources(); err != nil {
		return err
	}
	switch {
	case p.maxConnections < 1:
		return errors.New("--max-connections should be positive")
	case p.maxSubscriptions < 1:
		return errors.New("--max-subscriptions should be positive")
	case p.maxBody < 1:
		return errors.New("--max-body-size should be positive")
	case p.maxDefer < 0:
		return errors.New("--max-defer should not be negative")
	case p.heartbeat <= 0:
		return errors.New("--heartbeat-interval should be positive")
	case p.publishTimeout <= 0:
		return errors.New("--publish-timeout should be positive")
	case p.consume.MaxInFlight < 1:
		return errors.New("--max-in-flight should be positive")
	case (p.tls.CertFile == "") != (p.tls.KeyFile == ""):
		return errors.New("use --tls-cert and --tls-key both or neither")
	case p.tls.CertFile == "" && (p.tls.RootCAFile != "" || p.tls.ClientAuthPolicy != ""):
		return errors.New("--tls-root-ca-file and --tls-client-auth-policy require --tls-cert")
	}
	if p.gate, err = newGate(p.nets, p.header, p.users); err != nil {
		return err
	}
	return p.consume.Check()
}

// run serves until ctx is cancelled.
func (p *pubsub) run(ctx context.Context, std utility.Streams) error {
	logger := log.New(std.Err, p.logPrefix, p.level)
	keeper := touch.New(touch.Interval(p.consume.Options.Config().MsgTimeout))
	defer keeper.Stop()
	nodes := newNodes(p, std.Log)
	defer nodes.stop()
	server, err := p.server(&front{
		gate: p.gate, nodes: nodes, log: logger, maxBody: p.maxBody, maxDefer: p.maxDefer,
		subscriptions: &subscriptions{
			flags: p.consume, keeper: keeper, heartbeat: p.heartbeat, log: std.Log,
			stopping: ctx, slots: make(chan struct{}, p.maxSubscriptions),
		},
	}, logger)
	if err != nil {
		return err
	}
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx)) // requests need it until they end
	var looking sync.WaitGroup
	looking.Go(func() { nodes.follow(background) })
	defer looking.Wait()
	defer stopBackground()
	return serve(ctx, server)
}

func (p *pubsub) server(f *front, logger *log.Logger) (*httpx.Server, error) {
	var secure *tlsconf.Server
	if p.tls.CertFile != "" {
		p.tls.Logger = logger
		var err error
		if secure, err = tlsconf.NewServer(p.tls); err != nil {
			return nil, err
		}
	}
	var listener net.Listener
	listener, err := netserver.Listen(p.address)
	if err != nil {
		return nil, err
	}
	listener = newLimit(listener, p.maxConnections, logger)
	if secure != nil {
		return httpx.NewTLSServer(listener, secure.Config(), f.handler(), logger, "HTTPS"), nil
	}
	return httpx.NewServer(listener, f.handler(), logger, "HTTP"), nil
}

// serve ends when ctx is cancelled and the requests have ended, or when the listener fails.
func serve(ctx context.Context, server *httpx.Server) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
		served <- nil
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if closing := server.Close(limit); closing != nil {
		err = errors.Join(err, fmt.Errorf("stop: %w", closing))
	}
	return errors.Join(err, <-served)
}
