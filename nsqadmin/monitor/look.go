package monitor

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"nsq/internal/api"
	"nsq/internal/cluster"
)

// maxIdle is how many topics without producers are asked for their channels in one collection.
const maxIdle = 500

// look asks everybody, and puts what was answered together.
func look(ctx context.Context, c *cluster.Cluster) *Snapshot {
	s := &Snapshot{Direct: c.Direct()}
	var names []string // of topics that the nsqlookupds know
	if s.Direct {
		s.lookAtConfigured(ctx, c)
	} else {
		names = s.lookAtDirectory(ctx, c)
	}
	s.lookAtNodes(ctx, c)
	s.sum(ctx, c, names)
	return s
}

// failed notes failures, and returns those of each target.
func (s *Snapshot) failed(failures cluster.Failures) map[string]string {
	s.Failures = append(s.Failures, failures...)
	byTarget := make(map[string]string)
	for _, f := range failures {
		byTarget[f.Target] = f.Err.Error()
	}
	return byTarget
}

// failuresOf are the failures of a question, whether somebody answered or nobody.
func failuresOf(failures cluster.Failures, err error) cluster.Failures {
	if nobody, ok := errors.AsType[*cluster.Unreachable](err); ok {
		return nobody.Failures
	}
	return failures
}

// lookAtConfigured finds the nodes of direct mode; those that do not answer have a row, too.
func (s *Snapshot) lookAtConfigured(ctx context.Context, c *cluster.Cluster) {
	nodes, failures := c.Configured(ctx)
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, &Node{AdminNode: n, Address: cluster.Address(n)})
	}
	s.failed(failures)
	for _, f := range failures {
		s.Nodes = append(s.Nodes, &Node{AdminNode: cluster.Silent(f.Target), Address: f.Target, Err: f.Err.Error()})
	}
}

// lookAtDirectory finds the nodes, and returns the names of topics that the nsqlookupds know.
func (s *Snapshot) lookAtDirectory(ctx context.Context, c *cluster.Cluster) []string {
	nodes, _, failures, err := c.Directory(ctx)
	silent := s.failed(failuresOf(failures, err))
	for _, address := range c.Lookupds() {
		s.Lookupds = append(s.Lookupds, Lookupd{Address: address, Err: silent[address]})
	}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, &Node{AdminNode: n, Address: cluster.Address(n)})
	}
	names, failures, err := c.Topics(ctx)
	s.failed(failuresOf(failures, err))
	return names
}

// lookAtNodes asks the nodes for their statistics.
func (s *Snapshot) lookAtNodes(ctx context.Context, c *cluster.Cluster) {
	var producers []cluster.Producer
	taken := make(map[string]bool)
	for _, n := range s.Nodes {
		if taken[n.Address] {
			n.Err = "another node has the same HTTP address" // its messages must not count twice
		}
		taken[n.Address] = true
		if n.Err == "" {
			producers = append(producers, cluster.ProducerOf(n.AdminNode))
		}
	}
	stats, failures := c.Stats(ctx, producers, cluster.Selection{Clients: true}.Query())
	silent := s.failed(failures)
	answered := make(map[string]*cluster.NodeStats, len(stats))
	for i := range stats {
		answered[stats[i].Producer.Address] = &stats[i]
	}
	for _, n := range s.Nodes {
		n.Err = cmp.Or(n.Err, silent[n.Address])
		if a := answered[n.Address]; a != nil && n.Err == "" {
			n.Health, n.Started, n.Stats, n.at = a.Health, a.Started, a.Topics, a.At
			if s.Direct {
				cluster.SetTopics(n.AdminNode, a.Topics)
			}
		}
	}
	slices.SortStableFunc(s.Nodes, compareNodes)
}

// sum adds up what the nodes told. Topics that only a nsqlookupd knows are added to those of nodes.
func (s *Snapshot) sum(ctx context.Context, c *cluster.Cluster, names []string) {
	parts := make(map[string][]*api.AdminTopic)
	for _, n := range s.Nodes {
		for _, t := range n.Stats {
			parts[t.TopicName] = append(parts[t.TopicName], t)
		}
		n.Totals = totalsOf(n.Stats)
	}
	for name, of := range parts {
		s.Topics = append(s.Topics, newTopic(cluster.SumTopic(name, of)))
	}
	s.addInactive(ctx, c, names, parts)
	slices.SortFunc(s.Topics, func(a, b *Topic) int { return cmp.Compare(a.TopicName, b.TopicName) })
	for _, t := range s.Topics {
		s.Totals.add(&t.Totals)
	}
}

// addInactive adds the topics that nobody has.
func (s *Snapshot) addInactive(ctx context.Context, c *cluster.Cluster, names []string, has map[string][]*api.AdminTopic) {
	listed := make(map[string]bool) // by a node that did not answer, perhaps
	for _, n := range s.Nodes {
		for _, t := range n.Topics {
			listed[t.Topic] = true
		}
	}
	var idle []string
	for _, name := range names {
		if has[name] != nil {
			continue
		}
		if listed[name] {
			s.Topics = append(s.Topics, newTopic(cluster.SumTopic(name, nil)))
			continue
		}
		idle = append(idle, name)
	}
	channels, failures := c.ChannelsOf(ctx, c.Answering(s.Failures), idle[:min(len(idle), maxIdle)])
	s.failed(failures)
	for _, name := range idle {
		t := newTopic(cluster.SumTopic(name, nil))
		t.Inactive = true
		for _, channel := range channels[name] {
			t.Channels = append(t.Channels, &Channel{AdminChannel: cluster.SumChannel(name, channel, nil)})
		}
		s.Topics = append(s.Topics, t)
	}
}

func newTopic(sum *api.AdminTopic) *Topic {
	t := &Topic{AdminTopic: sum, Totals: totalsOf([]*api.AdminTopic{sum})}
	for _, c := range sum.Channels {
		t.Channels = append(t.Channels, &Channel{AdminChannel: c, Totals: totalsOfChannel(c)})
	}
	slices.SortFunc(t.Channels, func(a, b *Channel) int { return cmp.Compare(a.ChannelName, b.ChannelName) })
	return t
}

// totalsOf are the numbers of topics with their channels, without rates.
func totalsOf(topics []*api.AdminTopic) (sum Totals) {
	for _, t := range topics {
		sum.Depth += t.Depth
		for _, c := range t.Channels {
			of := totalsOfChannel(c)
			sum.add(&of)
		}
	}
	return sum
}

func totalsOfChannel(c *api.AdminChannel) Totals {
	// An old nsqd counts no clients, but lists them.
	clients := max(c.ClientCount, len(c.Clients))
	return Totals{Depth: c.Depth, InFlight: c.InFlightCount, Deferred: c.DeferredCount, Clients: int64(clients)}
}

// add adds numbers and rates.
func (t *Totals) add(o *Totals) {
	t.Depth += o.Depth
	t.InFlight += o.InFlight
	t.Deferred += o.Deferred
	t.Clients += o.Clients
	t.Rates.add(o.Rates)
}
