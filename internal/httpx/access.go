package httpx

import (
	"net/http"
	"time"

	"nsq/internal/log"
)

// maxLogged bounds, in bytes, how much of a request's own text goes into one log line.
const maxLogged = 4096

// access is the access log entry of one request; its zero value is not written.
type access struct {
	log   *log.Logger // nil when the entry is not wanted: then nothing is measured or formatted
	start time.Time
}

func (r *Router) beginAccess(rt *route) access {
	if rt.unlogged || !r.log.Enabled(log.Info) {
		return access{}
	}
	return access{r.log, time.Now()}
}

// end writes the entry once the handler has returned.
func (a access) end(req *http.Request, status int) {
	if a.log == nil {
		return
	}
	elapsed := time.Since(a.start)
	a.log.Infof("%d %s %s (%s) %s", status, clip(req.Method), clip(req.URL.RequestURI()), req.RemoteAddr, elapsed)
}

func clip(text string) string {
	if len(text) <= maxLogged {
		return text
	}
	return text[:maxLogged] + "..."
}

// statusWriter notes the status of an answer; 0 means that nothing has been written.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // others only announce the answer
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the original.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
