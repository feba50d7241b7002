package graphite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"nsq/internal/httpx"
	"nsq/internal/log"
)

// Rate asks the Graphite at base, which may carry credentials, for the latest value of a counter, and
// answers it per second with two decimals, or "N/A" if it is negative. The interval is that between
// two pushes.
func Rate(ctx context.Context, client *httpx.Client, base string, interval time.Duration, target string) (string, error) {
	s := Settings{Interval: interval}
	query := url.Values{
		"format": {"json"},
		"from":   {fmt.Sprintf("-%dsec", 2*s.seconds())},
		"until":  {fmt.Sprintf("-%dsec", s.seconds())},
		"target": {target},
	}
	var series []struct {
		Datapoints [][]*float64 `json:"datapoints"` // each a value, or null, and its time
	}
	if err := client.Get(ctx, strings.TrimSuffix(base, "/")+"/render?"+query.Encode(), &series); err != nil {
		return "", err
	}
	if len(series) == 0 || len(series[0].Datapoints) == 0 ||
		len(series[0].Datapoints[0]) == 0 || series[0].Datapoints[0][0] == nil {
		return "", errors.New("no data point in the answer of Graphite")
	}
	value := *series[0].Datapoints[0][0]
	if value < 0 {
		return "N/A", nil
	}
	return strconv.FormatFloat(value/float64(s.seconds()), 'f', 2, 64), nil
}

// NewProxy passes requests on to <base>/render, with the credentials of base.
func NewProxy(base *url.URL, transport http.RoundTripper, logger *log.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = base.Scheme, base.Host
			r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimSuffix(base.Path, "/")+"/render", ""
			r.Out.Host = r.In.Host
			r.SetXForwarded()
			if password, ok := base.User.Password(); ok || base.User.Username() != "" {
				r.Out.SetBasicAuth(base.User.Username(), password)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			// What Graphite sends must not act as a page of ours.
			resp.Header.Set("Content-Security-Policy", "sandbox")
			resp.Header.Set("X-Content-Type-Options", "nosniff")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			logger.Errorf("GRAPHITE: failed to pass a request on - %s", err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
}
