package nsqadmin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"nsq/internal/api"
	"nsq/internal/cluster"
	"nsq/internal/httpx"
	"nsq/nsqadmin/graphite"
)

func (f *front) topics(ctx context.Context, req *asked) (any, error) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, httpx.BadRequest(err.Error())
	}
	if query.Get("inactive") == "true" {
		return f.inactiveTopics(ctx, req)
	}
	topics, failures, err := f.cluster.Topics(ctx)
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	return api.AdminTopicList{Topics: topics, AdminStatus: req.report.Status()}, nil
}

// inactiveTopics are those that no nsqlookupd names a producer of.
func (f *front) inactiveTopics(ctx context.Context, req *asked) (any, error) {
	inactive := make(map[string][]string)
	if f.cluster.Direct() {
		return api.AdminInactiveTopics{Topics: inactive}, nil
	}
	topics, failures, err := f.cluster.Topics(ctx)
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	_, visible, more, err := f.cluster.Directory(ctx)
	if err != nil {
		return nil, err
	}
	req.report.Add(more)
	topics = slices.DeleteFunc(topics, func(topic string) bool { return visible[topic] })
	inactive, failures = f.cluster.ChannelsOf(ctx, f.cluster.Answering(req.report.All()), topics)
	req.report.Add(failures)
	return api.AdminInactiveTopics{Topics: inactive, AdminStatus: req.report.Status()}, nil
}

// find finds the producers of the topic that is asked for.
func (f *front) find(ctx context.Context, req *asked) (cluster.Found, error) {
	found, failures, err := f.cluster.Find(ctx, req.params.ByName("topic"))
	req.report.Add(failures)
	switch {
	case err != nil:
		return found, err
	case !found.Known && len(failures) > 0: // one that did not answer may have it
		return found, &cluster.Unreachable{Kind: cluster.NSQD, Failures: failures}
	case !found.Known:
		return found, errTopicNotFound
	}
	return found, nil
}

func (f *front) topic(ctx context.Context, req *asked) (any, error) {
	found, err := f.find(ctx, req)
	if err != nil {
		return nil, err
	}
	name := req.params.ByName("topic")
	stats, failures, err := f.cluster.StatsOfAll(ctx, found.Producers, cluster.Selection{Topic: name})
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	var parts []*api.AdminTopic
	for _, s := range stats {
		parts = append(parts, s.Topics...)
	}
	return api.AdminTopicAnswer{AdminTopic: cluster.SumTopic(name, parts), AdminStatus: req.report.Status()}, nil
}

func (f *front) channel(ctx context.Context, req *asked) (any, error) {
	found, err := f.find(ctx, req)
	if err != nil {
		return nil, err
	}
	topic, name := req.params.ByName("topic"), req.params.ByName("channel")
	selection := cluster.Selection{Topic: topic, Channel: name, Clients: true}
	stats, failures, err := f.cluster.StatsOfAll(ctx, found.Producers, selection)
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	parts := channelParts(stats, name)
	if len(parts) == 0 && !slices.Contains(found.Channels, name) {
		if len(failures) > 0 { // one that did not answer may have it
			return nil, &cluster.Unreachable{Kind: cluster.NSQD, Failures: failures}
		}
		return nil, errChannelNotFound
	}
	return api.AdminChannelAnswer{AdminChannel: cluster.SumChannel(topic, name, parts), AdminStatus: req.report.Status()}, nil
}

func channelParts(stats []cluster.NodeStats, name string) (parts []*api.AdminChannel) {
	for _, s := range stats {
		for _, t := range s.Topics {
			for _, c := range t.Channels {
				if c.ChannelName == name {
					parts = append(parts, c)
				}
			}
		}
	}
	return parts
}

func (f *front) nodes(ctx context.Context, req *asked) (any, error) {
	nodes, failures, err := f.cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	return api.AdminNodeList{Nodes: nodes, AdminStatus: req.report.Status()}, nil
}

func (f *front) node(ctx context.Context, req *asked) (any, error) {
	nodes, failures, err := f.cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	name := req.params.ByName("node")
	i := slices.IndexFunc(nodes, func(n *api.AdminNode) bool { return cluster.Address(n) == name })
	if i < 0 {
		return nil, errNodeNotFound
	}
	stats, _, err := f.cluster.StatsOfAll(ctx, []cluster.Producer{cluster.ProducerOf(nodes[i])}, cluster.Selection{Clients: true})
	if err != nil {
		return nil, err
	}
	answer := api.AdminNodeAnswer{Node: name, Topics: stats[0].Topics, AdminStatus: req.report.Status()}
	for _, t := range answer.Topics {
		answer.TotalMessages += t.MessageCount
		for _, c := range t.Channels {
			answer.TotalClients += len(c.Clients)
		}
	}
	return answer, nil
}

func (f *front) counter(ctx context.Context, req *asked) (any, error) {
	nodes, failures, err := f.cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	producers := make([]cluster.Producer, len(nodes))
	for i, n := range nodes {
		producers[i] = cluster.ProducerOf(n)
	}
	stats, failures, err := f.cluster.StatsOfAll(ctx, producers, cluster.Selection{})
	if err != nil {
		return nil, err
	}
	req.report.Add(failures)
	return api.AdminCounters{Stats: counters(stats), AdminStatus: req.report.Status()}, nil
}

func counters(stats []cluster.NodeStats) map[string]api.AdminCounter {
	all := make(map[string]api.AdminCounter)
	for _, s := range stats {
		for _, t := range s.Topics {
			for _, c := range t.Channels {
				all[t.TopicName+":"+c.ChannelName+":"+c.Node] = api.AdminCounter{
					Node: c.Node, TopicName: t.TopicName, ChannelName: c.ChannelName, MessageCount: c.MessageCount,
				}
			}
		}
	}
	return all
}

// graphite answers the rate of a metric, for scripts that know no Graphite.
func (f *front) graphite(ctx context.Context, req *asked) (any, error) {
	query, err := httpx.ParseParams(req.Request)
	if err != nil {
		return nil, err
	}
	if metric, _ := query.Get("metric"); metric != "rate" {
		return nil, httpx.BadRequest("INVALID_ARG_METRIC")
	}
	target, present := query.Get("target")
	if !present {
		return nil, httpx.BadRequest("INVALID_ARG_TARGET")
	}
	if f.graphiteURL == "" {
		return nil, errors.New("no Graphite is configured")
	}
	rate, err := graphite.Rate(ctx, f.client, f.graphiteURL, f.statsdInterval, target)
	if err != nil {
		return nil, &httpx.Error{Status: http.StatusInternalServerError, Message: "INTERNAL_ERROR",
			Cause: fmt.Errorf("ask Graphite: %w", err)}
	}
	return api.AdminRate{Rate: rate}, nil
}
