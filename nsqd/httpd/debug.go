package httpd

import (
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
)

// maxForm bounds, in bytes, the body of a form.
const maxForm = 64 << 10

// setBlockRate sets the rate of the block profile, which may come in the query or in a form.
func setBlockRate(req *http.Request, _ httprouter.Params) (any, error) {
	req = req.WithContext(req.Context()) // a copy: the request itself is the server's
	req.Body = io.NopCloser(io.LimitReader(req.Body, maxForm))
	rate, err := strconv.Atoi(req.FormValue("rate"))
	if err != nil {
		return nil, httpx.BadRequest("invalid block rate : " + err.Error())
	}
	runtime.SetBlockProfileRate(rate)
	return nil, nil
}

// freeMemory collects garbage and gives as much memory as possible back to the system.
func freeMemory(*http.Request, httprouter.Params) (any, error) {
	debug.FreeOSMemory()
	return nil, nil
}
