package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"nsq/internal/api"
	"nsq/internal/protocol"
)

// NodeStats are the statistics of one nsqd.
type NodeStats struct {
	Producer Producer
	At       time.Time         // when the answer was here
	Health   string            // as the nsqd says
	Started  time.Time         // zero where the nsqd does not say
	Topics   []*api.AdminTopic // parts, in the order of the answer
}

// Selection says which part of the statistics is asked for.
type Selection struct {
	Topic   string // empty: all
	Channel string // empty: all
	Clients bool   // with the clients of the channels
}

// Query is the selection as nsqd takes it.
func (s Selection) Query() url.Values {
	query := url.Values{"format": {"json"}}
	if s.Topic != "" {
		query.Set("topic", s.Topic)
	}
	if s.Channel != "" {
		query.Set("channel", s.Channel)
	}
	if !s.Clients {
		query.Set("include_clients", "false")
	}
	return query
}

// Stats asks the producers for their statistics, in the order of the producers. Topics that were not
// asked for, which an old nsqd answers nevertheless, are left out.
func (c *Cluster) Stats(ctx context.Context, producers []Producer, query url.Values) ([]NodeStats, Failures) {
	addresses := make([]string, len(producers))
	byAddress := make(map[string]Producer, len(producers))
	for i, p := range producers {
		addresses[i] = p.Address
		byAddress[p.Address] = p
	}
	answers, failures := ask[timed](ctx, c, addresses, "/stats", query)
	stats := make([]NodeStats, 0, len(answers))
	for i := range answers {
		p := byAddress[answers[i].Address]
		stats = append(stats, parts(p, &answers[i].Value, query.Get("topic")))
	}
	return stats, failures
}

// timed are statistics with the time at which they came.
type timed struct {
	api.Stats
	at time.Time
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *timed) UnmarshalJSON(text []byte) error {
	t.at = time.Now()
	return json.Unmarshal(text, &t.Stats)
}

// StatsOfAll is Stats where at least one has to answer, unless there is nobody to ask; else the error
// is an *Unreachable.
func (c *Cluster) StatsOfAll(ctx context.Context, producers []Producer, s Selection) ([]NodeStats, Failures, error) {
	stats, failures := c.Stats(ctx, producers, s.Query())
	if len(stats) == 0 && len(failures) > 0 {
		return nil, nil, &Unreachable{Kind: NSQD, Failures: failures}
	}
	return stats, failures, nil
}

// parts turns the answer of a node into ours.
func parts(p Producer, answer *timed, topic string) NodeStats {
	s := NodeStats{Producer: p, At: answer.at, Health: answer.Health}
	if answer.StartTime > 0 {
		s.Started = time.Unix(answer.StartTime, 0)
	}
	for i := range answer.Topics {
		t := &answer.Topics[i]
		if protocol.ValidName(t.TopicName) && (topic == "" || t.TopicName == topic) {
			s.Topics = append(s.Topics, topicPart(p, t, answer.at))
		}
	}
	return s
}

func topicPart(p Producer, t *api.TopicStats, now time.Time) *api.AdminTopic {
	part := &api.AdminTopic{
		Node:         p.Address,
		Hostname:     p.Hostname,
		TopicName:    t.TopicName,
		Depth:        t.Depth,
		MemoryDepth:  t.Depth - t.BackendDepth,
		BackendDepth: t.BackendDepth,
		MessageCount: t.MessageCount,
		Channels:     make([]*api.AdminChannel, 0, len(t.Channels)),
		Paused:       t.Paused,
		Latency:      latencyPart(&t.E2eProcessingLatency),
	}
	for i := range t.Channels {
		if c := &t.Channels[i]; protocol.ValidName(c.ChannelName) {
			part.Channels = append(part.Channels, channelPart(p, t.TopicName, c, now))
		}
	}
	return part
}

