package quantile

// Result is what a window or several of them say about their numbers.
type Result struct {
	Count       int          // numbers looked at
	Percentiles []Percentile // in the order of the plan; nil when nothing is measured
}

// Percentile is one quantile of the numbers.
type Percentile struct {
	Quantile float64 // above 0 and at most 1
	Value    int64   // 0 without numbers
}

// Result is the window's at the time now, on the clock of Insert.
func (w *Window) Result(now int64) Result { return Merge(now, w) }

// Merge is the result of the numbers of all windows at the time now, as if they were in one. The
// windows have to be of one plan. Nil ones do not count, and without any the result is zero.
//
// No two windows are locked at once.
func Merge(now int64, windows ...*Window) Result {
	var plan *Plan
	var sum histogram[uint64]
	for _, w := range windows {
		if w != nil {
			plan = w.plan
			w.addTo(&sum, now)
		}
	}
	if plan == nil {
		return Result{}
	}
	result := Result{Count: int(sum.n), Percentiles: make([]Percentile, len(plan.quantiles))}
	for i, q := range plan.quantiles {
		result.Percentiles[i] = Percentile{Quantile: q, Value: sum.quantile(q)}
	}
	return result
}
