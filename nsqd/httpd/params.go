package httpd

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
	"nsq/internal/protocol"
)

// queryHandler is a handler that needs nothing but the query string.
type queryHandler func(query httpx.Params) (any, error)

func withQuery(handler queryHandler) httpx.Handler {
	return func(req *http.Request, _ httprouter.Params) (any, error) {
		query, err := httpx.ParseParams(req)
		if err != nil {
			return nil, err
		}
		return handler(query)
	}
}

// param returns a parameter that must be there, though it may be empty.
func param(query httpx.Params, name string, missing error) (string, error) {
	value, present := query.Get(name)
	if !present {
		return "", missing
	}
	return value, nil
}

// validParam returns a parameter that must be the name of a topic or channel.
func validParam(query httpx.Params, name string, missing, invalid error) (string, error) {
	value, err := param(query, name, missing)
	if err == nil && !protocol.ValidName(value) {
		err = invalid
	}
	return value, err
}

// boolParam is what a boolean parameter may be.
var boolParam = map[string]bool{"true": true, "1": true, "false": false, "0": false}

// include says whether a part of the answer is wanted: unless it is refused.
func include(query httpx.Params, name string) bool {
	value, present := query.Get(name)
	if !present {
		return true
	}
	wanted, known := boolParam[value]
	return wanted || !known
}
