package broker

import "nsq/internal/quantile"

// TopicStats is a topic at one moment. Counters begin at 0 with the process.
type TopicStats struct {
	Name         string
	Channels     []ChannelStats // sorted by name
	Depth        int64          // messages that wait in the topic
	BackendDepth int64          // those of them on disk
	MessageCount uint64         // messages accepted
	MessageBytes uint64         // the sum of their bodies
	FrontTime    int64          // when the next message in memory was published, Unix nanoseconds; 0 without one
	Paused       bool
	Latency      quantile.Result // of all its channels: nanoseconds from publish to FIN
}

// ChannelStats is a channel at one moment.
type ChannelStats struct {
	Name          string
	Depth         int64 // messages that wait, neither in flight nor deferred
	BackendDepth  int64 // those of them on disk
	InFlightCount int64
	DeferredCount int64
	FrontTime     int64  // when the next message in memory was published, Unix nanoseconds; 0 without one
	ReadyCount    int64  // the sum of what the clients are ready for
	MessageCount  uint64 // messages received from the topic
	DeliveryCount uint64 // messages sent to clients, as often as each was
	FinishCount   uint64
	RequeueCount  uint64
	TimeoutCount  uint64
	FromMemory    [proximities]uint64 // messages delivered from memory, by Proximity of the consumer
	ClientCount   int
	Paused        bool
	Latency       quantile.Result // nanoseconds from publish to FIN
}

// SubscriptionStats is a client of a channel at one moment.
type SubscriptionStats struct {
	Topic, Channel string
	ReadyCount     int64
	InFlightCount  int64
	MessageCount   uint64 // messages sent
	FinishCount    uint64
	RequeueCount   uint64
}

// Stats describes the topics, sorted by name. An empty name matches all; with a channel name only
// that channel is described, and only topics that have it.
func (b *Broker) Stats(topic, channel string) []TopicStats {
	all := make([]TopicStats, 0)
	for _, t := range b.Topics() {
		if topic != "" && t.name != topic {
			continue
		}
		stats := t.stats(channel)
		if channel == "" || len(stats.Channels) > 0 {
			all = append(all, stats)
		}
	}
	return all
}

func (t *Topic) stats(channel string) TopicStats {
	_, onDisk := t.queue.depth()
	stats := TopicStats{
		Name:         t.name,
		Channels:     make([]ChannelStats, 0),
		Depth:        t.Depth(),
		BackendDepth: onDisk,
		MessageCount: t.messageCount.Load(),
		MessageBytes: t.messageBytes.Load(),
		FrontTime:    t.queue.frontTime(),
		Paused:       t.paused.Load(),
	}
	windows := make([]*quantile.Window, 0, len(t.Channels()))
	for _, c := range t.Channels() {
		windows = append(windows, c.latency)
		if channel == "" || c.name == channel {
			stats.Channels = append(stats.Channels, c.stats())
		}
	}
	stats.Latency = quantile.Merge(t.broker.mono(), windows...)
	return stats
}

func (c *Channel) stats() ChannelStats {
	all, onDisk := c.queue.depth()
	subscriptions := c.Subscriptions()
	inFlight, ready := int64(0), int64(0)
	for _, s := range subscriptions {
		inFlight += s.flight.count.Load()
		ready += s.flight.readyCount()
	}
	return ChannelStats{
		Name:          c.name,
		Depth:         all,
		BackendDepth:  onDisk,
		InFlightCount: inFlight,
		DeferredCount: int64(c.deferred.len()),
		FrontTime:     c.queue.frontTime(),
		ReadyCount:    ready,
		MessageCount:  c.messageCount.Load(),
		DeliveryCount: c.deliveryCount.Load(),
		FinishCount:   c.finishCount.Load(),
		RequeueCount:  c.requeueCount.Load(),
		TimeoutCount:  c.timeoutCount.Load(),
		FromMemory:    [proximities]uint64{c.fromMemory[Anywhere].Load(), c.fromMemory[SameRegion].Load(), c.fromMemory[SameZone].Load()},
		ClientCount:   len(subscriptions),
		Paused:        c.paused.Load(),
		Latency:       c.latency.Result(c.topic.broker.mono()),
	}
}

// Stats describes the client's part in the channel.
func (s *Subscription) Stats() SubscriptionStats {
	return SubscriptionStats{
		Topic:         s.channel.topic.name,
		Channel:       s.channel.name,
		ReadyCount:    s.flight.readyCount(),
		InFlightCount: s.flight.count.Load(),
		MessageCount:  s.messageCount.Load(),
		FinishCount:   s.finishCount.Load(),
		RequeueCount:  s.requeueCount.Load(),
	}
}
