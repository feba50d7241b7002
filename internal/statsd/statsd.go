// Package statsd pushes a daemon's statistics to a statsd server over UDP, at intervals.
//
// It has the names of the metrics, what counters have grown by since the last push, and the packing
// and spreading of datagrams. It does not know where the statistics come from.
//
// Source: nsqd-http spec, section 16.
package statsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"nsq/internal/api"
	"nsq/internal/log"
)

// dialTimeout bounds the look-up of the server's name.
const dialTimeout = time.Second

// Config says where and how to push. It does not change while Loop runs.
type Config struct {
	Address          string        // host:port, looked up for each push
	Prefix           string        // what names begin with, its dot included; see Prefix
	Interval         time.Duration // between pushes; more than 0
	PacketSize       int           // bytes of a datagram at most; 0 or less is 4096
	ExcludeEphemeral bool          // leave out topics and channels with an ephemeral name

	// dial is the one of net.Dialer unless a test says otherwise.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Loop pushes what snapshot returns each interval, for the first time after one, until the context
// is done. A push that is under way then is finished in a hurry before Loop returns; there is no
// other. What goes wrong is logged and costs one push.
//
// A snapshot needs its topics and channels sorted by name, and no clients; without Memory no figures
// of memory are pushed.
func Loop(ctx context.Context, config Config, snapshot func() api.Stats, logger *log.Logger) {
	if config.dial == nil {
		config.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	p := pusher{
		config:   config,
		snapshot: snapshot,
		logger:   logger,
		reporter: reporter{prefix: config.Prefix, excludeEphemeral: config.ExcludeEphemeral},
	}
	ticker := time.NewTicker(config.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ctx.Err() != nil {
			return
		}
		if err := p.push(ctx); err != nil {
			logger.Errorf("%v", err)
		}
	}
}

// pusher is a loop's, and used by its goroutine only.
type pusher struct {
	config   Config
	snapshot func() api.Stats
	logger   *log.Logger
	reporter reporter
}

// push takes a snapshot and sends it from a new socket. Without one it takes none, so that the next
// push has what counters grew by since the last one that was sent.
func (p *pusher) push(ctx context.Context) (err error) {
	address := p.config.Address
	conn, err := p.config.dial(ctx, "udp", address)
	if err != nil {
		return fmt.Errorf("failed to create UDP socket to statsd(%s) - %w", address, err)
	}
	defer func() {
		if closeErr := conn.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close socket to statsd(%s): %w", address, closeErr))
		}
	}()
	p.logger.Infof("STATSD: pushing stats to %s", address)
	datagrams := pack(p.reporter.report(p.snapshot()), p.config.PacketSize)
	if err := send(ctx, conn, datagrams, p.config.Interval); err != nil {
		return fmt.Errorf("push stats to statsd(%s): %w", address, err)
	}
	return nil
}
