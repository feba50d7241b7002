// Package announce tells the nsqlookupds which topics and channels this nsqd has, and asks them which
// channels a topic has elsewhere. It knows no broker: what exists comes from a function, and a poke
// says that it may have changed.
//
// It works by state, not by events. Each nsqlookupd has a goroutine of its own that remembers what it
// has told on its connection and, when poked, tells the difference to what exists now. So a slow
// nsqlookupd delays neither the others nor whoever created a topic, many changes at once are one
// difference, and after a reconnect the difference is everything.
//
// Source: nsqd-config spec, sections 14 to 16; nsqd-tcp spec, section 18.1.
package announce

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/lookup"
	"nsq/internal/protocol"
)

// Config says what to announce, to whom and how. Durations and sizes that are 0 have defaults.
type Config struct {
	Addresses []string // TCP addresses of the nsqlookupds, host:port
	Self      lookup.Identity

	// Source returns all topics and channels of the moment: each topic as a registration without a
	// channel, and each channel. A topic or channel that was deleted and created again has another
	// Generation, and is unregistered and registered again. Source is called by several goroutines.
	Source func() []lookup.Registration

	Log  *log.Logger
	HTTP *httpx.Client // for KnownChannels; its timeouts bound that call

	Dial         func(ctx context.Context, network, address string) (net.Conn, error) // a plain dialer
	IOTimeout    time.Duration                                                        // for each dial, write and answer; 1 s
	MaxAnswer    int                                                                  // bytes of an answer; 5 MiB
	PingInterval time.Duration                                                        // 15 s
	MinBackoff   time.Duration                                                        // first pause before a reconnect; 100 ms
	MaxBackoff   time.Duration                                                        // longest pause before a reconnect; 15 s
}

func (c Config) withDefaults() Config {
	setDefault(&c.IOTimeout, time.Second)
	setDefault(&c.MaxAnswer, 5<<20)
	setDefault(&c.PingInterval, 15*time.Second)
	setDefault(&c.MinBackoff, 100*time.Millisecond)
	setDefault(&c.MaxBackoff, 15*time.Second)
	return c
}

func setDefault[T int | time.Duration](setting *T, value T) {
	if *setting <= 0 {
		*setting = value
	}
}

// ErrNoLookupd says that nsqlookupds are configured, but none has told yet where to ask it.
var ErrNoLookupd = errors.New("no available nsqlookupd")

// Announcer keeps the nsqlookupds informed while Run runs. Its methods may be called from any
// goroutine.
type Announcer struct {
	config      Config        // immutable
	readdressed chan struct{} // one slot: peers has changed

	mu    sync.Mutex
	peers []*peer // those that are wanted; replaced as a whole; guarded by mu
}

// New returns an Announcer that does nothing before Run.
func New(config Config) *Announcer {
	a := &Announcer{config: config.withDefaults(), readdressed: make(chan struct{}, 1)}
	a.SetAddresses(config.Addresses)
	return a
}

// SetAddresses replaces the list of nsqlookupds. Those that stay keep their connection. Duplicates
// count once.
func (a *Announcer) SetAddresses(addresses []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var peers []*peer
	for _, address := range addresses {
		called := func(p *peer) bool { return p.address == address }
		if slices.ContainsFunc(peers, called) {
			continue
		}
		if i := slices.IndexFunc(a.peers, called); i >= 0 {
			peers = append(peers, a.peers[i])
		} else {
			peers = append(peers, newPeer(address, &a.config))
		}
	}
	a.peers = peers
	poke(a.readdressed)
}

// Addresses returns the list of nsqlookupds, without duplicates.
func (a *Announcer) Addresses() []string {
	var addresses []string
	for _, p := range a.wanted() {
		addresses = append(addresses, p.address)
	}
	return addresses
}

// Changed says that what Source returns may have changed. It never waits.
func (a *Announcer) Changed() {
	for _, p := range a.wanted() {
		poke(p.changed)
	}
}

// Run serves the nsqlookupds until ctx is cancelled, then closes the connections and returns nil. It is
// called once.
func (a *Announcer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	stops := map[*peer]context.CancelFunc{}
	for ctx.Err() == nil {
		wanted := a.wanted()
		for p, stop := range stops {
			if !slices.Contains(wanted, p) {
				a.config.Log.Infof("LOOKUP(%s): removing peer", p.address)
				stop()
				delete(stops, p)
			}
		}
		for _, p := range wanted {
			if stops[p] == nil {
				a.config.Log.Infof("LOOKUP(%s): adding peer", p.address)
				peerCtx, stop := context.WithCancel(ctx)
				stops[p] = stop
				running.Go(func() { p.run(peerCtx) })
			}
		}
		select {
		case <-ctx.Done():
		case <-a.readdressed:
		}
	}
	for _, stop := range stops {
		stop()
	}
	running.Wait()
	a.config.Log.Infof("LOOKUP: closing")
	return nil
}

// KnownChannels asks all nsqlookupds that have introduced themselves, also those that are away at the
// moment, for the channels of the topic. It returns the names found, sorted, without ephemeral and
// invalid ones, and beside them what went wrong, which has been logged already. Without any
// nsqlookupd configured it returns nothing.
func (a *Announcer) KnownChannels(ctx context.Context, topic string) ([]string, error) {
	peers := a.wanted()
	if len(peers) == 0 {
		return nil, nil
	}
	addresses := httpAddresses(peers)
	if len(addresses) == 0 {
		a.config.Log.Errorf("no available nsqlookupd to query for channels to pre-create for topic %s", topic)
		return nil, ErrNoLookupd
	}
	found := make([][]string, len(addresses))
	failed := make([]error, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		a.config.Log.Infof("CI: querying nsqlookupd %s", lookup.ChannelsURL(address, topic))
		asking.Go(func() { found[i], failed[i] = lookup.Channels(ctx, a.config.HTTP, address, topic) })
	}
	asking.Wait()
	err := errors.Join(failed...)
	if err != nil {
		a.config.Log.Warnf("failed to query nsqlookupd for channels to pre-create for topic %s - %s", topic, err)
	}
	return permanent(slices.Concat(found...)), err
}

// httpAddresses are where the peers said that they answer HTTP, each once.
func httpAddresses(peers []*peer) []string {
	var addresses []string
	for _, p := range peers {
		if info := p.info.Load(); info != nil && info.HTTPAddress() != "" {
			addresses = append(addresses, info.HTTPAddress())
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// permanent sorts the names and drops what must not be created.
func permanent(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool {
		return protocol.IsEphemeral(name) || !protocol.ValidName(name)
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// wanted returns the peers of the moment; the slice is shared and not written again.
func (a *Announcer) wanted() []*peer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peers
}

// poke fills a one-slot channel.
func poke(slot chan<- struct{}) {
	select {
	case slot <- struct{}{}:
	default: // it is full: whoever reads it is going to look anyway
	}
}
