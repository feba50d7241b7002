// Package cluster asks many daemons the same question, tolerates those that fail, and merges what the
// others say: which topics and nodes there are, who produces a topic, what the statistics add up to.
// One daemon that is down, slow or lying costs its own part of an answer.
//
// It keeps nothing between two questions, and knows neither pages nor what actions are for.
//
// Source: nsqadmin spec, sections 4, 5 and 8.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"nsq/internal/discover"
	"nsq/internal/httpx"
	"nsq/internal/log"
)

// Bounds of what one daemon can make us hold.
const (
	// MaxAnswer is the most that is read of one answer, in bytes.
	MaxAnswer = 32 << 20
	// maxElements is how many elements the arrays of one answer may have in all: each of them takes
	// some hundred bytes of memory, however few it has in the answer.
	maxElements = 400_000
	// maxNodes is how many nodes one nsqlookupd may name: each of them will be asked.
	maxNodes = 5000
	// DefaultParallel is how many requests are under way at a time.
	DefaultParallel = 16
)

// Config is what a Cluster is made from.
type Config struct {
	HTTP     *httpx.Client
	Lookupds func() []string // HTTP host:port of the nsqlookupds now; none: the nsqds are asked directly
	NSQDs    []string        // HTTP host:port of the nsqds without nsqlookupds
	Parallel int             // requests under way at a time; 0: DefaultParallel
	Log      *log.Logger
	Level    log.Level // of the line that is logged for each request
}

// Cluster asks the daemons of one cluster. It is safe for concurrent use.
type Cluster struct {
	config Config
	slots  chan struct{} // one taken for each request under way
}

// New returns a cluster.
func New(config Config) *Cluster {
	if config.Parallel <= 0 {
		config.Parallel = DefaultParallel
	}
	return &Cluster{config: config, slots: make(chan struct{}, config.Parallel)}
}

// Lookupds are the HTTP addresses of the nsqlookupds, none in direct mode.
func (c *Cluster) Lookupds() []string { return c.config.Lookupds() }

// NSQDs are the HTTP addresses of the configured nsqds, none with nsqlookupds.
func (c *Cluster) NSQDs() []string { return c.config.NSQDs }

// Direct says whether the nsqds are asked without nsqlookupds.
func (c *Cluster) Direct() bool { return len(c.Lookupds()) == 0 }

// acquire waits for a slot; the caller gives it back with release.
func (c *Cluster) acquire(ctx context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Cluster) release() { <-c.slots }

// endpoint is the URL of a request.
func endpoint(address, path string, query url.Values) (string, error) {
	// A name that came from a daemon must not turn into another part of the URL.
	if address == "" || strings.ContainsAny(address, "/?#@\\ \t\r\n") {
		return "", errors.New("no usable address: " + quote(address))
	}
	u := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: query.Encode()}
	return u.String(), nil
}

// within waits for a slot, and calls send with the URL of a request.
func (c *Cluster) within(ctx context.Context, method, address, path string, query url.Values, send func(target string) error) error {
	target, err := endpoint(address, path, query)
	if err != nil {
		return err
	}
	if err := c.acquire(ctx); err != nil {
		return fmt.Errorf("%s %q: %w", method, target, err)
	}
	defer c.release()
	c.config.Log.Logf(c.config.Level, "CLUSTER: %s %s", method, target)
	return send(target)
}

// ask gets the same from all addresses at the same time. The answers are in the order of the
// addresses, those that failed left out.
func ask[T any](ctx context.Context, c *Cluster, addresses []string, path string, query url.Values) ([]discover.Answer[T], Failures) {
	answers := discover.Ask(ctx, addresses, func(ctx context.Context, address string) (T, error) {
		var out bounded[T]
		err := c.within(ctx, http.MethodGet, address, path, query, func(target string) error {
			return c.config.HTTP.Get(ctx, target, &out)
		})
		return out.value, err
	})
	return split(answers, path)
}

// split parts the answers from the failures.
func split[T any](answers []discover.Answer[T], stage string) (good []discover.Answer[T], failures Failures) {
	for _, a := range answers {
		if a.Err != nil {
			failures = append(failures, Failure{Target: a.Address, Stage: stage, Err: a.Err})
			continue
		}
		good = append(good, a)
	}
	return good, failures
}

// askAny is ask where at least one has to answer, else the error is an *Unreachable.
func askAny[T any](ctx context.Context, c *Cluster, kind string, addresses []string, path string, query url.Values) ([]discover.Answer[T], Failures, error) {
	answers, failures := ask[T](ctx, c, addresses, path, query)
	if len(answers) == 0 {
		return nil, nil, &Unreachable{Kind: kind, Failures: failures}
	}
	return answers, failures, nil
}

// Kinds of daemons, in errors.
const (
	Lookupd = "nsqlookupd"
	NSQD    = "nsqd"
)

// Post sends the same POST to all addresses and returns what became of it, an error for each that
// failed, in the order of the addresses.
func (c *Cluster) Post(ctx context.Context, addresses []string, path string, query url.Values) []Result {
	answers := discover.Ask(ctx, addresses, func(ctx context.Context, address string) (struct{}, error) {
		return struct{}{}, c.within(ctx, http.MethodPost, address, path, query, func(target string) error {
			return c.config.HTTP.Post(ctx, target, nil, nil)
		})
	})
	results := make([]Result, len(answers))
	for i, a := range answers {
		results[i] = Result{Target: a.Address, Stage: path, Err: a.Err}
	}
	return results
}

// Result is what became of one request of Post; its Err is nil after a success.
type Result Failure
