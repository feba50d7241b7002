package nsqlookupd

import (
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"nsq/internal/log"
	"nsq/internal/lookup"
	"nsq/internal/metrics"
	"nsq/nsqlookupd/registry"
)

// instruments are what the metrics of a nsqlookupd come from.
type instruments struct {
	db       *registry.RegistrationDB
	tcp      *metrics.Gate
	http     *metrics.Listener
	commands *tally // of the TCP protocol, by name
	requests *tally // of HTTP, by path
}

// tally counts by name. The names are fixed: all others, which peers may invent, count as
// metrics.Other. It is safe for concurrent use.
type tally struct{ counts map[string]*atomic.Uint64 }

func newTally(names ...string) *tally {
	t := &tally{map[string]*atomic.Uint64{metrics.Other: new(atomic.Uint64)}}
	for _, name := range names {
		t.counts[name] = new(atomic.Uint64)
	}
	return t
}

func newCommandTally() *tally {
	return newTally(lookup.CommandPing, lookup.CommandIdentify, lookup.CommandRegister, lookup.CommandUnregister)
}

func (t *tally) add(name string) {
	count, ok := t.counts[name]
	if !ok {
		count = t.counts[metrics.Other]
	}
	count.Add(1)
}

func (t *tally) show(s *metrics.Scrape, family *metrics.Family) {
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		s.Add(family, float64(t.counts[name].Load()), name)
	}
}

// counting counts the requests of a handler by path.
func (t *tally) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		t.add(req.URL.Path)
		next.ServeHTTP(w, req)
	})
}

// The table of all metrics: name, meaning, labels, and where the value comes from.

var countRows = metrics.Group[registry.Counts]{
	{Family: metrics.Gauge("nsqlookupd_topics", "Topics that are known, with or without producers."),
		Value: func(c registry.Counts) float64 { return float64(c.Topics) }},
	{Family: metrics.Gauge("nsqlookupd_channels", "Channels that are known, of all topics."),
		Value: func(c registry.Counts) float64 { return float64(c.Channels) }},
	{Family: metrics.Gauge("nsqlookupd_producers", "Connected nsqd, those included that have been silent for too long."),
		Value: func(c registry.Counts) float64 { return float64(c.Producers) }},
	{Family: metrics.Gauge("nsqlookupd_nodes", "Connected nsqd that are shown to clients."),
		Value: func(c registry.Counts) float64 { return float64(c.Nodes) }},
	{Family: metrics.Gauge("nsqlookupd_tombstones", "Topics of a producer that are hidden by a tombstone, of all producers."),
		Value: func(c registry.Counts) float64 { return float64(c.Tombstones) }},
}

var connectionRows = metrics.Group[*instruments]{
	{Family: metrics.Gauge("nsqlookupd_tcp_connections", "TCP connections that are open."),
		Value: func(i *instruments) float64 { return float64(i.tcp.Open()) }},
	{Family: metrics.Counter("nsqlookupd_tcp_connections_accepted_total", "TCP connections that have come."),
		Value: func(i *instruments) float64 { return float64(i.tcp.Accepted()) }},
	{Family: metrics.Gauge("nsqlookupd_http_connections", "HTTP connections that are open."),
		Value: func(i *instruments) float64 { return float64(i.http.Open()) }},
	{Family: metrics.Counter("nsqlookupd_http_connections_accepted_total", "HTTP connections that have come."),
		Value: func(i *instruments) float64 { return float64(i.http.Accepted()) }},
}

var (
	commandCounts = metrics.Counter("nsqlookupd_tcp_commands_total",
		"Commands of nsqd by name, those that were refused included; all that do not exist are `_other`.", "command")
	requestCounts = metrics.Counter("nsqlookupd_http_requests_total",
		"HTTP requests by path; all without a route of the API are `_other`.", "path")
)

// metricFamilies are all metrics, in the order of documents.
func metricFamilies() []*metrics.Family {
	return slices.Concat(countRows.Families(), connectionRows.Families(), []*metrics.Family{commandCounts, requestCounts})
}

// handler answers scrapes of Prometheus.
func (i *instruments) handler(logger *log.Logger) http.Handler {
	return metrics.NewHandler("nsqlookupd", metricFamilies(), func(s *metrics.Scrape) {
		countRows.Add(s, i.db.Count(time.Now()))
		connectionRows.Add(s, i)
		i.commands.show(s, commandCounts)
		i.requests.show(s, requestCounts)
	}, logger)
}
