package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/protocol"
)

var (
	errMissingTopic   = httpx.BadRequest("MISSING_ARG_TOPIC")
	errInvalidTopic   = httpx.BadRequest("INVALID_TOPIC")
	errMissingChannel = httpx.BadRequest("MISSING_ARG_CHANNEL")
	errInvalidChannel = httpx.BadRequest("INVALID_CHANNEL")
	errInvalidFormat  = httpx.BadRequest("INVALID_FORMAT")
	errInvalidWindow  = httpx.BadRequest("INVALID_WINDOW")
	errInvalidDefer   = httpx.BadRequest("INVALID_DEFER")
	errEmpty          = httpx.BadRequest("MSG_EMPTY")
	errTooBig         = &httpx.Error{Status: http.StatusRequestEntityTooLarge, Message: "MSG_TOO_BIG"}
)

// front is the HTTP API.
type front struct {
	gate          *gate
	nodes         *nodes
	subscriptions *subscriptions
	maxBody       int64 // bytes
	maxDefer      time.Duration
	log           *log.Logger
}

func (f *front) handler() http.Handler {
	r := httpx.NewRouter(f.log)
	r.Plain(http.MethodGet, "/ping", func(*http.Request, httprouter.Params) (any, error) { return "OK", nil })
	r.API(http.MethodPost, "/pub", f.pub)
	r.Raw(http.MethodGet, "/sub", f.sub)
	return r
}

func (f *front) pub(req *http.Request, _ httprouter.Params) (any, error) {
	if err := f.gate.check(req); err != nil {
		return nil, err
	}
	params, err := httpx.ParseParams(req)
	if err != nil {
		return nil, err
	}
	topic, err := params.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic)
	if err != nil {
		return nil, err
	}
	delay, err := f.parseDefer(params)
	if err != nil {
		return nil, err
	}
	body, err := httpx.ReadBody(req, f.maxBody)
	switch {
	case errors.Is(err, httpx.ErrTooBig):
		return nil, errTooBig
	case err != nil:
		return nil, httpx.BadRequest("INVALID_REQUEST") // the peer broke it off
	case len(body) == 0:
		return nil, errEmpty
	}
	if err := f.nodes.publish(req.Context(), topic, delay, body); err != nil {
		return nil, err
	}
	return "OK", nil
}

func (f *front) parseDefer(params httpx.Params) (time.Duration, error) {
	text, present := params.Get("defer")
	if !present {
		return 0, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > f.maxDefer.Milliseconds() {
		return 0, errInvalidDefer
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func (f *front) sub(w http.ResponseWriter, req *http.Request, _ httprouter.Params) {
	want, err := f.want(req)
	if err == nil {
		err = f.subscriptions.serve(w, req, want)
	}
	if err != nil {
		f.refuse(w, req, err)
	}
}

// want reads what a request for a stream asks for.
func (f *front) want(req *http.Request) (w want, err error) {
	if err = f.gate.check(req); err != nil {
		return w, err
	}
	params, err := httpx.ParseParams(req)
	if err != nil {
		return w, err
	}
	if w.topic, err = params.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic); err != nil {
		return w, err
	}
	if w.channel, err = params.RequireValid("channel", protocol.ValidName, errMissingChannel, errInvalidChannel); err != nil {
		return w, err
	}
	if w.format, err = parseFormat(params, req.Header); err != nil {
		return w, err
	}
	w.window = f.subscriptions.flags.MaxInFlight
	if text, present := params.Get("window"); present {
		window, err := strconv.Atoi(text)
		if err != nil || window < 1 || window > w.window {
			return w, errInvalidWindow
		}
		w.window = window
	}
	return w, nil
}

// refuse answers instead of a stream.
func (f *front) refuse(w http.ResponseWriter, req *http.Request, err error) {
	failure, ok := errors.AsType[*httpx.Error](err)
	if !ok {
		failure = &httpx.Error{Status: http.StatusInternalServerError, Message: "INTERNAL_ERROR", Cause: err}
	}
	if failure.Cause != nil {
		f.log.Errorf("%s", failure.Cause)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(cmp.Or(failure.Status, http.StatusInternalServerError))
	if err := json.NewEncoder(w).Encode(map[string]string{"message": failure.Message}); err != nil {
		f.log.Debugf("failed to write HTTP response to %s - %s", req.RemoteAddr, err)
	}
}
