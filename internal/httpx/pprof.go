package httpx

import (
	"io"
	"net/http"
	"net/http/pprof"

	"github.com/julienschmidt/httprouter"
)

// MountProfiles adds the profiling routes of nsqd under /debug/pprof/. They are not logged.
func (r *Router) MountProfiles() {
	r.mountProfiles("heap", "goroutine", "block", "threadcreate")
}

// MountAllProfiles adds the profiling routes of nsqlookupd: those of nsqd, the rest of what the
// index lists, and the index at /debug/pprof too.
func (r *Router) MountAllProfiles() {
	r.mountProfiles("heap", "goroutine", "block", "threadcreate", "allocs", "mutex")
	r.profile(http.MethodGet, "/debug/pprof/trace", pprof.Trace)
	r.profile(http.MethodGet, "/debug/pprof", indexWithoutSlash)
}

func (r *Router) mountProfiles(names ...string) {
	r.profile(http.MethodGet, "/debug/pprof/", pprof.Index)
	r.profile(http.MethodGet, "/debug/pprof/cmdline", pprof.Cmdline)
	r.profile(http.MethodGet, "/debug/pprof/symbol", pprof.Symbol)
	r.profile(http.MethodPost, "/debug/pprof/symbol", pprof.Symbol)
	r.profile(http.MethodGet, "/debug/pprof/profile", pprof.Profile)
	for _, name := range names {
		r.profile(http.MethodGet, "/debug/pprof/"+name, pprof.Handler(name).ServeHTTP)
	}
}

func (r *Router) profile(method, path string, handler http.HandlerFunc) {
	r.Raw(method, path, func(w http.ResponseWriter, req *http.Request, _ httprouter.Params) {
		handler(w, req)
	}, Unlogged())
}

// indexWithoutSlash is the index for an address relative to which its links would lead nowhere.
func indexWithoutSlash(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := io.WriteString(w, `<base href="/debug/pprof/">`+"\n"); err != nil {
		return // the peer is gone
	}
	pprof.Index(w, req)
}
