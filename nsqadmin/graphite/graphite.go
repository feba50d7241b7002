// Package graphite writes the expressions by which Graphite finds what nsqds push to statsd, asks it
// for rates, and passes requests for its images on. It draws nothing and knows no page.
//
// Source: nsqadmin spec, section 12.
package graphite

import (
	"strconv"
	"strings"
	"time"
)

// Settings say where Graphite is and how the keys are built.
type Settings struct {
	URL           string        // where the browser finds it; empty when there is none or it is proxied
	Proxied       bool          // the browser asks /render below the base path instead
	CounterFormat string        // with %s for the key; empty: the key as it is
	GaugeFormat   string        // likewise
	Prefix        string        // with %s for the host, as nsqd has it
	Interval      time.Duration // between two pushes
}

// Enabled says whether there is a Graphite.
func (s *Settings) Enabled() bool { return s.URL != "" || s.Proxied }

// AllHosts as a node stands for every nsqd.
const AllHosts = "*"

// Counters; every other metric is a gauge.
var counters = map[string]bool{"message_count": true, "requeue_count": true, "timeout_count": true, "gc_runs": true}

// Topic is the expression of a topic's metric, summed over the nodes.
func (s *Settings) Topic(node, topic, metric string) string {
	return "sumSeries(" + s.format(metric, s.prefix(node)+"topic."+name(topic)+"."+metric) + ")"
}

// Channel is the expression of a channel's metric, summed over the nodes.
func (s *Settings) Channel(node, topic, channel, metric string) string {
	key := s.prefix(node) + "topic." + name(topic) + ".channel." + name(channel) + "." + metric
	return "sumSeries(" + s.format(metric, key) + ")"
}

// Memory is the expression of a node's metric.
func (s *Settings) Memory(node, metric string) string {
	return s.format(metric, s.prefix(node)+"mem."+metric)
}

// Counter is the expression of all messages in all channels.
func (s *Settings) Counter() string {
	return "sumSeries(" + s.format("message_count", s.prefix(AllHosts)+"topic.*.channel.*.message_count") + ")"
}

// Latency is the expression of an end-to-end latency in milliseconds; the channel may be empty. Over
// all hosts it is the average.
func (s *Settings) Latency(node, topic, channel string, quantile float64) string {
	key := s.prefix(node) + "topic." + name(topic)
	if channel != "" {
		key += ".channel." + name(channel)
	}
	// nsqd rounds a percentile to whole percent in its names.
	key += ".e2e_processing_latency_" + strconv.FormatFloat(quantile*100, 'f', 0, 64)
	series := wrap(s.GaugeFormat, key)
	if node == AllHosts {
		series = "averageSeries(" + series + ")"
	}
	return "scale(" + series + ",0.000001)"
}

// Summarized is what an image is drawn from: the expression averaged over intervals; with perSecond,
// for counters, as a rate.
func (s *Settings) Summarized(expression string, perSecond bool) string {
	seconds := strconv.Itoa(s.seconds())
	if perSecond {
		expression = "scale(" + expression + "," + strconv.FormatFloat(1/float64(s.seconds()), 'g', -1, 64) + ")"
	}
	return `summarize(` + expression + `,"` + seconds + `sec","avg")`
}

// seconds is the interval, at least 1.
func (s *Settings) seconds() int { return max(int(s.Interval/time.Second), 1) }

func (s *Settings) format(metric, key string) string {
	if counters[metric] {
		return wrap(s.CounterFormat, key)
	}
	return wrap(s.GaugeFormat, key)
}

// wrap puts the key into a format; an empty one changes nothing.
func wrap(format, key string) string {
	if format == "" {
		return key
	}
	return strings.ReplaceAll(format, "%s", key)
}

// prefix ends with a dot, unless it is empty.
func (s *Settings) prefix(node string) string {
	host := strings.NewReplacer(".", "_", ":", "_").Replace(node)
	prefix := strings.ReplaceAll(s.Prefix, "%s", host)
	if prefix == "" || strings.HasSuffix(prefix, ".") {
		return prefix
	}
	return prefix + "."
}

// name is a topic or channel as statsd daemons write it.
func name(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '_'
		case r == '/':
			return '-'
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return -1
	}, text)
}
