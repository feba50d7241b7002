package nsqadmin

import (
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/api"
	"nsq/internal/httpx"
	"nsq/internal/version"
)

// handler is everything that is served.
func (n *NSQAdmin) handler() (http.Handler, error) {
	r := httpx.NewRouter(n.log)
	base := strings.TrimSuffix(n.options.basePath(), "/")
	f := &front{
		cluster: n.cluster, actor: n.actor, acl: n.acl, log: n.log,
		client: n.client, graphiteURL: n.options.GraphiteURL, statsdInterval: n.options.StatsdInterval,
	}
	f.mount(r, base)
	r.Plain(http.MethodGet, base+"/ping", func(*http.Request, httprouter.Params) (any, error) { return "OK", nil })
	r.API(http.MethodGet, base+"/info", func(*http.Request, httprouter.Params) (any, error) {
		return api.LookupInfo{Version: version.Version}, nil
	})
	r.API(http.MethodGet, base+"/config/:opt", n.settings.guarded(n.settings.get))
	r.API(http.MethodPut, base+"/config/:opt", n.settings.guarded(n.settings.put))
	proxy, err := n.graphiteProxy()
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		r.Raw(http.MethodGet, base+"/render", raw(proxy), httpx.Unlogged())
	}
	mountPages(r, base, n.pages())
	return sameOrigin(compressed(r)), nil
}

// mountPages serves the pages, with what they are made of.
func mountPages(r *httpx.Router, base string, pages http.Handler) {
	root := base
	if root == "" {
		root = "/"
	}
	r.Raw(http.MethodGet, root, raw(pages))
	for _, path := range []string{
		"/topics", "/topics/:topic", "/topics/:topic/:channel", "/nodes", "/nodes/:node", "/counter", "/lookup",
		"/static/:asset", "/fonts/:asset", "/events", "/actions/:action",
	} {
		r.Raw(http.MethodGet, base+path, raw(pages))
	}
	r.Raw(http.MethodPost, base+"/actions/:action", raw(pages))
}

// raw is a handler that does without the parameters of the path.
func raw(handler http.Handler) httprouter.Handle {
	return func(w http.ResponseWriter, req *http.Request, _ httprouter.Params) { handler.ServeHTTP(w, req) }
}
