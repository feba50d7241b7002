package web

import (
	"net/url"
	"strconv"
	"time"

	"nsq/nsqadmin/graphite"
)

// outsideSpan is how far back the graphs in Graphite go.
const outsideSpan = 24 * time.Hour

// metric is what nsqd pushes, with its title here.
type metric struct {
	title, name string
	counter     bool
}

var topicMetrics = []metric{{"Depth", "depth", false}, {"Messages", "message_count", true}}

var channelMetrics = []metric{
	{"Depth", "depth", false}, {"In flight", "in_flight_count", false}, {"Deferred", "deferred_count", false},
	{"Requeued", "requeue_count", true}, {"Timed out", "timeout_count", true}, {"Messages", "message_count", true},
	{"Consumers", "clients", false},
}

var nodeMetrics = []metric{
	{"Heap objects", "heap_objects", false}, {"Heap in use", "heap_in_use_bytes", false},
	{"GC pause, 99%", "gc_pause_usec_99", false}, {"GC runs", "gc_runs", true},
}

// outside links to a graph in Graphite for each metric; nil where there is no Graphite.
func (s *site) outside(metrics []metric, expression func(*graphite.Settings, string) string) (all []choice) {
	g := s.Graphite
	if !g.Enabled() {
		return nil
	}
	base := s.links.To("") // proxied by us
	if !g.Proxied {
		if base = webAddress(g.URL); base == "" {
			return nil
		}
	}
	address, err := url.Parse(base)
	if err != nil {
		return nil
	}
	address = address.JoinPath("render")
	address.User = nil // a page tells nobody how to log in
	for _, m := range metrics {
		address.RawQuery = url.Values{
			"target": {g.Summarized(expression(&g, m.name), m.counter)},
			"from":   {"-" + strconv.Itoa(int(outsideSpan/time.Hour)) + "h"}, "until": {"-1min"},
			"width": {"800"}, "height": {"450"}, "yMin": {"0"},
			"lineMode": {"connected"}, "drawNullAsZero": {"false"},
		}.Encode()
		all = append(all, choice{Text: m.title, Href: address.String()})
	}
	return all
}

func (s *site) topicGraphs(topic string) []choice {
	return s.outside(topicMetrics, func(g *graphite.Settings, name string) string { return g.Topic(graphite.AllHosts, topic, name) })
}

func (s *site) channelGraphs(topic, channel string) []choice {
	return s.outside(channelMetrics, func(g *graphite.Settings, name string) string {
		return g.Channel(graphite.AllHosts, topic, channel, name)
	})
}

func (s *site) nodeGraphs(node string) []choice {
	return s.outside(nodeMetrics, func(g *graphite.Settings, name string) string { return g.Memory(node, name) })
}
