package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The plot within a drawing of 360 by 130 units; chart.js knows its left and right edge.
const (
	plotLeft, plotRight = 48.0, 352.0
	plotTop, plotBottom = 8.0, 106.0
)

// series is one line over time. A NaN is a gap: nothing was measured then.
type series struct {
	title  string
	rate   bool // messages a second; otherwise a number of things
	values []float64
}

func (s series) text(value float64) string {
	switch {
	case math.IsNaN(value):
		return none
	case s.rate:
		return rate(value) + "/s"
	}
	return count(int64(value))
}

// history is the charts of a page and the same numbers as a table.
type history struct {
	Charts []chart
	Ranges []choice
	Heads  []string
	Rows   []row // newest first
	Step   string
}

// choice is one of a few states of a page.
type choice struct {
	Text, Href string
	Current    bool
}

// chart is one drawing.
type chart struct {
	Index       int // of its column in the table of numbers
	Title, Last string
	Text        string // what the drawing says to who does not see it
	Line, Area  string // SVG path data
	YTicks      []tick
	XTicks      []tick
}

// tick is a mark at an axis.
type tick struct {
	At, TextAt   float64
	Text, Anchor string
}

// draw makes a chart of values that are evenly spaced over times.
func draw(index int, s series, times []time.Time) chart {
	c := chart{Index: index, Title: s.title, Last: none}
	top, step := scale(s.values)
	for v := 0.0; v <= top; v += step {
		at := yAt(v, top)
		c.YTicks = append(c.YTicks, tick{At: at, TextAt: at + 3, Text: short(v)}) // 3 is half a digit
	}
	for _, i := range spread(len(times), 4) {
		mark := tick{At: xAt(i, len(times)), Text: times[i].Format("15:04"), Anchor: "middle"}
		if i == len(times)-1 {
			mark.Anchor = "end" // the drawing ends here
		}
		c.XTicks = append(c.XTicks, mark)
	}
	c.Line, c.Area = paths(s.values, top)
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, v := range s.values {
		if !math.IsNaN(v) {
			c.Last = s.text(v)
			lowest, highest = math.Min(lowest, v), math.Max(highest, v)
		}
	}
	c.Text = s.title + ": nothing measured yet"
	if lowest <= highest {
		c.Text = fmt.Sprintf("%s: now %s, lowest %s, highest %s", s.title, c.Last, s.text(lowest), s.text(highest))
	}
	return c
}

// paths draws a line for each run of values without a gap, and the area below it. A lone value is a dot.
func paths(values []float64, top float64) (line, area string) {
	var l, a strings.Builder
	for from := 0; from < len(values); from++ {
		if math.IsNaN(values[from]) {
			continue
		}
		to := from
		for to+1 < len(values) && !math.IsNaN(values[to+1]) {
			to++
		}
		fmt.Fprintf(&a, "M%.1f %.1f", xAt(from, len(values)), plotBottom)
		for i := from; i <= to; i++ {
			x, y := xAt(i, len(values)), yAt(values[i], top)
			fmt.Fprintf(&l, "%c%.1f %.1f", "ML"[min(i-from, 1)], x, y)
			fmt.Fprintf(&a, "L%.1f %.1f", x, y)
		}
		if from == to {
			l.WriteString("h1")
		}
		fmt.Fprintf(&a, "L%.1f %.1fZ", xAt(to, len(values)), plotBottom)
		from = to
	}
	return l.String(), a.String()
}

// scale chooses the top of the axis and the distance of its marks: 1, 2 or 5 times a power of ten.
func scale(values []float64) (top, step float64) {
	highest := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			highest = math.Max(highest, v)
		}
	}
	if highest < 1 {
		return 1, 1
	}
	step = math.Pow(10, math.Floor(math.Log10(highest)))
	for _, part := range []float64{0.2, 0.5, 1, 2, 5} {
		if highest <= 4*part*step {
			step *= part
			break
		}
	}
	step = math.Max(step, 1)
	return math.Ceil(highest/step) * step, step
}

func xAt(i, of int) float64 {
	if of < 2 {
		return plotRight
	}
	return plotLeft + float64(i)/float64(of-1)*(plotRight-plotLeft)
}

func yAt(v, top float64) float64 {
	part := math.Min(math.Max(v/top, 0), 1)
	return plotBottom - part*(plotBottom-plotTop)
}

// spread picks n of the indices below of, evenly, first and last among them.
func spread(of, n int) []int {
	n = min(n, of)
	picked := make([]int, n)
	for i := range picked {
		if n > 1 {
			picked[i] = i * (of - 1) / (n - 1)
		}
	}
	return picked
}

// short writes a mark of an axis: 1.5k, 20M.
func short(v float64) string {
	units := []string{"", "k", "M", "G", "T", "P", "E"}
	for v >= 1000 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) + units[0]
}

// showHistory draws every series and lists the same numbers, newest first.
func showHistory(all []series, times []time.Time, step time.Duration, ranges []choice) *history {
	h := &history{Ranges: ranges, Step: span(step)}
	for i, s := range all {
		h.Charts = append(h.Charts, draw(i, s, times))
		h.Heads = append(h.Heads, s.title)
	}
	for at := len(times) - 1; at >= 0; at-- {
		r := row{Key: strconv.FormatInt(times[at].Unix(), 10), Cells: []cell{{Text: times[at].Format("15:04:05")}}}
		for _, s := range all {
			r.Cells = append(r.Cells, cell{Text: s.text(s.values[at])})
		}
		h.Rows = append(h.Rows, r)
	}
	return h
}
