package httpd

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
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
