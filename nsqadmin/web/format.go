package web

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// none stands where there is no figure: a rate before the second sample, the latency of nothing.
const none = "–"

// count writes a whole number with thousands commas.
func count[T ~int | ~int32 | ~int64 | ~uint64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	if n > 0 {
		digits = strconv.FormatUint(uint64(n), 10)
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// rate writes messages a second: one decimal while that tells something. NaN is no figure.
func rate(perSecond float64) string {
	if math.IsNaN(perSecond) || math.IsInf(perSecond, 0) || perSecond < 0 {
		return none
	}
	if perSecond > 0 && perSecond < 0.05 {
		return "<0.1" // not nothing
	}
	if perSecond < 99.95 && perSecond != math.Trunc(perSecond) {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return count(int64(math.Round(math.Min(perSecond, 1<<60))))
}

// span writes a duration in the two units that matter: 5m19s, 31.16s, 245.37ms.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s" // the clock of another machine is ahead of ours
	case d >= 24*time.Hour:
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d" + strconv.FormatInt(int64(d%(24*time.Hour)/time.Hour), 10) + "h"
	case d >= time.Hour:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h" + strconv.FormatInt(int64(d%time.Hour/time.Minute), 10) + "m"
	case d >= time.Minute:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m" + strconv.FormatInt(int64(d%time.Minute/time.Second), 10) + "s"
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.String()
}

// percentile names a quantile: 0.99 is 99%, 0.999 is 99.9%.
func percentile(quantile float64) string {
	return strconv.FormatFloat(math.Round(quantile*1e6)/1e4, 'f', -1, 64) + "%"
}

// many writes a number with its noun.
func many[T ~int | ~int64 | ~uint64](n T, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + more
}
