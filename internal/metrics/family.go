package metrics

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is the type of a family, as documents name it.
type Kind string

const (
	counter   Kind = "counter"
	gauge     Kind = "gauge"
	durations Kind = "histogram"
)

// simple is the form of a single value.
func (k Kind) simple() prometheus.ValueType {
	if k == counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// Family describes all values of one name. It must not be changed.
type Family struct {
	Kind   Kind
	Name   string
	Help   string // in full sentences
	Labels []string
	desc   *prometheus.Desc
}

// Counter describes numbers that only grow; the name ends with _total.
func Counter(name, help string, labels ...string) *Family {
	return newFamily(counter, name, help, labels)
}

// Gauge describes numbers that go up and down.
func Gauge(name, help string, labels ...string) *Family {
	return newFamily(gauge, name, help, labels)
}

// Histogram describes durations; the name ends with _seconds.
func Histogram(name, help string, labels ...string) *Family {
	return newFamily(durations, name, help, labels)
}

func newFamily(kind Kind, name, help string, labels []string) *Family {
	return &Family{kind, name, help, labels, prometheus.NewDesc(name, help, labels, nil)}
}

// BuildInfo is the family that NewHandler adds for its program.
func BuildInfo(program string) *Family {
	return Gauge(program+"_build_info", "The version of the program and that of Go, as labels of a 1.", "version", "goversion")
}

// Document is the table of the families as a document shows it, in the form of Markdown.
func Document(families []*Family) string {
	var text strings.Builder
	text.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range families {
		labels := ""
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, labels, f.Help)
	}
	return text.String()
}
