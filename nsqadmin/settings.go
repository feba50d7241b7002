package nsqadmin

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/options"
)

// maxOption is the longest body of PUT /config, in bytes.
const maxOption = 1 << 20

// settings are the options while nsqadmin runs; two of them can change.
type settings struct {
	options *Options
	allowed *net.IPNet // who may use /config; nil: everybody
	log     *log.Logger

	mu    sync.Mutex
	table *options.Table // guarded by mu, as are the options it changes
}

// newSettings takes valid options.
func newSettings(o *Options, logger *log.Logger) *settings {
	allowed, _ := o.allowedNet() // Validate has seen to it
	return &settings{options: o, allowed: allowed, log: logger, table: o.Table()}
}

// lookupds are the addresses of now. The list is never modified, only replaced.
func (s *settings) lookupds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.NSQLookupdHTTPAddresses
}

var (
	errInvalidOption = httpx.BadRequest("INVALID_OPTION")
	errInvalidValue  = httpx.BadRequest("INVALID_VALUE")
	errValueSize     = &httpx.Error{Status: http.StatusRequestEntityTooLarge, Message: "INVALID_VALUE"}
	errInvalidRemote = httpx.BadRequest("INVALID_REMOTE_ADDR")
)

// guarded lets only those in who may use /config.
func (s *settings) guarded(handler httpx.Handler) httpx.Handler {
	return func(req *http.Request, ps httprouter.Params) (any, error) {
		if s.allowed == nil {
			return handler(req, ps)
		}
		host, _, err := net.SplitHostPort(req.RemoteAddr)
		ip := net.ParseIP(host)
		if err != nil || ip == nil {
			return nil, errInvalidRemote
		}
		if !s.allowed.Contains(ip) {
			return nil, errForbidden
		}
		return handler(req, ps)
	}
}

func (s *settings) get(_ *http.Request, ps httprouter.Params) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer(ps.ByName("opt"))
}

// answer is the value of an option, without passwords. The caller holds mu.
func (s *settings) answer(key string) (any, error) {
	value, ok := s.table.Get(key)
	if !ok {
		return nil, errInvalidOption
	}
	if text, isText := value.(string); isText && text != "" && (key == "graphite_url" || key == "notification_http_endpoint") {
		return redacted(text), nil
	}
	return value, nil
}

func (s *settings) put(req *http.Request, ps httprouter.Params) (any, error) {
	body, err := httpx.ReadBody(req, maxOption)
	switch {
	case errors.Is(err, httpx.ErrTooBig):
		return nil, errValueSize
	case err != nil:
		return nil, err
	case len(body) == 0:
		return nil, errValueSize
	}
	key := ps.ByName("opt")
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.set(key, body); err != nil {
		return nil, err
	}
	s.log.Infof("changed %s", key)
	return s.answer(key)
}

// set changes an option, as a whole or not at all. The caller holds mu.
func (s *settings) set(key string, body []byte) error {
	before := slices.Clone(s.options.NSQLookupdHTTPAddresses)
	err := s.table.Set(key, body)
	switch {
	case errors.Is(err, options.ErrBadValue):
		return errInvalidValue
	case err != nil:
		return errInvalidOption
	}
	switch key {
	case keyLogLevel:
		s.log.SetLevel(s.options.LogLevel)
	case keyLookupds:
		if !s.usable() {
			s.options.NSQLookupdHTTPAddresses = before
			return errInvalidValue
		}
	}
	return nil
}

// usable says whether the addresses are some, and whether there is anybody left to ask. The caller
// holds mu.
func (s *settings) usable() bool {
	lookupds := s.options.NSQLookupdHTTPAddresses
	return checkAddresses("", lookupds) == nil && len(lookupds)+len(s.options.NSQDHTTPAddresses) > 0
}
