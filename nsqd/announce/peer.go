package announce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"nsq/internal/lookup"
)

const (
	// gather is how long a peer waits after a poke for more of them.
	gather = 10 * time.Millisecond
	// firmPause is the part of a back-off that no poke cuts short.
	firmPause = time.Second
	// stableAfter is how long a session must have lasted for the next back-off to begin anew: a
	// nsqlookupd that ends each connection at once is not hammered.
	stableAfter = time.Second
	// maxQuoted bounds, in characters, how much of what a peer says is logged at a time.
	maxQuoted = 1024
)

// peer is one nsqlookupd.
type peer struct {
	address string        // immutable
	config  *Config       // immutable, shared by all peers
	changed chan struct{} // one slot: something may have to be told

	info atomic.Pointer[lookup.PeerInfo] // its latest introduction, nil before the first
}

func newPeer(address string, config *Config) *peer {
	return &peer{address: address, config: config, changed: make(chan struct{}, 1)}
}

// run keeps the peer informed until ctx is cancelled.
func (p *peer) run(ctx context.Context) {
	retry := backoff{least: p.config.MinBackoff, most: p.config.MaxBackoff}
	for {
		start := time.Now()
		complete := p.session(ctx)
		if complete && time.Since(start) >= stableAfter {
			retry.reset()
		}
		p.pause(ctx, retry.next())
		if ctx.Err() != nil {
			return
		}
	}
}

// session is the life of one connection. It logs why that ended, and says whether the peer had been
// told everything by then.
func (p *peer) session(ctx context.Context) bool {
	p.config.Log.Infof("LOOKUP connecting to %s", p.address)
	conn, err := lookup.Dial(ctx, p.address, lookup.DialOptions{
		Dial: p.config.Dial, Timeout: p.config.IOTimeout, MaxAnswer: p.config.MaxAnswer,
	})
	if err != nil {
		p.failed(ctx, "connect", err)
		return false
	}
	unwatch := context.AfterFunc(ctx, func() { p.close(conn) })
	defer p.close(conn)
	defer unwatch()

	if !p.introduce(ctx, conn) {
		return false
	}
	have, err := p.update(conn, told{}, false)
	complete := err == nil
	if complete {
		err = p.follow(ctx, conn, have)
	}
	p.commandFailed(ctx, err)
	return complete
}

// introduce identifies us and notes who the peer is.
func (p *peer) introduce(ctx context.Context, conn *lookup.Conn) bool {
	info, err := conn.Identify(p.config.Self)
	var senseless *lookup.IdentityError
	switch {
	case err == nil:
	case errors.Is(err, lookup.ErrInvalid):
		p.config.Log.Infof("LOOKUPD(%s): lookupd returned E_INVALID", p.address)
		return false
	case errors.As(err, &senseless):
		p.config.Log.Errorf("LOOKUPD(%s): parsing response - %.*s", p.address, maxQuoted, senseless.Payload)
		return false
	default:
		p.failed(ctx, lookup.CommandIdentify, err)
		return false
	}
	p.config.Log.Infof("LOOKUPD(%s): peer info %.*s", p.address, maxQuoted, fmt.Sprintf("%+v", info))
	if info.BroadcastAddress == "" {
		p.config.Log.Errorf("LOOKUPD(%s): no broadcast address", p.address)
	}
	p.info.Store(&info)
	return true
}

// follow tells what changes and that we are alive, until a command fails, the peer goes away or ctx is
// cancelled. It always returns an error.
func (p *peer) follow(ctx context.Context, conn *lookup.Conn, have told) error {
	ping := time.NewTicker(p.config.PingInterval)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.Ended():
			return conn.Err()
		case <-ping.C:
			p.config.Log.Debugf("LOOKUPD(%s): sending heartbeat", p.address)
			err = conn.Ping()
		case <-p.changed:
			sleep(ctx, gather)
			have, err = p.update(conn, have, true)
		}
		if err != nil {
			return err
		}
	}
}

// update tells the difference between have and what exists, and returns what the peer knows then.
func (p *peer) update(conn *lookup.Conn, have told, logged bool) (told, error) {
	// What was poked before Source is read is covered by it; what is poked later comes again.
	select {
	case <-p.changed:
	default:
	}
	want := tell(p.config.Source())
	changes := have.changesTo(want)
	if logged {
		for _, change := range changes {
			kind := "topic"
			if change.Channel != "" {
				kind = "channel"
			}
			p.config.Log.Infof("LOOKUPD(%s): %s %s", p.address, kind, change)
		}
	}
	return want, conn.Update(changes)
}

// pause waits between two sessions; after a while something to tell ends it early.
func (p *peer) pause(ctx context.Context, length time.Duration) {
	firm := min(length, firmPause)
	sleep(ctx, firm)
	if length == firm {
		return
	}
	timer := time.NewTimer(length - firm)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-p.changed: // the new session looks anyway
	}
}

// commandFailed logs what ended a session; a *lookup.CommandError names its command itself.
func (p *peer) commandFailed(ctx context.Context, err error) {
	var failure *lookup.CommandError
	if errors.As(err, &failure) {
		p.failed(ctx, failure.Command, failure.Cause)
		return
	}
	p.failed(ctx, "connection", err)
}

func (p *peer) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // that is us
	}
	p.config.Log.Errorf("LOOKUPD(%s): %s - %.*s", p.address, what, maxQuoted, err)
}

func (p *peer) close(conn *lookup.Conn) {
	if err := conn.Close(); err != nil {
		p.config.Log.Debugf("LOOKUPD(%s): close - %s", p.address, err)
	}
}

func sleep(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// backoff doubles from least to most, with jitter so that many nsqds do not return in step.
type backoff struct{ least, most, last time.Duration }

func (b *backoff) reset() { b.last = 0 }

// next returns a pause of half to all of the length reached.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.least), b.most)
	return b.last/2 + rand.N(b.last/2+1)
}
