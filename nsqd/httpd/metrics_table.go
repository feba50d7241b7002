package httpd

import (
	"slices"

	"nsq/internal/metrics"
	"nsq/nsqd/broker"
)

// The tables of all metrics: name, meaning, labels, and where the value comes from.

// nodeNow is the daemon at one moment.
type nodeNow struct {
	*MetricsConfig
	topics []broker.TopicStats
}

func (n *nodeNow) channels() (count int) {
	for i := range n.topics {
		count += len(n.topics[i].Channels)
	}
	return count
}

var nodeRows = metrics.Group[*nodeNow]{
	{Family: metrics.Gauge("nsqd_healthy", "1 if the node can keep messages, as /ping says, else 0."),
		Value: func(n *nodeNow) float64 { return truth(n.Broker.Health() == nil) }},
	{Family: metrics.Gauge("nsqd_start_time_seconds", "When the daemon was started, in seconds since the Unix epoch."),
		Value: func(n *nodeNow) float64 { return seconds(n.StartTime.UnixNano()) }},
	{Family: metrics.Gauge("nsqd_topics", "Topics, those included that are summed up."),
		Value: func(n *nodeNow) float64 { return float64(len(n.topics)) }},
	{Family: metrics.Gauge("nsqd_channels", "Channels of all topics, those included that are summed up."),
		Value: func(n *nodeNow) float64 { return float64(n.channels()) }},
	{Family: metrics.Counter("nsqd_disk_write_errors_total", "Writes of messages that the disk has refused."),
		Value: func(n *nodeNow) float64 { return float64(n.Disk.WriteErrors()) }},
	{Family: metrics.Counter("nsqd_disk_sync_errors_total", "Syncs of disk queues that have failed, tries again included."),
		Value: func(n *nodeNow) float64 { return float64(n.Disk.SyncErrors()) }},
	{Family: metrics.Gauge("nsqd_tcp_connections", "TCP connections that are open."),
		Value: func(n *nodeNow) float64 { return float64(n.TCP.Open()) }},
	{Family: metrics.Counter("nsqd_tcp_connections_accepted_total", "TCP connections that have come, those refused included."),
		Value: func(n *nodeNow) float64 { return float64(n.TCP.Accepted()) }},
	{Family: metrics.Counter("nsqd_tcp_connections_refused_total", "TCP connections that have come while --max-connections were open."),
		Value: func(n *nodeNow) float64 { return float64(n.TCP.Refused()) }},
}

var (
	deliveryLatency = metrics.Histogram("nsqd_delivery_latency_seconds",
		"Time from the publishing of a message to its first delivery on each channel, deferral included.")
	diskWrites = metrics.Histogram("nsqd_disk_write_seconds",
		"Time of a write of a batch of messages to a disk queue, if it went well; the syncs in between of the queue itself show here.")
	diskSyncs = metrics.Histogram("nsqd_disk_sync_seconds",
		"Time to make a disk queue durable when it is closed or emptied, if it went well.")
)

var httpRows = metrics.Group[*metrics.Listener]{
	{Family: metrics.Gauge("nsqd_http_connections", "HTTP connections that are open.", "listener"),
		Value: func(l *metrics.Listener) float64 { return float64(l.Open()) }},
	{Family: metrics.Counter("nsqd_http_connections_accepted_total", "HTTP connections that have come.", "listener"),
		Value: func(l *metrics.Listener) float64 { return float64(l.Accepted()) }},
}

const ageHelp = "Age of the message that is next in memory, 0 if none waits; no value while all that wait are on disk."

var topicRows = metrics.Group[*topicAt]{
	{Family: metrics.Gauge("nsqd_topic_depth", "Messages that wait in the topic itself.", "topic"),
		Value: func(t *topicAt) float64 { return float64(t.Depth) }},
	{Family: metrics.Gauge("nsqd_topic_backend_depth", "Messages that wait in the topic itself, on disk.", "topic"),
		Value: func(t *topicAt) float64 { return float64(t.BackendDepth) }},
	{Family: metrics.Gauge("nsqd_topic_oldest_message_age_seconds", ageHelp, "topic"), Greatest: true,
		Value: func(t *topicAt) float64 { return age(t.FrontTime, t.BackendDepth, t.at) }},
	{Family: metrics.Counter("nsqd_topic_messages_total", "Messages accepted from publishers.", "topic"),
		Value: func(t *topicAt) float64 { return float64(t.MessageCount) }},
	{Family: metrics.Counter("nsqd_topic_message_bytes_total", "Bytes of the bodies of the messages accepted.", "topic"),
		Value: func(t *topicAt) float64 { return float64(t.MessageBytes) }},
	{Family: metrics.Gauge("nsqd_topic_paused", "1 if the topic is paused, else 0; of several the number that is.", "topic"),
		Value: func(t *topicAt) float64 { return truth(t.Paused) }},
}

