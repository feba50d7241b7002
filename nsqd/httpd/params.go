package httpd

import "nsq/internal/httpx"

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
