package cluster

import (
	"cmp"
	"slices"

	"nsq/internal/api"
)

// everywhere is the node of a sum.
const everywhere = "*"

// SumTopic adds up the parts of a topic, which stay as they are. Without any part there are only
// zeros.
func SumTopic(name string, parts []*api.AdminTopic) *api.AdminTopic {
	sum := &api.AdminTopic{TopicName: name}
	if len(parts) == 0 {
		return sum
	}
	sum.Node, sum.Nodes = everywhere, slices.Clone(parts)
	slices.SortStableFunc(sum.Nodes, func(a, b *api.AdminTopic) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.Node, b.Node))
	})
	sum.Latency = newSumLatency(name, "")
	for _, p := range sum.Nodes {
		sum.Depth += p.Depth
		sum.MemoryDepth += p.MemoryDepth
		sum.BackendDepth += p.BackendDepth
		sum.MessageCount += p.MessageCount
		sum.DeliveryMsgCount += p.DeliveryMsgCount
		sum.ZoneLocalMsgCount += p.ZoneLocalMsgCount
		sum.RegionLocalMsgCount += p.RegionLocalMsgCount
		sum.GlobalMsgCount += p.GlobalMsgCount
		sum.Paused = sum.Paused || p.Paused
		addLatency(sum.Latency, p.Latency)
	}
	sum.Channels = sumChannels(name, sum.Nodes)
	return sum
}

// sumChannels adds up channels of the same name, in the order in which they appear.
func sumChannels(topic string, nodes []*api.AdminTopic) (sums []*api.AdminChannel) {
	var names []string
	parts := make(map[string][]*api.AdminChannel)
	for _, n := range nodes {
		for _, c := range n.Channels {
			if parts[c.ChannelName] == nil {
				names = append(names, c.ChannelName)
			}
			parts[c.ChannelName] = append(parts[c.ChannelName], c)
		}
	}
	for _, name := range names {
		sums = append(sums, SumChannel(topic, name, parts[name]))
	}
	return sums
}

// SumChannel adds up the parts of a channel, which stay as they are. Without any part there are only
// zeros.
func SumChannel(topic, name string, parts []*api.AdminChannel) *api.AdminChannel {
	sum := &api.AdminChannel{TopicName: topic, ChannelName: name}
	if len(parts) == 0 {
		return sum
	}
	sum.Node, sum.Nodes = everywhere, slices.Clone(parts)
	slices.SortStableFunc(sum.Nodes, func(a, b *api.AdminChannel) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.Node, b.Node))
	})
	sum.Latency = newSumLatency(topic, name)
	for _, p := range sum.Nodes {
		addChannel(sum, p)
	}
	sortClients(sum.Clients)
	return sum
}

func addChannel(sum, p *api.AdminChannel) {
	sum.Depth += p.Depth
	sum.MemoryDepth += p.MemoryDepth
	sum.BackendDepth += p.BackendDepth
	sum.InFlightCount += p.InFlightCount
	sum.DeferredCount += p.DeferredCount
	sum.RequeueCount += p.RequeueCount
	sum.TimeoutCount += p.TimeoutCount
	sum.MessageCount += p.MessageCount
	sum.DeliveryMsgCount += p.DeliveryMsgCount
	sum.ZoneLocalMsgCount += p.ZoneLocalMsgCount
	sum.RegionLocalMsgCount += p.RegionLocalMsgCount
	sum.GlobalMsgCount += p.GlobalMsgCount
	sum.ClientCount += p.ClientCount
	sum.Clients = append(sum.Clients, p.Clients...)
	sum.Paused = sum.Paused || p.Paused
	addLatency(sum.Latency, p.Latency)
}

func newSumLatency(topic, channel string) *api.AdminLatency {
	return &api.AdminLatency{Topic: topic, Channel: channel, Host: everywhere}
}

// addLatency averages percentiles weighted by the messages behind them, which is an approximation.
func addLatency(sum, part *api.AdminLatency) {
	if part == nil {
		return
	}
	sum.Count += part.Count
	for _, p := range part.Percentiles {
		i := slices.IndexFunc(sum.Percentiles, func(s *api.AdminPercentile) bool { return s.Quantile == p.Quantile })
		if i < 0 {
			sum.Percentiles = append(sum.Percentiles, &api.AdminPercentile{Quantile: p.Quantile})
			i = len(sum.Percentiles) - 1
		}
		addPercentile(sum.Percentiles[i], p)
	}
}

func addPercentile(sum, p *api.AdminPercentile) {
	if p.Count <= 0 {
		return // the quantile of nothing says nothing
	}
	if sum.Count == 0 {
		sum.Min = p.Min
	}
	sum.Count += p.Count
	sum.Average += (p.Average - sum.Average) * float64(p.Count) / float64(sum.Count)
	sum.Max = max(sum.Max, p.Max)
	sum.Min = min(sum.Min, p.Min)
}
