package statsd

import (
	"cmp"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"nsq/internal/api"
)

// Prefix is what every name begins with: the pattern with each %s replaced by the host key, and a
// dot. An empty pattern has none, and any other % stands for itself.
func Prefix(pattern, hostKey string) string {
	prefix := strings.ReplaceAll(pattern, "%s", hostKey)
	if prefix != "" && !strings.HasSuffix(prefix, ".") {
		prefix += "."
	}
	return prefix
}

// HostKey names a daemon by its broadcast address and HTTP port, in characters that do not part
// names: "my.host" and 4151 are "my_host_4151".
func HostKey(address string, port int) string {
	return strings.NewReplacer(".", "_", ":", "_").Replace(net.JoinHostPort(address, strconv.Itoa(port)))
}

// percentileNames holds the names of a list of quantiles: the percentage, rounded, as 99 for 0.99.
// Where several round to the same, it belongs to one of them: to the whole percentage, or else to the
// nearest, or else to the greater. The others have the percentage in full, its point written as an
// underscore: next to 1, which is 100, 0.999 is 99_9.
type percentileNames struct {
	quantiles []float64 // whose names they are
	names     []string
}

// learn makes the names those of the percentiles. They are the same everywhere in a daemon, so there
// is rarely something to do.
func (n *percentileNames) learn(percentiles []api.LatencyPercentile) {
	if slices.EqualFunc(n.quantiles, percentiles, func(q float64, p api.LatencyPercentile) bool { return q == p.Quantile }) {
		return
	}
	n.quantiles, n.names = nil, nil
	owners := make(map[string]float64) // of the rounded names
	for _, p := range percentiles {
		n.quantiles = append(n.quantiles, p.Quantile)
		short := shortName(p.Quantile)
		if owner, taken := owners[short]; !taken || better(p.Quantile, owner) {
			owners[short] = p.Quantile
		}
	}
	for _, q := range n.quantiles {
		if short := shortName(q); owners[short] == q {
			n.names = append(n.names, short)
		} else {
			n.names = append(n.names, fullName(q))
		}
	}
}

// shortName is the percentage of a quantile, rounded to an integer.
func shortName(quantile float64) string {
	return strconv.FormatFloat(math.Round(quantile*100), 'f', 0, 64)
}

// fullName is the percentage of a quantile in full. It shifts the decimal digits, since multiplying
// could change them; so no two quantiles share a name.
func fullName(quantile float64) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(quantile, 'f', -1, 64), ".")
	for len(fraction) < 2 {
		fraction += "0"
	}
	whole = strings.TrimLeft(whole+fraction[:2], "0")
	if whole == "" {
		whole = "0"
	}
	if fraction = fraction[2:]; fraction == "" {
		return whole
	}
	return whole + "_" + fraction
}

// better says whether quantile a has more right to the name that both round to than b.
func better(a, b float64) bool {
	if wholeA, wholeB := fullName(a) == shortName(a), fullName(b) == shortName(b); wholeA != wholeB {
		return wholeA
	}
	distance := func(q float64) float64 { return math.Abs(q*100 - math.Round(q*100)) }
	return cmp.Or(cmp.Compare(distance(b), distance(a)), cmp.Compare(a, b)) > 0
}
