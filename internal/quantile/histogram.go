package quantile

import (
	"math"
	"math/bits"
)

const (
	// pageBits is the logarithm of the buckets that share a page.
	pageBits = 7
	pageSize = 1 << pageBits
	// pages are one for numbers below pageSize, then one for each power of two of an int64.
	pages = 63 - pageBits + 1
)

// bucketOf is the place of a number that is not negative. Page 0 has a bucket for each number; page
// p has the numbers of pageBits+p binary digits, 1<<(p-1) of them in a bucket.
func bucketOf(number int64) (page, slot int) {
	page = max(bits.Len64(uint64(number))-pageBits, 0)
	if page == 0 {
		return 0, int(number)
	}
	return page, int(number>>(page-1)) - pageSize
}

// bucketRange is the least number of a bucket and how many numbers it has.
func bucketRange(page, slot int) (least, width int64) {
	if page == 0 {
		return int64(slot), 1
	}
	return int64(pageSize+slot) << (page - 1), 1 << (page - 1)
}

// count is how many numbers fell into a bucket: a narrow type in windows, where they are many, a
// wide one where windows are summed.
type count interface{ uint32 | uint64 }

// histogram counts numbers by bucket. It has no lock of its own.
type histogram[C count] struct {
	pages    [pages]*[pageSize]C // nil where no number fell
	n        int64               // numbers counted
	min, max int64               // of them, where there are any
}

// add counts a number; a negative one counts as 0.
func (h *histogram[C]) add(number int64) {
	number = max(number, 0)
	page, slot := bucketOf(number)
	counts := h.page(page)
	if counts[slot] == math.MaxUint32 { // full: after four billion in half a window one more says nothing
		return
	}
	counts[slot]++
	h.extend(1, number, number)
}

// page is the page with this index, made if need be.
func (h *histogram[C]) page(i int) *[pageSize]C {
	if h.pages[i] == nil {
		h.pages[i] = new([pageSize]C)
	}
	return h.pages[i]
}

// extend notes that n more numbers are counted, from low to high.
func (h *histogram[C]) extend(n, low, high int64) {
	if h.n == 0 {
		h.min, h.max = low, high
	}
	h.n += n
	h.min, h.max = min(h.min, low), max(h.max, high)
}

// clear forgets all numbers but keeps the pages.
func (h *histogram[C]) clear() {
	for _, counts := range h.pages {
		if counts != nil {
			clear(counts[:])
		}
	}
	h.n = 0
}

// addTo adds what h counted to a sum.
func (h *histogram[C]) addTo(sum *histogram[uint64]) {
	if h.n == 0 {
		return
	}
	for i, counts := range h.pages {
		if counts == nil {
			continue
		}
		total := sum.page(i)
		for slot, n := range counts {
			total[slot] += uint64(n)
		}
	}
	sum.extend(h.n, h.min, h.max)
}

// quantile is the number of rank floor(q*n)+1, as near as its bucket tells; 0 without numbers.
func (h *histogram[C]) quantile(q float64) int64 {
	if h.n == 0 {
		return 0
	}
	rank := int64(q*float64(h.n)) + 1
	if rank >= h.n {
		return h.max
	}
	passed := int64(0)
	for page, counts := range h.pages {
		if counts == nil {
			continue
		}
		for slot, c := range counts {
			n := int64(c)
			if passed+n < rank {
				passed += n
				continue
			}
			least, width := bucketRange(page, slot)
			part := (float64(rank-passed) - 0.5) / float64(n)
			return min(max(least+int64(part*float64(width)), h.min), h.max)
		}
	}
	return h.max
}