var (
	topicLatency = metrics.Gauge("nsqd_topic_e2e_latency_seconds",
		"Percentile of the time from publish to FIN on any channel of the topic, over the window of --e2e-processing-latency-window-time.",
		"topic", "percentile")
	topicLatencyCount = metrics.Gauge("nsqd_topic_e2e_latency_messages",
		"Messages that the percentiles of the topic are made of.", "topic")
)

var channelRows = metrics.Group[*channelAt]{
	{Family: metrics.Gauge("nsqd_channel_depth", "Messages that wait, neither in flight nor deferred.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.Depth) }},
	{Family: metrics.Gauge("nsqd_channel_backend_depth", "Messages that wait on disk.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.BackendDepth) }},
	{Family: metrics.Gauge("nsqd_channel_oldest_message_age_seconds", ageHelp, "topic", "channel"), Greatest: true,
		Value: func(c *channelAt) float64 { return age(c.FrontTime, c.BackendDepth, c.at) }},
	{Family: metrics.Gauge("nsqd_channel_in_flight", "Messages in flight.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.InFlightCount) }},
	{Family: metrics.Gauge("nsqd_channel_deferred", "Deferred messages.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.DeferredCount) }},
	{Family: metrics.Counter("nsqd_channel_messages_total", "Messages received from the topic.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.MessageCount) }},
	{Family: metrics.Counter("nsqd_channel_deliveries_total", "Messages sent to clients, as often as each was.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.DeliveryCount) }},
	{Family: metrics.Counter("nsqd_channel_zone_local_deliveries_total", "Deliveries from memory to clients of the same zone.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.FromMemory[broker.SameZone]) }},
	{Family: metrics.Counter("nsqd_channel_region_local_deliveries_total", "Deliveries from memory to clients of the same region and another zone.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.FromMemory[broker.SameRegion]) }},
	{Family: metrics.Counter("nsqd_channel_global_deliveries_total", "Deliveries from memory to all other clients.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.FromMemory[broker.Anywhere]) }},
	{Family: metrics.Counter("nsqd_channel_finishes_total", "Messages that clients have finished.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.FinishCount) }},
	{Family: metrics.Counter("nsqd_channel_requeues_total", "Messages that clients have requeued.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.RequeueCount) }},
	{Family: metrics.Counter("nsqd_channel_timeouts_total", "Messages in flight that have timed out.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.TimeoutCount) }},
	{Family: metrics.Gauge("nsqd_channel_clients", "Clients that are subscribed.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.ClientCount) }},
	{Family: metrics.Gauge("nsqd_channel_ready", "Sum of the RDY counts of the clients.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return float64(c.ReadyCount) }},
	{Family: metrics.Gauge("nsqd_channel_paused", "1 if the channel is paused, else 0; of several the number that is.", "topic", "channel"),
		Value: func(c *channelAt) float64 { return truth(c.Paused) }},
}

var (
	channelLatency = metrics.Gauge("nsqd_channel_e2e_latency_seconds",
		"Percentile of the time from publish to FIN, over the window of --e2e-processing-latency-window-time.",
		"topic", "channel", "percentile")
	channelLatencyCount = metrics.Gauge("nsqd_channel_e2e_latency_messages",
		"Messages that the percentiles of the channel are made of.", "topic", "channel")
)

// metricFamilies are all metrics, in the order of documents.
func metricFamilies() []*metrics.Family {
	return slices.Concat(
		nodeRows.Families(),
		[]*metrics.Family{deliveryLatency, diskWrites, diskSyncs},
		httpRows.Families(),
		topicRows.Families(),
		[]*metrics.Family{topicLatency, topicLatencyCount},
		channelRows.Families(),
		[]*metrics.Family{channelLatency, channelLatencyCount},
	)
}
