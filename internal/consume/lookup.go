package consume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/discover"
)

const (
	// grace is how long the other nsqlookupds are waited for once one has answered.
	grace = 3 * time.Second

	maxAnswer = 64 << 20 // bytes
)

// lookups are the nsqlookupds of a consumer, all asked at once. It is also the transport of the client's
// own look-ups, so that these ask all of them, too.
type lookups struct {
	urls   []string
	header http.Header
	client *http.Client
	log    *log.Logger

	mu    sync.Mutex
	found []string // addresses of nsqd, from the last look-up that succeeded; replaced, never written to
}

// newLookups checks the addresses, and takes timeout and secret from the client's config.
func newLookups(addresses []string, topic string, config *nsq.Config, logger *log.Logger) (*lookups, error) {
	l := &lookups{log: logger, header: http.Header{"Accept": {"application/vnd.nsq; version=1.0"}}}
	if config.AuthSecret != "" && config.LookupdAuthorization {
		l.header.Set("Authorization", "Bearer "+config.AuthSecret)
	}
	for _, address := range addresses {
		endpoint, err := lookupURL(address, topic)
		if err != nil {
			return nil, err
		}
		l.urls = append(l.urls, endpoint)
	}
	l.client = &http.Client{
		Timeout: config.LookupdPollTimeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: config.LookupdPollTimeout}).DialContext,
			MaxIdleConns:        100,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		},
	}
	return l, nil
}

// lookupURL is the look-up of a topic at an address as users write it.
func lookupURL(address, topic string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if u.Port() == "" {
		return "", errors.New("missing port")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/lookup"
	}
	query := u.Query()
	query.Add("topic", topic)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// httpClient is for the client's look-ups.
func (l *lookups) httpClient() *http.Client { return &http.Client{Transport: l} }

func (l *lookups) close() { l.client.CloseIdleConnections() }

// known returns the addresses that the last look-up has found.
func (l *lookups) known() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found
}

// find returns the addresses of the topic's nsqd; when every look-up fails, those that were found
// before.
func (l *lookups) find(ctx context.Context) ([]string, error) {
	_, err := l.producers(ctx)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusNotFound {
		err = nil // a topic that does not exist yet is nothing to report each time
	}
	return l.known(), err
}

// RoundTrip asks all nsqlookupds for the client. To the client it answers that there is no nsqd, or as
// the first one did if none of them has an answer: it is the keeper that connects. The client might do
// so in the middle of a stop, and does not survive a message that comes then.
func (l *lookups) RoundTrip(req *http.Request) (*http.Response, error) {
	_, err := l.producers(req.Context())
	if refused, ok := errors.AsType[*refusal](err); ok {
		return response(req, refused.code, refused.status, refused.body), nil
	}
	if err != nil {
		return nil, err
	}
	return response(req, http.StatusOK, "200 OK", []byte(`{"channels":[],"producers":[]}`)), nil
}

func response(req *http.Request, code int, status string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"X-Nsq-Content-Type": {"nsq; version=1.0"}},
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: req, ContentLength: int64(len(body)),
	}
}

// producers asks all nsqlookupds. The error is that of the first one, if all failed; else failures are
// logged.
func (l *lookups) producers(ctx context.Context) ([]api.Producer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := discover.Ask(ctx, l.urls, func(ctx context.Context, endpoint string) ([]api.Producer, error) {
		producers, err := l.ask(ctx, endpoint)
		if err == nil {
			time.AfterFunc(grace, cancel)
		}
		return producers, err
	})
	failures := discover.Failures(answers)
	if len(failures) == len(answers) {
		return nil, failures[0]
	}
	var lists [][]api.Producer
	for _, answer := range answers {
		lists = append(lists, answer.Value)
		if refused, ok := errors.AsType[*refusal](answer.Err); ok && refused.code == http.StatusNotFound {
			continue // this one does not know the topic
		}
		if answer.Err != nil {
			l.log.Printf("error querying nsqlookupd (%s) - %s", answer.Address, answer.Err)
		}
	}
	union := discover.Union(lists...)
	l.remember(union)
	return union, nil
}

func (l *lookups) remember(producers []api.Producer) {
	found := make([]string, 0, len(producers))
	for _, p := range producers {
		found = append(found, discover.TCPAddress(p))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = found
}

// refusal is an answer of a nsqlookupd with another status than 200.
type refusal struct {
	code   int
	status string
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("got response %s %q", r.status, r.body) }

// ask makes one look-up. Nsqlookupds before 1.0 wrap their answer once more.
func (l *lookups) ask(ctx context.Context, endpoint string) ([]api.Producer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return nil, err
	}
	req.Header = l.header.Clone()
	resp, err := l.client.Do(req)
	if err != nil {
		var named *url.Error
		if errors.As(err, &named) {
			err = named.Err // the log line has the URL already
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("answer is longer than %d bytes", maxAnswer)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &refusal{code: resp.StatusCode, status: resp.Status, body: body}
	}
	var answer struct {
		Producers []api.Producer `json:"producers"`
		Data      struct {
			Producers []api.Producer `json:"producers"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	return append(answer.Producers, answer.Data.Producers...), nil
}
