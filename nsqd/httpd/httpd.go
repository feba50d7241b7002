// Package httpd is the HTTP API of nsqd: it publishes, administers topics and channels, and shows
// statistics, health and settings. A request becomes a call of the broker, what that returns becomes
// an answer.
//
// It knows no listeners, TCP clients or options; what it has to say about them it asks for through
// its Config.
//
// Source: nsqd-http spec.
package httpd

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"nsq/internal/api"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/nsqd/broker"
)

// What ConfigPut may answer.
var (
	// ErrNotChangeable says that an option does not exist or cannot be changed at runtime.
	ErrNotChangeable = errors.New("option cannot be changed at runtime")
	// ErrBadValue says that the new value of an option cannot be used.
	ErrBadValue = errors.New("invalid value of an option")
)

// Config is what surrounds an API. The functions are called from any goroutine.
type Config struct {
	Broker *broker.Broker
	Logger *log.Logger

	// Clients describes the TCP connections of the moment, counters included.
	Clients func() []api.ClientStats
	// Info describes the node. The text of its error is what the client is told.
	Info func() (api.Info, error)
	// Metrics answers scrapes of Prometheus, see NewMetrics; without it there is no such route.
	Metrics http.Handler
	// ConfigGet returns the value of an option by its key, and false if there is none. A string is
	// answered as it is, anything else as JSON.
	ConfigGet func(key string) (any, bool)
	// ConfigPut changes an option and returns its new value as ConfigGet would. Its errors match
	// ErrNotChangeable or ErrBadValue, or else the daemon failed.
	ConfigPut func(key string, body []byte) (any, error)

	MaxMsgSize    int64         // bytes of a message
	MaxBodySize   int64         // bytes of a whole /mpub
	MaxReqTimeout time.Duration // longest delay of a deferred message
	StartTime     time.Time     // of the daemon

	TLSRequired bool       // refuse everything that does not come over TLS
	HTTPSPort   func() int // where to go instead; 0 if nowhere. Only for TLSRequired
}

// API answers the requests. It is safe for concurrent use.
type API struct {
	config  Config
	handler http.Handler
}

// New returns the API of one nsqd.
func New(config Config) *API {
	a := &API{config: config}
	a.handler = a.routes()
	if config.TLSRequired {
		a.handler = a.requireTLS(a.handler)
	}
	return a
}

// Handler serves both the HTTP and the HTTPS listener.
func (a *API) Handler() http.Handler { return a.handler }

func (a *API) routes() *httpx.Router {
	r := httpx.NewRouter(a.config.Logger)
	r.Plain(http.MethodGet, "/ping", a.ping)
	r.API(http.MethodGet, "/info", a.info)
	r.API(http.MethodGet, "/stats", a.stats)
	if a.config.Metrics != nil {
		r.Raw(http.MethodGet, "/metrics", a.metrics, httpx.Unlogged())
	}
	r.API(http.MethodGet, "/config/:opt", a.getOption)
	r.API(http.MethodPut, "/config/:opt", a.putOption)

	// The second name of each is that of the oldest releases, which producers still use.
	for _, path := range []string{"/pub", "/put"} {
		r.API(http.MethodPost, path, a.pub, httpx.Unlogged())
	}
	for _, path := range []string{"/mpub", "/mput"} {
		r.API(http.MethodPost, path, a.mpub, httpx.Unlogged())
	}

	for path, handler := range map[string]httpx.QueryHandler{
		"/topic/create":    a.createTopic,
		"/topic/delete":    a.deleteTopic,
		"/topic/empty":     a.emptyTopic,
		"/topic/pause":     a.onTopic((*broker.Topic).Pause),
		"/topic/unpause":   a.onTopic((*broker.Topic).Unpause),
		"/channel/create":  a.createChannel,
		"/channel/delete":  a.deleteChannel,
		"/channel/empty":   a.onChannel((*broker.Channel).Empty),
		"/channel/pause":   a.onChannel((*broker.Channel).Pause),
		"/channel/unpause": a.onChannel((*broker.Channel).Unpause),
	} {
		r.API(http.MethodPost, path, httpx.WithQuery(handler))
	}

	r.MountProfiles()
	r.Plain(http.MethodPut, "/debug/setblockrate", setBlockRate)
	r.Plain(http.MethodPost, "/debug/freememory", freeMemory)
	return r
}

// requireTLS refuses what did not come over TLS, whatever it asks for, and says where to ask.
func (a *API) requireTLS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.TLS != nil {
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("X-NSQ-Content-Type", "nsq; version=1.0")
		w.WriteHeader(http.StatusForbidden)
		if _, err := fmt.Fprintf(w, `{"message": "TLS_REQUIRED", "https_port": %d}`, a.config.HTTPSPort()); err != nil {
			a.config.Logger.Debugf("failed to write HTTP response to %s - %s", req.RemoteAddr, err)
		}
	})
}
