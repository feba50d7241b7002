package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/clientopt"
	"nsq/internal/destination"
	"nsq/internal/discover"
	"nsq/internal/httpx"
	"nsq/internal/publish"
)

const (
	lookAgain     = 15 * time.Second // while there are nsqds
	lookAgainSoon = time.Second      // while there are none
	lookTimeout   = 5 * time.Second
)

var (
	errNoNSQD  = &httpx.Error{Status: http.StatusServiceUnavailable, Message: "NO_NSQD"}
	errTimeout = errors.New("no confirmation in time")
)

// nodes are the nsqds to publish to: those given, or all that the nsqlookupds know. The ones that answer
// fastest get most, and those that fail none for a while. It is safe for concurrent use.
type nodes struct {
	config   *nsq.Config
	level    clientopt.Level
	timeout  time.Duration // for one nsqd
	lookupds []string      // none: the nsqds are given
	client   *httpx.Client // for the nsqlookupds
	log      *log.Logger

	mu        sync.Mutex               // guards all below
	addresses []string                 // sorted if they were looked up
	pool      *destination.Pool        // of the addresses; nil: there are none
	producers map[string]*nsq.Producer // by address, from the first message on, up to a failure
	stopped   bool
}

func newNodes(p *pubsub, logger *log.Logger) *nodes {
	n := &nodes{
		config: p.consume.Options.Config(), level: p.consume.ClientLog, timeout: p.publishTimeout,
		lookupds: p.consume.Lookupds, log: logger, producers: make(map[string]*nsq.Producer),
		client: httpx.NewClient(httpx.ClientConfig{ConnectTimeout: lookTimeout, RequestTimeout: lookTimeout}),
	}
	n.set(p.consume.NSQDs)
	return n
}

// set replaces the addresses.
func (n *nodes) set(addresses []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(n.addresses, addresses) {
		return // what was learnt about them stays
	}
	n.addresses, n.pool = addresses, nil
	if len(addresses) > 0 {
		n.pool = destination.New(destination.EpsilonGreedy, addresses)
	}
	for address, producer := range n.producers {
		if !slices.Contains(addresses, address) {
			delete(n.producers, address)
			go producer.Stop() // which waits for its connection
		}
	}
}

// follow looks for nsqds until ctx is cancelled, unless they are given.
func (n *nodes) follow(ctx context.Context) {
	if len(n.lookupds) == 0 {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if n.look(ctx); n.known() > 0 {
			timer.Reset(lookAgain)
		} else {
			timer.Reset(lookAgainSoon)
		}
	}
}

func (n *nodes) known() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.addresses)
}

// look asks all nsqlookupds. While one of them fails nobody is forgotten: it may be the only one to know.
func (n *nodes) look(ctx context.Context) {
	answers := discover.Ask(ctx, n.lookupds, func(ctx context.Context, address string) (api.NodeList, error) {
		var list api.NodeList
		endpoint, err := nodesURL(address)
		if err == nil {
			err = n.client.Get(ctx, endpoint, &list)
		}
		return list, err
	})
	if ctx.Err() != nil {
		return
	}
	var found []api.Producer
	for _, answer := range answers {
		for _, node := range answer.Value.Producers {
			found = append(found, node.Producer)
		}
	}
	var addresses []string
	for _, producer := range discover.Union(found) {
		addresses = append(addresses, discover.TCPAddress(producer))
	}
	if failures := discover.Failures(answers); len(failures) > 0 {
		n.log.Printf("look for nsqds: %s", errors.Join(failures...))
		n.mu.Lock()
		addresses = append(addresses, n.addresses...)
		n.mu.Unlock()
	}
	slices.Sort(addresses)
	n.set(slices.Compact(addresses))
}

// nodesURL is the question for all nsqds to a nsqlookupd, given as host:port or URL.
func nodesURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/nodes"}).String(), nil
}

// publish returns nil when a nsqd has confirmed the message. If one fails the next one is tried, so that
// the message may be in both.
func (n *nodes) publish(ctx context.Context, topic string, delay time.Duration, body []byte) error {
	n.mu.Lock()
	pool, count := n.pool, len(n.addresses)
	n.mu.Unlock()
	if pool == nil {
		return errNoNSQD
	}
	var failures []error
	// One that has failed is not offered again before the others; the turn more is for a connection that
	// has broken unnoticed.
	for range count + 1 {
		turn := pool.Next()
		err := n.publishTo(ctx, turn.Address, topic, delay, body)
		switch {
		case err == nil:
			turn.Done(true)
			return nil
		case refused(err):
			return refusal(err)
		case ctx.Err() != nil:
			return ctx.Err() // nobody reads it
		}
		turn.Done(false)
		failures = append(failures, fmt.Errorf("publish to %s: %w", turn.Address, err))
	}
	return &httpx.Error{Status: errNoNSQD.Status, Message: errNoNSQD.Message, Cause: errors.Join(failures...)}
}

// refused says whether the nsqd is well and does not want this message, or this delay.
func refused(err error) bool {
	return publish.Refused(err) || publish.Answered(err) && strings.HasPrefix(err.Error(), "E_INVALID")
}

// refusal is the answer for a message that a nsqd does not want.
func refusal(err error) error {
	if strings.HasPrefix(err.Error(), "E_BAD_MESSAGE") {
		return errTooBig
	}
	return &httpx.Error{Status: http.StatusBadRequest, Message: "REFUSED", Cause: err}
}

func (n *nodes) publishTo(ctx context.Context, address, topic string, delay time.Duration, body []byte) error {
	producer, err := n.producer(address)
	if err != nil {
		return err
	}
	done := make(chan *nsq.ProducerTransaction, 1)
	if delay > 0 {
		err = producer.DeferredPublishAsync(topic, delay, body, done)
	} else {
		err = producer.PublishAsync(topic, body, done)
	}
	if err == nil {
		err = n.await(ctx, done)
	}
	if err != nil && ctx.Err() == nil {
		// The connection is broken, or the nsqd is about to hang up after what it refused.
		n.drop(address, producer)
	}
	return err
}

func (n *nodes) await(ctx context.Context, done <-chan *nsq.ProducerTransaction) error {
	limit := time.NewTimer(n.timeout)
	defer limit.Stop()
	select {
	case confirmed := <-done:
		return confirmed.Error
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return errTimeout
	}
}

// producer returns the producer for an address, which connects with its first message.
func (n *nodes) producer(address string) (*nsq.Producer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil, nsq.ErrStopped
	}
	if p := n.producers[address]; p != nil {
		return p, nil
	}
	p, err := clientopt.NewProducer(address, n.config, n.level, n.log)
	if err == nil {
		n.producers[address] = p
	}
	return p, err
}

// drop forgets a producer that has failed: the next message gets a new one.
func (n *nodes) drop(address string, producer *nsq.Producer) {
	n.mu.Lock()
	if n.producers[address] == producer {
		delete(n.producers, address)
	}
	n.mu.Unlock()
	producer.Stop()
}

// stop ends all connections; nothing is published afterwards.
func (n *nodes) stop() {
	n.mu.Lock()
	n.stopped = true
	producers := n.producers
	n.producers = nil
	n.mu.Unlock()
	for _, p := range producers {
		p.Stop()
	}
	n.client.Close()
}
