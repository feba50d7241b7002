package httpx

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultMaxResponse = 64 << 20
	maxRedirects       = 3
	maxQuoted          = 4096
)

// ClientConfig says how a Client behaves.
type ClientConfig struct {
	ConnectTimeout time.Duration // to connect; 0 means no limit
	RequestTimeout time.Duration // for a whole request, connecting included; 0 means no limit
	TLS            *tls.Config   // for https; may be nil
	MaxResponse    int64         // bytes of an answer's body; 0 means 64 MiB
}

// Client asks the JSON APIs of the daemons. It keeps connections for reuse and is safe for
// concurrent use.
type Client struct {
	http        *http.Client
	maxResponse int64
}

// NewClient returns a client. The proxy variables of the environment are ignored.
func NewClient(config ClientConfig) *Client {
	if config.MaxResponse <= 0 {
		config.MaxResponse = defaultMaxResponse
	}
	dialer := &net.Dialer{Timeout: config.ConnectTimeout, KeepAlive: 30 * time.Second}
	return &Client{
		maxResponse: config.MaxResponse,
		http: &http.Client{
			Timeout:       config.RequestTimeout,
			CheckRedirect: stayOnHost,
			Transport: &http.Transport{
				DialContext:           dialer.DialContext,
				TLSClientConfig:       config.TLS,
				TLSHandshakeTimeout:   10 * time.Second,
				ResponseHeaderTimeout: config.RequestTimeout,
				MaxIdleConns:          100,
				IdleConnTimeout:       90 * time.Second,
				DisableCompression:    true,
			},
		},
	}
}

// Close closes the connections that are kept for reuse.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer with another status than 200.
type StatusError struct {
	Code   int    // 404
	Status string // "404 Not Found"
	Body   []byte
}

// Error is the status line and the quoted body.
func (e *StatusError) Error() string {
	return fmt.Sprintf("got response %s %q", e.Status, e.Body[:min(len(e.Body), maxQuoted)])
}

// Get asks for endpoint, a URL with its query, and decodes the JSON answer into out, unless out is
// nil. A status other than 200 is a *StatusError. A daemon that requires TLS answers http with 403
// and its https port: the request is then repeated there, once. Errors name the URL without the
// values of secret parameters.
func (c *Client) Get(ctx context.Context, endpoint string, out any) error {
	return c.do(ctx, http.MethodGet, endpoint, nil, out)
}

// Post is Get with method POST. The body, which is JSON, may be nil.
func (c *Client) Post(ctx context.Context, endpoint string, body []byte, out any) error {
	return c.do(ctx, http.MethodPost, endpoint, body, out)
}

// Put is Post with method PUT.
func (c *Client) Put(ctx context.Context, endpoint string, body []byte, out any) error {
	return c.do(ctx, http.MethodPut, endpoint, body, out)
}

func (c *Client) do(ctx context.Context, method, endpoint string, body []byte, out any) error {
	answer, err := c.exchange(ctx, method, endpoint, body)
	var refused *StatusError
	if errors.As(err, &refused) && refused.Code == http.StatusForbidden {
		if secure, ok := httpsEndpoint(endpoint, refused.Body); ok {
			answer, err = c.exchange(ctx, method, secure, body)
		}
	}
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("decode answer of %s: %w", redact(endpoint), err)
	}
	return nil
}

// exchange makes one request and returns the body of its answer.
func (c *Client) exchange(ctx context.Context, method, endpoint string, body []byte) ([]byte, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, endpoint, reader)
	if err != nil {
		return nil, withoutSecrets(err)
	}
	req.Header.Set("Accept", "application/vnd.nsq; version=1.0")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, withoutSecrets(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, c.maxResponse+1))
	if err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", redact(endpoint), err)
	}
	if int64(len(answer)) > c.maxResponse {
		return nil, fmt.Errorf("answer of %s is longer than %d bytes", redact(endpoint), c.maxResponse)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &StatusError{Code: resp.StatusCode, Status: resp.Status, Body: answer}
	}
	return answer, nil
}

// stayOnHost keeps a daemon from sending us to somebody else.
func stayOnHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// httpsEndpoint is where a daemon that refused an http request wants it.
func httpsEndpoint(endpoint string, body []byte) (string, bool) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" {
		return "", false
	}
	var refusal struct {
		HTTPSPort int `json:"https_port"`
	}
	if json.Unmarshal(body, &refusal) != nil || refusal.HTTPSPort <= 0 || refusal.HTTPSPort > 65535 {
		return "", false
	}
	u.Scheme = "https"
	u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(refusal.HTTPSPort))
	return u.String(), true
}

// secretParams are the query parameters whose values stay out of errors.
var secretParams = map[string]bool{"secret": true, "token": true, "access_token": true, "password": true}

// redact masks what is secret in a URL.
func redact(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "URL that cannot be parsed"
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err != nil || secretParams[strings.ToLower(plain)] {
			parts[i] = name + "=xxxxx"
		}
	}
	u.RawQuery = strings.Join(parts, "&")
	return u.Redacted()
}

// withoutSecrets redacts the URL that the errors of net/http carry.
func withoutSecrets(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		named.URL = redact(named.URL)
	}
	return err
}
