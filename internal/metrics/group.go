package metrics

import "math"

// Other is the value of a label under which those are summed up that are not shown one by one.
const Other = "_other"

// Row is a family and how to get its value from a thing that has one. NaN is no value.
type Row[T any] struct {
	*Family
	Value    func(T) float64
	Greatest bool // the sum of several is the greatest of them
}

// Group is what is shown of things of one kind. All families have the same labels.
type Group[T any] []Row[T]

// Families are those of the rows, in order.
func (g Group[T]) Families() []*Family {
	families := make([]*Family, len(g))
	for i := range g {
		families[i] = g[i].Family
	}
	return families
}

// Add shows one thing.
func (g Group[T]) Add(s *Scrape, thing T, labels ...string) {
	for i := range g {
		s.Add(g[i].Family, g[i].Value(thing), labels...)
	}
}

// AddSum shows several things as one, and nothing for none. What has no value counts for nothing.
func (g Group[T]) AddSum(s *Scrape, things []T, labels ...string) {
	for i := range g {
		sum := math.NaN()
		for _, thing := range things {
			switch value := g[i].Value(thing); {
			case math.IsNaN(value):
			case math.IsNaN(sum):
				sum = value
			case g[i].Greatest:
				sum = max(sum, value)
			default:
				sum += value
			}
		}
		s.Add(g[i].Family, sum, labels...)
	}
}

// Split says which of those in order of name are to be shown one by one, the first limit ones, and which
// are to be summed up. Whatever is named Other is among the latter: it could not be told from them.
func Split[T any](things []T, limit int, name func(T) string) (each, rest []T) {
	for _, thing := range things {
		if len(each) < limit && name(thing) != Other {
			each = append(each, thing)
		} else {
			rest = append(rest, thing)
		}
	}
	return each, rest
}
