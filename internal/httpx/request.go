package httpx

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/julienschmidt/httprouter"
)

// Params are the parameters of a query string.
type Params struct{ values url.Values }

// ParseParams reads the query string of a request; parameters in a body are none. A bad percent
// escape or a raw ';' gives an *Error 400 INVALID_REQUEST. A literal '#' is data: a request line
// has no fragment.
func ParseParams(req *http.Request) (Params, error) {
	values, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return Params{}, &Error{
			Status:  http.StatusBadRequest,
			Message: "INVALID_REQUEST",
			Cause:   fmt.Errorf("failed to parse request params - %w", err),
		}
	}
	return Params{values}, nil
}

// QueryHandler is a Handler that needs nothing of a request but its parameters.
type QueryHandler func(query Params) (any, error)

// WithQuery parses the parameters of a request for a handler.
func WithQuery(handler QueryHandler) Handler {
	return func(req *http.Request, _ httprouter.Params) (any, error) {
		query, err := ParseParams(req)
		if err != nil {
			return nil, err
		}
		return handler(query)
	}
}

// Get returns the first value of a parameter; a parameter may be present and empty.
func (p Params) Get(name string) (value string, present bool) {
	values := p.values[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// Require returns a parameter that must be there, though it may be empty, or the error missing.
func (p Params) Require(name string, missing error) (string, error) {
	value, present := p.Get(name)
	if !present {
		return "", missing
	}
	return value, nil
}

// RequireValid is Require for a parameter that must be valid, too, or else the error is invalid.
func (p Params) RequireValid(name string, valid func(string) bool, missing, invalid error) (string, error) {
	value, err := p.Require(name, missing)
	if err == nil && !valid(value) {
		err = invalid
	}
	return value, err
}

// The ways a request body can be too big. Both match ErrTooBig.
var (
	// ErrTooBig says that a body is longer than the limit.
	ErrTooBig = errors.New("request body is too big")
	// ErrDeclaredTooBig says that Content-Length is over the limit; nothing was read.
	ErrDeclaredTooBig = fmt.Errorf("%w by its Content-Length", ErrTooBig)
)

// The first allocation for a body, in bytes.
const (
	unknownRead = 512      // without a Content-Length
	firstRead   = 64 << 10 // at most, on the word of a Content-Length alone
)

// ReadBody reads the whole body of a request of at most limit bytes. Errors: ErrDeclaredTooBig,
// ErrTooBig, or the failure to read, which matches neither.
func ReadBody(req *http.Request, limit int64) ([]byte, error) {
	if req.ContentLength > limit {
		return nil, ErrDeclaredTooBig
	}
	if req.ContentLength == 0 {
		return nil, nil
	}
	size := req.ContentLength
	if size < 0 {
		size = unknownRead
	}
	body := make([]byte, 0, min(size, firstRead))
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, len(body))
		}
		n, err := req.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, ErrTooBig
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, fmt.Errorf("read request body: %w", err)
		}
	}
}
