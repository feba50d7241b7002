// Package httpx is the HTTP layer of the daemons: handlers that return a value or an error, on
// httprouter; the form of every answer; the access log; a server that bounds what a peer can hold
// and stops gracefully; and the JSON client for the other side. It knows no endpoint.
//
// Source: nsqd-http spec, sections 1 to 3, 13 and 17; nsqlookupd spec, section 5.1; nsqadmin spec,
// section 4.1.
package httpx

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/log"
)

// Handler answers one request. A string or []byte is sent as it is, nil is an empty answer,
// anything else is sent as JSON. An *Error decides status and message; any other error is logged
// and answered with 500 INTERNAL_ERROR.
type Handler func(req *http.Request, ps httprouter.Params) (any, error)

// Router finds the handler of a request and writes its answer and its access log line.
// All routes are registered before the first request; then it is safe for concurrent use.
type Router struct {
	log        *log.Logger
	routes     *httprouter.Router
	answerHEAD bool
}

// RouterOption changes what a Router does by default.
type RouterOption func(*Router)

// AnswerHEAD makes every GET route registered afterwards answer HEAD as well; without it HEAD is a
// method like any other, and not allowed.
func AnswerHEAD() RouterOption { return func(r *Router) { r.answerHEAD = true } }

// NewRouter returns a router without routes. Unknown paths and methods are answered as an API
// handler would; near misses of a path are redirected.
func NewRouter(logger *log.Logger, options ...RouterOption) *Router {
	r := &Router{log: logger}
	for _, option := range options {
		option(r)
	}
	r.routes = &httprouter.Router{
		RedirectTrailingSlash:  true,
		RedirectFixedPath:      true,
		HandleMethodNotAllowed: true,
		HandleOPTIONS:          true,
		NotFound:               r.always(http.StatusNotFound, "NOT_FOUND"),
		MethodNotAllowed:       r.always(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED"),
	}
	return r
}

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.routes.ServeHTTP(w, req) }

// RouteOption changes how one route is served.
type RouteOption func(*route)

// Unlogged leaves a route out of the access log; panics in it are still logged.
func Unlogged() RouteOption { return func(rt *route) { rt.unlogged = true } }

// route is what the ways to register a handler have in common.
type route struct {
	form     form
	unlogged bool
}

// API registers a handler whose answers carry the NSQ header and whose errors are JSON.
func (r *Router) API(method, path string, handler Handler, options ...RouteOption) {
	r.register(method, path, r.typed(handler, newRoute(apiForm, options)))
}

// Plain registers a handler whose answers and errors are plain text without the NSQ header.
func (r *Router) Plain(method, path string, handler Handler, options ...RouteOption) {
	r.register(method, path, r.typed(handler, newRoute(plainForm, options)))
}

// Raw registers a handler that writes its answer itself. To flush, it uses an
// http.ResponseController. A panic after the first byte breaks the connection off, so that the
// client does not take what it got for the whole.
func (r *Router) Raw(method, path string, handle httprouter.Handle, options ...RouteOption) {
	r.register(method, path, r.untyped(handle, newRoute(apiForm, options)))
}

func newRoute(f form, options []RouteOption) *route {
	rt := &route{form: f}
	for _, option := range options {
		option(rt)
	}
	return rt
}

func (r *Router) register(method, path string, handle httprouter.Handle) {
	r.routes.Handle(method, path, handle)
	if method == http.MethodGet && r.answerHEAD {
		r.routes.Handle(http.MethodHead, path, handle)
	}
}

func (r *Router) always(status int, message string) http.Handler {
	handle := r.typed(func(*http.Request, httprouter.Params) (any, error) {
		return nil, &Error{Status: status, Message: message}
	}, newRoute(apiForm, nil))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handle(w, req, nil) })
}

func (r *Router) typed(handler Handler, rt *route) httprouter.Handle {
	return func(w http.ResponseWriter, req *http.Request, ps httprouter.Params) {
		entry := r.beginAccess(rt)
		a := r.answer(handler, rt.form, req, ps)
		entry.end(req, a.status)
		r.send(w, req, a)
	}
}

func (r *Router) untyped(handle httprouter.Handle, rt *route) httprouter.Handle {
	return func(w http.ResponseWriter, req *http.Request, ps httprouter.Params) {
		entry := r.beginAccess(rt)
		tracked := &statusWriter{ResponseWriter: w}
		if r.completes(func() { handle(tracked, req, ps) }) {
			entry.end(req, cmp.Or(tracked.status, http.StatusOK))
			return
		}
		entry.end(req, http.StatusInternalServerError)
		if tracked.status != 0 {
			panic(http.ErrAbortHandler)
		}
		r.send(w, req, apiForm.failure(internalError))
	}
}

// answer calls a handler and renders what it returns; a panic in either is an internal error.
func (r *Router) answer(handler Handler, f form, req *http.Request, ps httprouter.Params) (a answer) {
	if !r.completes(func() {
		result, err := handler(req, ps)
		a = r.render(f, result, err)
	}) {
		return apiForm.failure(internalError)
	}
	return a
}

// completes runs f and says whether it returned; a panic is logged. http.ErrAbortHandler goes on:
// it is how a handler asks the server to break the answer off.
func (r *Router) completes(f func()) (completed bool) {
	defer func() {
		switch value := recover(); value {
		case nil:
		case http.ErrAbortHandler:
			panic(value)
		default:
			r.log.Errorf("panic in HTTP handler - %v", value)
			r.log.Errorf("%s", debug.Stack())
		}
	}()
	f()
	return true
}

// render turns what a handler returned into an answer, and logs the causes that the peer is not told.
func (r *Router) render(f form, result any, err error) answer {
	if err == nil {
		a, err := f.success(result)
		if err == nil {
			return a
		}
		r.log.Errorf("failed to encode HTTP response - %s", err)
		return f.failure(internalError)
	}
	var failure *Error
	if !errors.As(err, &failure) {
		r.log.Errorf("HTTP handler failed - %s", err)
		return f.failure(internalError)
	}
	if failure.Cause != nil {
		r.log.Errorf("%s", failure.Cause)
	}
	return f.failure(failure)
}

func (r *Router) send(w http.ResponseWriter, req *http.Request, a answer) {
	if err := a.write(w); err != nil {
		r.log.Debugf("failed to write HTTP response to %s - %s", req.RemoteAddr, err)
	}
}

// Error is a failure that the client is told about.
type Error struct {
	Status  int    // HTTP status
	Message string // code for the client, for example INVALID_TOPIC
	Cause   error  // if not nil, its text is logged at ERROR and not sent
}

// Error is the message and, if there is one, its cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// BadRequest returns the failure with status 400.
func BadRequest(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Message: message}
}

var internalError = &Error{Status: http.StatusInternalServerError, Message: "INTERNAL_ERROR"}
