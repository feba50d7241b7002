package httpd

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/metrics"
	"nsq/internal/metrics/histogram"
	"nsq/internal/quantile"
	"nsq/nsqd/broker"
)

// MetricsConfig is where metrics come from. All of it has to be there.
type MetricsConfig struct {
	Broker     *broker.Broker
	Deliveries *histogram.Durations // the broker's
	Disk       *diskq.Meter         // of its store
	TCP        *metrics.Gate
	HTTP       []*metrics.Listener // those there are

	StartTime time.Time // of the daemon
	// MaxTopics bounds how many topics are shown one by one, and how many channels of all topics
	// together; the others are summed up. 0 is no limit.
	MaxTopics int
	Logger    *log.Logger
}

// NewMetrics returns what answers scrapes of Prometheus. A scrape takes one snapshot of the broker,
// as /stats does.
func NewMetrics(config MetricsConfig) http.Handler {
	return metrics.NewHandler("nsqd", metricFamilies(), func(s *metrics.Scrape) { scrapeNode(s, &config) }, config.Logger)
}

// topicAt and channelAt are statistics at a time, in nanoseconds since the Unix epoch.
type topicAt struct {
	broker.TopicStats
	at int64
}

type channelAt struct {
	broker.ChannelStats
	at int64
}

func scrapeNode(s *metrics.Scrape, config *MetricsConfig) {
	stats := config.Broker.Stats("", "")
	nodeRows.Add(s, &nodeNow{config, stats})
	s.AddHistogram(deliveryLatency, config.Deliveries.Snapshot())
	s.AddHistogram(diskWrites, config.Disk.Writes())
	s.AddHistogram(diskSyncs, config.Disk.Syncs())
	for _, l := range config.HTTP {
		httpRows.Add(s, l, l.Name())
	}
	scrapeTopics(s, stats, config.MaxTopics, time.Now().UnixNano())
}

func scrapeTopics(s *metrics.Scrape, stats []broker.TopicStats, limit int, at int64) {
	topics := make([]*topicAt, len(stats))
	for i := range stats {
		topics[i] = &topicAt{stats[i], at}
	}
	limit = cmp.Or(limit, math.MaxInt)
	each, rest := metrics.Split(topics, limit, func(t *topicAt) string { return t.Name })
	room := limit // for channels
	for _, t := range each {
		topicRows.Add(s, t, t.Name)
		scrapeLatency(s, topicLatency, topicLatencyCount, t.Latency, t.Name)
		room -= scrapeChannels(s, t, room)
	}
	topicRows.AddSum(s, rest, metrics.Other)
	var channels []*channelAt
	for _, t := range rest {
		channels = append(channels, t.channels()...)
	}
	channelRows.AddSum(s, channels, metrics.Other, metrics.Other)
}

// scrapeChannels shows a topic's channels and returns how many there were one by one, limit at most.
func scrapeChannels(s *metrics.Scrape, t *topicAt, limit int) int {
	each, rest := metrics.Split(t.channels(), limit, func(c *channelAt) string { return c.Name })
	for _, c := range each {
		channelRows.Add(s, c, t.Name, c.Name)
		scrapeLatency(s, channelLatency, channelLatencyCount, c.Latency, t.Name, c.Name)
	}
	channelRows.AddSum(s, rest, t.Name, metrics.Other)
	return len(each)
}

func (t *topicAt) channels() []*channelAt {
	channels := make([]*channelAt, len(t.Channels))
	for i := range t.Channels {
		channels[i] = &channelAt{t.Channels[i], t.at}
	}
	return channels
}

// scrapeLatency shows percentiles, if they are measured. Those of several cannot be summed up.
func scrapeLatency(s *metrics.Scrape, values, count *metrics.Family, measured quantile.Result, labels ...string) {
	if len(measured.Percentiles) == 0 {
		return
	}
	s.Add(count, float64(measured.Count), labels...)
	for i, p := range measured.Percentiles {
		repeated := slices.ContainsFunc(measured.Percentiles[:i], func(q quantile.Percentile) bool { return q.Quantile == p.Quantile })
		if repeated || measured.Count == 0 {
			continue
		}
		percentile := strconv.FormatFloat(p.Quantile, 'g', -1, 64)
		s.Add(values, seconds(p.Value), append(slices.Clip(labels), percentile)...)
	}
}

func seconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e9 }

// age is how old the message is that is next in memory. Nothing is known of those that wait on disk.
func age(front, onDisk, at int64) float64 {
	switch {
	case front != 0:
		return seconds(max(at-front, 0))
	case onDisk > 0:
		return math.NaN()
	}
	return 0
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
