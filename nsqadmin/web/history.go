package web

import (
	"math"
	"time"

	"nsq/nsqadmin/monitor"
)

// points is how many values a chart has at most: more would not be seen.
const points = 60

// spans are the times a chart can go back, as far as samples do.
var spans = []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// usualSpan is what a page shows at first.
const usualSpan = 15 * time.Minute

// measure is a line of a history: what it is called and where a sample has it.
type measure struct {
	title string
	rate  bool // a rate; otherwise a number of things
	of    func(monitor.Sample) float64
}

// measures are the lines of every history, in the order of the charts.
var measures = []measure{
	{"Depth", false, func(s monitor.Sample) float64 { return float64(s.Depth) }},
	{"Published", true, func(s monitor.Sample) float64 { return known(s.Known, s.Publish) }},
	{"Delivered", true, func(s monitor.Sample) float64 { return known(s.Known, s.Deliver) }},
	{"Requeued", true, func(s monitor.Sample) float64 { return known(s.Known, s.Requeue) }},
	{"Timed out", true, func(s monitor.Sample) float64 { return known(s.Known, s.Timeout) }},
	{"In flight", false, func(s monitor.Sample) float64 { return float64(s.InFlight) }},
	{"Consumers", false, func(s monitor.Sample) float64 { return float64(s.Clients) }},
}

// history draws the series of a page; nil where there are no samples of it.
func (s *site) history(r request, key monitor.Key) *history {
	samples := s.History.Samples(key)
	if len(samples) == 0 {
		return nil
	}
	choices, shown := s.ranges(r.view)
	// With two intervals a slot has a sample even when collections do not come quite evenly.
	step := max(2*s.History.Interval(), shown/points).Round(time.Second)
	step = max(step, time.Second)
	slots := int(max(min(shown/step, points), 1))
	// Slots begin at whole steps, so that a value stays in its slot from one refresh to the next.
	end := samples[len(samples)-1].At.Truncate(step)
	start := end.Add(-step * time.Duration(slots-1))
	times := make([]time.Time, slots)
	for i := range times {
		times[i] = start.Add(step * time.Duration(i))
	}
	all := make([]series, len(measures))
	for i, m := range measures {
		all[i] = series{title: m.title, rate: m.rate, values: m.values(samples, start, step, slots)}
	}
	return showHistory(all, times, step, choices)
}

// values is what the samples say in each slot: the mean of a rate, the latest number of things. It is NaN
// where there are none.
func (m measure) values(samples []monitor.Sample, start time.Time, step time.Duration, slots int) []float64 {
	values, counts := make([]float64, slots), make([]float64, slots)
	for i := range values {
		values[i] = math.NaN()
	}
	for _, sample := range samples {
		slot := int(sample.At.Sub(start) / step)
		value := m.of(sample)
		if sample.At.Before(start) || slot >= slots || math.IsNaN(value) {
			continue
		}
		counts[slot]++
		if m.rate && counts[slot] > 1 {
			value = values[slot] + (value-values[slot])/counts[slot]
		}
		values[slot] = value
	}
	return values
}

// ranges are the times that can be shown, and the one that the view asks for.
func (s *site) ranges(v view) (choices []choice, shown time.Duration) {
	window := s.History.Window()
	shown = min(usualSpan, window)
	possible := []time.Duration{}
	for _, span := range spans {
		if span < window {
			possible = append(possible, span)
		}
	}
	possible = append(possible, window)
	wanted := v.query.Get("range")
	for _, d := range possible {
		if name := rangeName(d); name == wanted {
			shown = d
		}
	}
	for _, d := range possible {
		name := rangeName(d)
		choices = append(choices, choice{Text: name, Href: v.with("range", name), Current: d == shown})
	}
	return choices, shown
}

// rangeName is a span as people write it.
func rangeName(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return count(d/time.Hour) + "h"
	case d%time.Minute == 0:
		return count(d/time.Minute) + "m"
	}
	return d.String()
}