func channelPart(p Producer, topic string, c *api.ChannelStats, now time.Time) *api.AdminChannel {
	part := &api.AdminChannel{
		Node:                p.Address,
		Hostname:            p.Hostname,
		TopicName:           topic,
		ChannelName:         c.ChannelName,
		Depth:               c.Depth,
		MemoryDepth:         c.Depth - c.BackendDepth,
		BackendDepth:        c.BackendDepth,
		InFlightCount:       c.InFlightCount,
		DeferredCount:       c.DeferredCount,
		RequeueCount:        c.RequeueCount,
		TimeoutCount:        c.TimeoutCount,
		MessageCount:        c.MessageCount,
		DeliveryMsgCount:    c.ZoneLocalMsgCount + c.RegionLocalMsgCount + c.GlobalMsgCount,
		ZoneLocalMsgCount:   c.ZoneLocalMsgCount,
		RegionLocalMsgCount: c.RegionLocalMsgCount,
		GlobalMsgCount:      c.GlobalMsgCount,
		ClientCount:         c.ClientCount,
		Paused:              c.Paused,
		Latency:             latencyPart(&c.E2eProcessingLatency),
	}
	for i := range c.Clients {
		part.Clients = append(part.Clients, clientOf(p, &c.Clients[i], now))
	}
	sortClients(part.Clients)
	return part
}

func clientOf(p Producer, c *api.ClientStats, now time.Time) *api.AdminClient {
	return &api.AdminClient{
		Node:            p.Address,
		RemoteAddress:   c.RemoteAddress,
		Version:         c.Version,
		ClientID:        c.ClientID,
		Hostname:        c.Hostname,
		UserAgent:       c.UserAgent,
		ConnectTS:       c.ConnectTS,
		Connected:       (now.Unix() - c.ConnectTS) * int64(time.Second),
		InFlightCount:   c.InFlightCount,
		ReadyCount:      c.ReadyCount,
		FinishCount:     c.FinishCount,
		RequeueCount:    c.RequeueCount,
		MessageCount:    c.MessageCount,
		SampleRate:      c.SampleRate,
		Deflate:         c.Deflate,
		Snappy:          c.Snappy,
		Authed:          c.Authed,
		AuthIdentity:    c.AuthIdentity,
		AuthIdentityURL: c.AuthIdentityURL,
		TLS:             c.TLS,
		TLSCipherSuite:  c.TLSCipherSuite,
		TLSVersion:      c.TLSVersion,
		TLSProtocol:     c.TLSNegotiatedProtocol,
		TLSMutual:       c.TLSNegotiatedProtocolIsMutual,
		NodeRegion:      p.Region,
		NodeZone:        p.Zone,
		TopologyRegion:  c.TopologyRegion,
		TopologyZone:    c.TopologyZone,
	}
}

// sortClients puts the clients of each node in order of nearness.
func sortClients(clients []*api.AdminClient) {
	slices.SortStableFunc(clients, func(a, b *api.AdminClient) int {
		return cmp.Or(
			cmp.Compare(a.Node, b.Node),
			cmp.Compare(distance(a), distance(b)),
			cmp.Compare(a.TopologyRegion, b.TopologyRegion),
			cmp.Compare(a.TopologyZone, b.TopologyZone),
		)
	})
}

// distance is 0 within the zone of the node, 1 within its region, 2 elsewhere.
func distance(c *api.AdminClient) int {
	switch {
	case c.TopologyRegion != c.NodeRegion:
		return 2
	case c.TopologyZone != c.NodeZone:
		return 1
	}
	return 0
}

// What is believed of a latency. With more, a node could make an average infinite, for which JSON has
// no word.
const (
	maxPercentiles = 64 // people configure a few
	maxCount       = 1 << 40
	maxLatency     = 1e18 // nanoseconds
)

func latencyPart(l *api.E2eProcessingLatency) *api.AdminLatency {
	count := min(max(l.Count, 0), maxCount)
	part := &api.AdminLatency{Count: count}
	for _, p := range l.Percentiles[:min(len(l.Percentiles), maxPercentiles)] {
		value := min(max(p.Value, 0), maxLatency)
		part.Percentiles = append(part.Percentiles, &api.AdminPercentile{
			Quantile: p.Quantile, Value: &value, Average: value, Max: value, Min: value, Count: count,
		})
	}
	return part
}
