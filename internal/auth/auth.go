// Package auth asks the auth servers what a client may do, and decides by their answer. It does not
// know the commands of a client, nor what becomes of one that is not permitted.
//
// Source: nsqd-tcp spec, section 9.
package auth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"nsq/internal/httpx"
	"nsq/internal/log"
)

// The ways to ask.
const (
	MethodGet  = "get"
	MethodPost = "post"
)

// maxAnswer is the most that an auth server may answer, in bytes.
const maxAnswer = 1 << 20

// ErrRefused is in the error of Query if an auth server answered with status 401 or 403: there is
// somebody at work, and the secret is no good. Any other failure may be one of the servers only.
var ErrRefused = errors.New("refused")

// errLate stands for a timeout of our own.
var errLate = errors.New("no answer in time")

// Config is what a Client is made from.
type Config struct {
	Addresses      []string           // host:port, which stands for http://host:port/auth, or a URL; at least one
	Method         string             // MethodGet or MethodPost
	ConnectTimeout time.Duration      // to connect; 0 means no limit
	RequestTimeout time.Duration      // for a whole request, connecting included; 0 means no limit
	TLS            func() *tls.Config // for the next https requests, the same pointer while it has not changed; may be nil
	Logger         *log.Logger        // tells of servers that failed where another did not
}

// Client asks auth servers. It keeps connections for reuse and is safe for concurrent use.
type Client struct {
	servers []server
	config  Config
	first   func(n int) int  // which of n servers to begin with; a field for tests
	now     func() time.Time // a field for tests

	mu      sync.Mutex
	http    *httpx.Client // guarded by mu
	httpTLS *tls.Config   // guarded by mu; what http was made with
}

// NewClient returns a client. Only an address that nothing can be asked at, and a method that is
// none, are errors.
func NewClient(config Config) (*Client, error) {
	if config.Method != MethodGet && config.Method != MethodPost {
		return nil, fmt.Errorf("auth request method %q is neither get nor post", config.Method)
	}
	if len(config.Addresses) == 0 {
		return nil, errors.New("no address of an auth server")
	}
	c := &Client{config: config, first: rand.IntN, now: time.Now}
	for i, address := range config.Addresses {
		s, err := parseServer(address)
		if err != nil {
			return nil, fmt.Errorf("address %d of auth servers: %w", i+1, err)
		}
		c.servers = append(c.servers, s)
	}
	return c, nil
}

// Close closes the connections that are kept for reuse.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.Close()
	}
}

// Request is what an auth server is told of a client.
type Request struct {
	CommonName string // of the subject of the client's certificate; empty: none
	RemoteIP   string // without port; empty over a unix socket
	Secret     string // the body of AUTH, verbatim
	TLS        bool   // whether the connection is a TLS one
}

// Format writes the request without its secret, whatever the verb.
func (r Request) Format(out fmt.State, _ rune) {
	fmt.Fprintf(out, "{common name %q, remote IP %q, TLS %t}", r.CommonName, r.RemoteIP, r.TLS)
}

func (r Request) values() url.Values {
	return url.Values{
		"common_name": {r.CommonName},
		"remote_ip":   {r.RemoteIP},
		"secret":      {r.Secret},
		"tls":         {strconv.FormatBool(r.TLS)},
	}
}

// Query asks one server after the other, from a random one on, until one gives a valid answer. It
// takes twice the timeouts of all of them at most, or until ctx ends. Its error holds neither the secret
// nor any of what a server answered.
func (c *Client) Query(ctx context.Context, request Request) (*Grant, error) {
	var failures []error
	first := c.first(len(c.servers))
	for i := range c.servers {
		s := &c.servers[(first+i)%len(c.servers)]
		grant, err := c.ask(ctx, s, request)
		if err == nil {
			for _, failure := range failures {
				c.config.Logger.Warnf("AUTH: another server answered instead of %s", failure)
			}
			return grant, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", s.name, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("ask auth servers: %w", errors.Join(failures...))
}

// ask asks one server.
func (c *Client) ask(ctx context.Context, s *server, request Request) (*Grant, error) {
	var answer json.RawMessage
	var err error
	if values := request.values(); c.config.Method == MethodGet {
		err = c.client().Get(ctx, s.with(values), &answer)
	} else {
		var body []byte
		if body, err = json.Marshal(values); err != nil {
			return nil, errors.New("encode request")
		}
		err = c.client().Post(ctx, s.url.String(), body, &answer)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, cause(err)
	}
	return decode(answer, c.now())
}

// client is the one with the present TLS configuration. Connections under an older one are not
// used again.
func (c *Client) client() *httpx.Client {
	var config *tls.Config
	if c.config.TLS != nil {
		config = c.config.TLS()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && c.httpTLS == config {
		return c.http
	}
	if c.http != nil {
		c.http.Close()
	}
	c.httpTLS = config
	c.http = httpx.NewClient(httpx.ClientConfig{
		ConnectTimeout: c.config.ConnectTimeout,
		RequestTimeout: c.config.RequestTimeout,
		TLS:            config,
		MaxResponse:    maxAnswer,
	})
	return c.http
}

// server is an auth server.
type server struct {
	url  url.URL
	name string // what errors and logs call it: no user, path or query, which may be secret
}

func parseServer(address string) (server, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address + "/auth"
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		// The library's error would show the address with all that is secret in it.
		return server{}, errors.New("neither host:port nor a URL of http or https")
	}
	return server{url: *u, name: u.Scheme + "://" + u.Host}, nil
}

// with is the URL with more parameters behind those that it has.
func (s *server) with(values url.Values) string {
	u := s.url
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += values.Encode()
	return u.String()
}

// cause is what is known to be behind err. Other errors of a HTTP client may quote the request, or
// an answer that quotes it.
func cause(err error) error {
	var status *httpx.StatusError
	var timeout net.Error
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &status):
		if status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden {
			return fmt.Errorf("%w with status %d", ErrRefused, status.Code)
		}
		return fmt.Errorf("answered with status %d", status.Code)
	case errors.As(err, &timeout) && timeout.Timeout():
		return errLate
	case errors.As(err, &network):
		return network
	case errors.As(err, &certificate):
		return certificate
	case errors.As(err, &syntax):
		return errors.New("answer is not JSON")
	case errors.Is(err, http.ErrSchemeMismatch):
		return http.ErrSchemeMismatch
	}
	return fmt.Errorf("no HTTP answer, or one of more than %d bytes", maxAnswer)
}
