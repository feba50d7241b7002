package action

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"nsq/internal/api"
	"nsq/internal/cluster"
	"nsq/internal/log"
)

// doTimeout bounds an action, so that the browser hears of it.
const doTimeout = 18 * time.Second

// Config is what an Actor is made from.
type Config struct {
	Cluster  *cluster.Cluster
	Notifier *Notifier // nil: nobody is notified
	Acted    func()    // called after an action that was tried; must not wait; nil: nothing
	Log      *log.Logger
}

// Actor does actions. It is safe for concurrent use.
type Actor struct{ config Config }

// New returns an actor.
func New(config Config) *Actor { return &Actor{config} }

// Do does the action that the request asks for, to the end even if the one who asked goes away. The
// error is an Invalid or, when it could not be found out who is concerned and nothing was done, a
// *cluster.Unreachable. What went wrong at single daemons is in the outcome.
func (a *Actor) Do(req *http.Request, do Action) (*Outcome, error) {
	if err := do.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), doTimeout)
	defer cancel()
	o := &Outcome{}
	err := a.run(ctx, do, o)
	if err != nil && len(o.Results) == 0 {
		return nil, err
	}
	if message := o.Report.Message(); message != "" {
		a.config.Log.Warnf("%s: %s", do, message)
	}
	if a.config.Acted != nil {
		a.config.Acted()
	}
	a.notify(req, do, err == nil && len(o.Report.All()) == 0)
	return o, err
}

// run makes the requests of an action.
func (a *Actor) run(ctx context.Context, do Action, o *Outcome) error {
	switch do.Kind {
	case Create:
		return a.create(ctx, do, o)
	case Delete:
		return a.delete(ctx, do, o)
	case Tombstone:
		return a.tombstone(ctx, do, o)
	}
	return a.control(ctx, do, o)
}

// post makes the same request to all addresses and notes what became of it.
func (a *Actor) post(ctx context.Context, o *Outcome, addresses []string, path string, query url.Values) {
	var failures cluster.Failures
	for _, r := range a.config.Cluster.Post(ctx, addresses, path, query) {
		result := api.AdminResult{Target: r.Target, Stage: r.Stage}
		if r.Err != nil {
			result.Error = r.Err.Error()
			failures = append(failures, cluster.Failure(r))
		}
		o.Results = append(o.Results, result)
	}
	o.Report.Add(failures)
}

// create tells the nsqlookupds of a topic and channel, and the nsqds that have the topic of the
// channel. Without nsqlookupds the nsqds themselves create both.
func (a *Actor) create(ctx context.Context, do Action, o *Outcome) error {
	first := a.config.Cluster.Lookupds()
	direct := len(first) == 0
	if direct {
		first = a.config.Cluster.NSQDs()
	}
	a.post(ctx, o, first, "/topic/create", do.topicQuery())
	if do.Channel == "" {
		return nil
	}
	a.post(ctx, o, first, "/channel/create", do.query())
	if direct {
		return nil
	}
	return a.postToProducers(ctx, do, o, "/channel/create")
}

// postToProducers finds the nsqds that have the topic, and makes the request there.
func (a *Actor) postToProducers(ctx context.Context, do Action, o *Outcome, path string) error {
	producers, err := a.producers(ctx, do, o)
	if err != nil {
		return err
	}
	a.post(ctx, o, producers, path, do.query())
	return nil
}

// producers are the addresses of the nsqds that have the topic.
func (a *Actor) producers(ctx context.Context, do Action, o *Outcome) ([]string, error) {
	found, failures, err := a.config.Cluster.Find(ctx, do.Topic)
	o.Report.Add(failures)
	addresses := make([]string, len(found.Producers))
	for i, p := range found.Producers {
		addresses[i] = p.Address
	}
	return addresses, err
}

// delete first finds out where the topic is: once the nsqlookupds have forgotten it nobody knows.
func (a *Actor) delete(ctx context.Context, do Action, o *Outcome) error {
	producers, err := a.producers(ctx, do, o)
	if err != nil {
		return err
	}
	path := do.subject() + "/delete"
	a.post(ctx, o, a.config.Cluster.Lookupds(), path, do.query())
	a.post(ctx, o, producers, path, do.query())
	return nil
}

// control pauses, unpauses or empties; only the nsqds are concerned.
func (a *Actor) control(ctx context.Context, do Action, o *Outcome) error {
	return a.postToProducers(ctx, do, o, do.subject()+"/"+string(do.Kind))
}

// tombstone hides the topic on one node, so that consumers leave, and deletes it there.
func (a *Actor) tombstone(ctx context.Context, do Action, o *Outcome) error {
	nodes, failures, err := a.config.Cluster.Nodes(ctx)
	o.Report.Add(failures)
	if err != nil {
		return err
	}
	known := func(n *api.AdminNode) bool { return cluster.Address(n) == do.Node }
	if !slices.ContainsFunc(nodes, known) {
		return NodeNotFound
	}
	query := do.topicQuery()
	query.Set("node", do.Node)
	a.post(ctx, o, a.config.Cluster.Lookupds(), "/topic/tombstone", query)
	a.post(ctx, o, []string{do.Node}, "/topic/delete", do.topicQuery())
	return nil
}
