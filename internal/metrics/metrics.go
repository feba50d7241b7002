// Package metrics shows what a daemon counts to Prometheus, over HTTP. A daemon describes its metrics in
// tables of families and fills a scrape with values when one is asked for; nothing is kept between
// scrapes, so what has gone is not shown any more.
//
// It is the one place that knows the client library. It knows no daemon, and nothing of what the
// values mean.
package metrics

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nsq/internal/log"
	"nsq/internal/metrics/histogram"
	"nsq/internal/version"
)

const (
	// maxScrapes is how many scrapes may run at a time; more are refused with 503.
	maxScrapes = 4
	// maxLogged bounds, in bytes, what one failed scrape writes to the log.
	maxLogged = 1024
)

// NewHandler returns what answers scrapes: with the families, one more that tells the version, and
// those of the Go runtime and of the process. collect is called for each scrape, by several
// goroutines at a time. A table that contradicts itself is an error of the program, and panics.
func NewHandler(program string, families []*Family, collect func(*Scrape), logger *log.Logger) http.Handler {
	build := BuildInfo(program)
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{append(slices.Clone(families), build), func(s *Scrape) {
			s.Add(build, 1, version.Version, runtime.Version())
			collect(s)
		}},
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            errorLog{logger},
		ErrorHandling:       promhttp.ContinueOnError, // what can be shown is
		OfferedCompressions: []promhttp.Compression{promhttp.Identity, promhttp.Gzip},
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
	})
}

// collector implements prometheus.Collector.
type collector struct {
	families []*Family
	collect  func(*Scrape)
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.families {
		out <- f.desc
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) { c.collect(&Scrape{out}) }

// Scrape takes the values of one moment. It belongs to the call of collect.
type Scrape struct{ out chan<- prometheus.Metric }

// Add shows a value with the values of the family's labels, in their order. NaN is no value.
func (s *Scrape) Add(f *Family, value float64, labels ...string) {
	if math.IsNaN(value) {
		return
	}
	s.send(prometheus.NewConstMetric(f.desc, f.Kind.simple(), value, labels...))
}

// AddHistogram is Add for a family of durations.
func (s *Scrape) AddHistogram(f *Family, h histogram.Snapshot, labels ...string) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	for i, bound := range h.Bounds {
		buckets[bound] = h.Counts[i]
	}
	s.send(prometheus.NewConstHistogram(f.desc, h.Count, h.Sum, buckets, labels...))
}

// send passes a metric on, or that it could not be made, which the log is told.
func (s *Scrape) send(m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	s.out <- m
}

// errorLog passes what the library has to say on to our log, in one line.
type errorLog struct{ log *log.Logger }

// Println implements promhttp.Logger.
func (l errorLog) Println(values ...any) {
	text := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintln(values...)), "\n", "; ")
	if len(text) > maxLogged {
		text = text[:maxLogged] + "..."
	}
	l.log.Warnf("metrics: %s", text)
}
