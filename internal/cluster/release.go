package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// release is a version that can be compared; the zero value is what cannot be parsed.
type release struct {
	numbers [3]uint64
	pre     []string // identifiers of a pre-release; nil for a release
}

// parseRelease reads a semantic version.
func parseRelease(text string) release {
	text, _, _ = strings.Cut(text, "+")
	core, pre, isPre := strings.Cut(text, "-")
	parts := strings.Split(core, ".")
	var r release
	if len(parts) != len(r.numbers) {
		return release{}
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return release{}
		}
		r.numbers[i] = n
	}
	if isPre {
		r.pre = strings.Split(pre, ".")
	}
	return r
}

// compare is negative if r is the lower one.
func (r release) compare(o release) int {
	if c := slices.Compare(r.numbers[:], o.numbers[:]); c != 0 {
		return c
	}
	if (r.pre == nil) != (o.pre == nil) {
		if r.pre == nil {
			return 1
		}
		return -1
	}
	return slices.CompareFunc(r.pre, o.pre, compareIdentifiers)
}

// compareIdentifiers orders numbers by value, and before words.
func compareIdentifiers(a, b string) int {
	n, errA := strconv.ParseUint(a, 10, 64)
	m, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(n, m)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}
