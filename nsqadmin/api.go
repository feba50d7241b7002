package nsqadmin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/api"
	"nsq/internal/cluster"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/nsqadmin/action"
)

const (
	readTimeout = 18 * time.Second // of one request to the API; people have left after 20
	maxBody     = 1 << 20          // bytes of a request
)

// front answers the JSON API. Each request is answered from what the daemons say now.
type front struct {
	cluster        *cluster.Cluster
	actor          *action.Actor
	acl            acl
	log            *log.Logger
	client         *httpx.Client
	graphiteURL    string
	statsdInterval time.Duration
}

func (f *front) mount(r *httpx.Router, base string) {
	for path, handler := range map[string]readHandler{
		"/topics":                 f.topics,
		"/topics/:topic":          f.topic,
		"/topics/:topic/:channel": f.channel,
		"/nodes":                  f.nodes,
		"/nodes/:node":            f.node,
		"/counter":                f.counter,
		"/graphite":               f.graphite,
	} {
		r.API(http.MethodGet, base+"/api"+path, f.read(handler))
	}
	for path, handler := range map[string]writeHandler{
		"POST /topics":                   create,
		"POST /topics/:topic":            control,
		"POST /topics/:topic/:channel":   control,
		"DELETE /topics/:topic":          remove,
		"DELETE /topics/:topic/:channel": remove,
		"DELETE /nodes/:node":            tombstone,
	} {
		method, path, _ := strings.Cut(path, " ")
		r.API(method, base+"/api"+path, f.write(handler))
	}
}

// asked is a request for reading, with what failed on the way to its answer.
type asked struct {
	*http.Request
	params httprouter.Params
	report cluster.Report
}

type readHandler func(ctx context.Context, req *asked) (any, error)

// read makes a handler of one that reads.
func (f *front) read(handler readHandler) httpx.Handler {
	return func(req *http.Request, ps httprouter.Params) (any, error) {
		ctx, cancel := context.WithTimeout(req.Context(), readTimeout)
		defer cancel()
		question := &asked{Request: req, params: ps}
		answer, err := handler(ctx, question)
		if err != nil {
			return nil, failure(err)
		}
		if message := question.report.Message(); message != "" {
			f.log.Warnf("%s", strings.TrimPrefix(message, "WARNING: "))
		}
		return answer, nil
	}
}

// failure is how an error is told to a client.
func failure(err error) error {
	if invalid, ok := errors.AsType[action.Invalid](err); ok {
		if invalid == action.NodeNotFound {
			return errNodeNotFound
		}
		return httpx.BadRequest(invalid.Error())
	}
	if nobody, ok := errors.AsType[*cluster.Unreachable](err); ok {
		if nobody.UnknownTopic() {
			return errTopicNotFound
		}
		return upstream(nobody)
	}
	return err
}

func upstream(err error) error {
	return &httpx.Error{Status: http.StatusBadGateway, Message: "UPSTREAM_ERROR: " + err.Error(), Cause: err}
}

var (
	errTopicNotFound   = &httpx.Error{Status: http.StatusNotFound, Message: "TOPIC_NOT_FOUND"}
	errChannelNotFound = &httpx.Error{Status: http.StatusNotFound, Message: "CHANNEL_NOT_FOUND"}
	errNodeNotFound    = &httpx.Error{Status: http.StatusNotFound, Message: "NODE_NOT_FOUND"}
	errInvalidBody     = httpx.BadRequest("INVALID_BODY")
)

// writeHandler finds out what a request wants done.
type writeHandler func(req *http.Request, ps httprouter.Params) (action.Action, error)

// write makes a handler of one that changes the cluster, for admins only.
func (f *front) write(wanted writeHandler) httpx.Handler {
	return func(req *http.Request, ps httprouter.Params) (any, error) {
		if !f.acl.admin(req) {
			return nil, errForbidden
		}
		do, err := wanted(req, ps)
		if err != nil {
			return nil, err
		}
		outcome, err := f.actor.Do(req, do)
		if err != nil {
			return nil, failure(err)
		}
		return actionAnswer(outcome)
	}
}

// actionAnswer is the answer to an action of which something has succeeded, or nothing was to do. A
// success has nothing to add; else what became of each request is told, too.
func actionAnswer(o *action.Outcome) (any, error) {
	if o.Failed() {
		return nil, upstream(o.Report.All())
	}
	answer := api.AdminActionAnswer{AdminStatus: o.Report.Status()}
	if len(answer.Errors) > 0 {
		answer.Results = o.Results
	}
	return answer, nil
}

// decode reads the first JSON value of a body, whatever follows.
func decode(req *http.Request, into any) error {
	body, err := httpx.ReadBody(req, maxBody)
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(body)).Decode(into)
}

func create(req *http.Request, _ httprouter.Params) (action.Action, error) {
	var body struct {
		Topic   string `json:"topic"`
		Channel string `json:"channel"`
	}
	if err := decode(req, &body); err != nil {
		return action.Action{}, httpx.BadRequest(err.Error())
	}
	return action.Action{Kind: action.Create, Topic: body.Topic, Channel: body.Channel}, nil
}

// control pauses, unpauses and empties.
func control(req *http.Request, ps httprouter.Params) (action.Action, error) {
	var body struct {
		Action action.Kind `json:"action"`
	}
	if err := decode(req, &body); err != nil {
		return action.Action{}, httpx.BadRequest(err.Error())
	}
	switch body.Action {
	case action.Pause, action.Unpause, action.Empty:
		return action.Action{Kind: body.Action, Topic: ps.ByName("topic"), Channel: ps.ByName("channel")}, nil
	}
	return action.Action{}, httpx.BadRequest(action.BadAction.Error())
}

func remove(_ *http.Request, ps httprouter.Params) (action.Action, error) {
	return action.Action{Kind: action.Delete, Topic: ps.ByName("topic"), Channel: ps.ByName("channel")}, nil
}

func tombstone(req *http.Request, ps httprouter.Params) (action.Action, error) {
	var body struct {
		Topic string `json:"topic"`
	}
	if err := decode(req, &body); err != nil {
		return action.Action{}, errInvalidBody
	}
	return action.Action{Kind: action.Tombstone, Topic: body.Topic, Node: ps.ByName("node")}, nil
}
