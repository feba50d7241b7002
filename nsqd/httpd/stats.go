package httpd

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/api"
	"nsq/internal/httpx"
	"nsq/internal/quantile"
	"nsq/internal/version"
	"nsq/nsqd/broker"
)

// statsQuery is what a request for statistics asks for; an empty name is no filter.
type statsQuery struct {
	topic, channel string
	clients        bool
	memory         bool
}

// stats shows the statistics, as JSON or as text for people.
func (a *API) stats(req *http.Request, _ httprouter.Params) (any, error) {
	params, err := httpx.ParseParams(req)
	if err != nil {
		return nil, err
	}
	query := statsQuery{clients: include(params, "include_clients"), memory: include(params, "include_mem")}
	query.topic, _ = params.Get("topic")
	query.channel, _ = params.Get("channel")
	stats := a.collect(query)
	if format, _ := params.Get("format"); format == "json" {
		return stats, nil
	}
	return statsText(stats, a.config.StartTime), nil
}

// Stats takes the statistics of all topics and channels, without clients; memory says whether those
// of the process are among them.
func (a *API) Stats(memory bool) api.Stats { return a.collect(statsQuery{memory: memory}) }

// collect takes the statistics. Its parts are of slightly different moments.
func (a *API) collect(query statsQuery) api.Stats {
	stats := api.Stats{
		Version:   version.Version,
		Health:    a.health(),
		StartTime: a.config.StartTime.Unix(),
	}
	if query.memory {
		memory := ReadMemory()
		stats.Memory = &memory
	}
	if query.topic != "" {
		if _, err := a.config.Broker.FindTopic(query.topic); errors.Is(err, broker.ErrNotFound) {
			return stats
		}
	}
	var clients []api.ClientStats
	if query.clients {
		clients = publishedTo(a.config.Clients(), query.topic)
		stats.Producers = producers(clients)
	}
	stats.Topics = topicStats(a.config.Broker.Stats(query.topic, query.channel), query.clients, clients)
	return stats
}

// publishedTo puts the counts of what each client has published in order of topic, without those of
// other topics than the one asked for.
func publishedTo(clients []api.ClientStats, topic string) []api.ClientStats {
	clients = slices.Clone(clients)
	for i := range clients {
		counts := slices.Clone(clients[i].PubCounts)
		if topic != "" {
			counts = slices.DeleteFunc(counts, func(c api.PubCount) bool { return c.Topic != topic })
		}
		slices.SortFunc(counts, func(x, y api.PubCount) int { return cmp.Compare(x.Topic, y.Topic) })
		clients[i].PubCounts = counts
	}
	return clients
}

// producers returns the clients that have published, nil if none has.
func producers(clients []api.ClientStats) (all []api.ProducerStats) {
	for _, c := range clients {
		if len(c.PubCounts) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// place is where a client is subscribed.
type place struct{ topic, channel string }

func topicStats(topics []broker.TopicStats, withClients bool, clients []api.ClientStats) []api.TopicStats {
	subscribed := make(map[place][]api.ClientStats)
	for _, c := range clients {
		at := place{c.Topic, c.Channel}
		subscribed[at] = append(subscribed[at], c)
	}
	all := make([]api.TopicStats, 0, len(topics))
	for _, t := range topics {
		stats := api.TopicStats{
			TopicName:            t.Name,
			Channels:             make([]api.ChannelStats, 0, len(t.Channels)),
			Depth:                t.Depth,
			BackendDepth:         t.BackendDepth,
			MessageCount:         t.MessageCount,
			MessageBytes:         t.MessageBytes,
			Paused:               t.Paused,
			E2eProcessingLatency: latency(t.Latency),
		}
		for _, c := range t.Channels {
			channel := channelStats(c)
			if withClients {
				channel.Clients = append([]api.ClientStats{}, subscribed[place{t.Name, c.Name}]...)
			}
			stats.Channels = append(stats.Channels, channel)
		}
		all = append(all, stats)
	}
	return all
}

func channelStats(c broker.ChannelStats) api.ChannelStats {
	return api.ChannelStats{
		ChannelName:          c.Name,
		Depth:                c.Depth,
		BackendDepth:         c.BackendDepth,
		InFlightCount:        c.InFlightCount,
		DeferredCount:        c.DeferredCount,
		MessageCount:         c.MessageCount,
		ZoneLocalMsgCount:    c.FromMemory[broker.SameZone],
		RegionLocalMsgCount:  c.FromMemory[broker.SameRegion],
		GlobalMsgCount:       c.FromMemory[broker.Anywhere],
		RequeueCount:         c.RequeueCount,
		TimeoutCount:         c.TimeoutCount,
		ClientCount:          c.ClientCount,
		Paused:               c.Paused,
		E2eProcessingLatency: latency(c.Latency),
	}
}

// latency is an end-to-end processing latency as it is shown; without percentiles it is not measured.
func latency(measured quantile.Result) api.E2eProcessingLatency {
	shown := api.E2eProcessingLatency{Count: measured.Count}
	for _, p := range measured.Percentiles {
		shown.Percentiles = append(shown.Percentiles, api.LatencyPercentile{Quantile: p.Quantile, Value: float64(p.Value)})
	}
	return shown
}
