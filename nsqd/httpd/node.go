package httpd

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
	"nsq/nsqd/broker"
)

const healthy = "OK"

// ping says whether the node can keep messages.
func (a *API) ping(*http.Request, httprouter.Params) (any, error) {
	if health := a.health(); health != healthy {
		return nil, &httpx.Error{Status: http.StatusInternalServerError, Message: health}
	}
	return healthy, nil
}

// health is the answer of /ping and the health of /stats.
func (a *API) health() string {
	if err := a.config.Broker.Health(); err != nil {
		return healthText(err)
	}
	return healthy
}

func healthText(err error) string {
	var unwell *broker.Unwell
	switch {
	case !errors.As(err, &unwell):
		return "NOK - " + systemText(err)
	case unwell.More == 0:
		return fmt.Sprintf("NOK - %s: %s", unwell.Name, systemText(err))
	}
	return fmt.Sprintf("NOK - %s: %s (and %d more)", unwell.Name, systemText(err), unwell.More)
}

// systemText is what the system says of a failure, without what our own words add, which name
// paths that are nobody's business.
func systemText(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err.Error()
	}
	return "storage failed"
}

func (a *API) info(*http.Request, httprouter.Params) (any, error) {
	info, err := a.config.Info()
	if err != nil {
		return nil, &httpx.Error{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	return info, nil
}

func (a *API) metrics(w http.ResponseWriter, req *http.Request, _ httprouter.Params) {
	a.config.Metrics.ServeHTTP(w, req)
}

func (a *API) getOption(_ *http.Request, ps httprouter.Params) (any, error) {
	value, ok := a.config.ConfigGet(ps.ByName("opt"))
	if !ok {
		return nil, errInvalidOption
	}
	return value, nil
}

func (a *API) putOption(req *http.Request, ps httprouter.Params) (any, error) {
	body, err := httpx.ReadBody(req, a.config.MaxMsgSize)
	switch {
	case errors.Is(err, httpx.ErrTooBig):
		return nil, errValueSize
	case err != nil:
		return nil, err
	case len(body) == 0:
		return nil, errValueSize
	}
	value, err := a.config.ConfigPut(ps.ByName("opt"), body)
	switch {
	case errors.Is(err, ErrNotChangeable):
		return nil, errInvalidOption
	case errors.Is(err, ErrBadValue):
		return nil, errInvalidValue
	}
	return value, err
}
