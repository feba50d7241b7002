// Package metricstest reads in tests what a daemon answers to a scrape, with the parser and the rules of
// Prometheus itself.
package metricstest

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"nsq/internal/metrics"
)

// Values are the values of a scrape. A key is name{label="value",...} with the labels in order of
// name, without braces if there are none; a histogram has those of its name with _count and _sum, and
// with _bucket and the label le.
type Values map[string]float64

// Parse reads an answer in the text format. It fails the test for one that Prometheus would refuse.
func Parse(t testing.TB, text string) Values {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("parse metrics: %v", err)
	}
	values := make(Values)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			values.add(name, m)
		}
	}
	return values
}

func (v Values) add(name string, m *dto.Metric) {
	h := m.GetHistogram()
	if h == nil {
		v[key(name, m.GetLabel())] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		return
	}
	v[key(name+"_count", m.GetLabel())] = float64(h.GetSampleCount())
	v[key(name+"_sum", m.GetLabel())] = h.GetSampleSum()
	for _, b := range h.GetBucket() {
		le, bound := "le", fmt.Sprint(b.GetUpperBound())
		v[key(name+"_bucket", append(slices.Clip(m.GetLabel()), &dto.LabelPair{Name: &le, Value: &bound}))] = float64(b.GetCumulativeCount())
	}
}

func key(name string, labels []*dto.LabelPair) string {
	labels = slices.SortedFunc(slices.Values(labels), func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var texts []string
	for _, l := range labels {
		texts = append(texts, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if texts == nil {
		return name
	}
	return name + "{" + strings.Join(texts, ",") + "}"
}

// Want fails the test where a value is not as wanted.
func (v Values) Want(t testing.TB, want Values) {
	t.Helper()
	for key, value := range want {
		if got, ok := v[key]; !ok || got != value {
			t.Errorf("%s is %v (there: %v), want %v", key, got, ok, value)
		}
	}
}

// Absent fails the test where there is a value whose key begins with one of these.
func (v Values) Absent(t testing.TB, prefixes ...string) {
	t.Helper()
	for key := range v {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			t.Errorf("%s is there", key)
		}
	}
}

// Lint fails the test where a name or a help of ours is against the conventions of Prometheus.
func Lint(t testing.TB, text string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("lint metrics: %v", err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "nsq") { // the others are those of the client library
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// Documented fails the test unless the document has the table of just these families of the program.
func Documented(t testing.TB, file, program string, families []*metrics.Family) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := metrics.Document(append(slices.Clone(families), metrics.BuildInfo(program)))
	if !strings.Contains(string(text), table) {
		t.Errorf("%s has not the table of %s, which is\n%s", file, program, table)
	}
	row := "| `" + program + "_"
	if got, want := strings.Count(string(text), row), strings.Count(table, row); got != want {
		t.Errorf("%s has %d rows of %s, want %d", file, got, program, want)
	}
}
