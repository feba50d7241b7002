package cluster

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"nsq/internal/api"
	"nsq/internal/protocol"
)

// Topics are the names of all topics there are, sorted.
func (c *Cluster) Topics(ctx context.Context) ([]string, Failures, error) {
	if c.Direct() {
		return c.directTopics(ctx)
	}
	answers, failures, err := askAny[api.TopicList](ctx, c, Lookupd, c.Lookupds(), "/topics", nil)
	var lists [][]string
	for _, a := range answers {
		lists = append(lists, a.Value.Topics)
	}
	return union(lists), failures, err
}

// withoutClients asks for statistics that are no larger than needed.
func withoutClients() url.Values { return url.Values{"format": {"json"}, "include_clients": {"false"}} }

func (c *Cluster) directTopics(ctx context.Context) ([]string, Failures, error) {
	answers, failures, err := askAny[api.Stats](ctx, c, NSQD, c.config.NSQDs, "/stats", withoutClients())
	var lists [][]string
	for _, a := range answers {
		lists = append(lists, topicNames(a.Value.Topics))
	}
	return union(lists), failures, err
}

func topicNames(topics []api.TopicStats) []string {
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].TopicName
	}
	return names
}

// channels are the names of the channels of a topic that nsqlookupds know, sorted.
func (c *Cluster) channels(ctx context.Context, lookupds []string, topic string) ([]string, Failures) {
	answers, failures := ask[api.ChannelList](ctx, c, lookupds, "/channels", url.Values{"topic": {topic}})
	var lists [][]string
	for _, a := range answers {
		lists = append(lists, a.Value.Channels)
	}
	return union(lists), failures
}

// ChannelsOf asks the nsqlookupds for the channels of topics. They should be those that have answered
// before: one that is down would cost its time for every topic. Of the failures of a nsqlookupd there
// is only the first.
func (c *Cluster) ChannelsOf(ctx context.Context, lookupds, topics []string) (map[string][]string, Failures) {
	// A few workers: a goroutine for each of thousands would only wait.
	channels, failures := make([][]string, len(topics)), make([]Failures, len(topics))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(topics), c.config.Parallel) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(topics); i = int(next.Add(1)) - 1 {
				channels[i], failures[i] = c.channels(ctx, lookupds, topics[i])
			}
		})
	}
	workers.Wait()
	found := make(map[string][]string, len(topics))
	for i, topic := range topics {
		found[topic] = channels[i]
	}
	return found, firstOfEach(slices.Concat(failures...))
}

// firstOfEach keeps one failure of each target.
func firstOfEach(failures Failures) (first Failures) {
	seen := make(map[string]bool)
	for _, f := range failures {
		if !seen[f.Target] {
			seen[f.Target] = true
			first = append(first, f)
		}
	}
	return first
}

// Answering are the nsqlookupds that are not among the targets of failures.
func (c *Cluster) Answering(failures Failures) (addresses []string) {
	for _, address := range c.Lookupds() {
		if !slices.ContainsFunc(failures, func(f Failure) bool { return f.Target == address }) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// union is what is in any of the lists and can be a name, sorted; nil if there is nothing.
func union(lists [][]string) []string {
	found := make(map[string]bool)
	for _, name := range slices.Concat(lists...) {
		if protocol.ValidName(name) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
