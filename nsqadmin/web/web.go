// Package web serves the pages of nsqadmin: rendered on the server from the latest snapshot of the
// cluster, whole without JavaScript, and kept fresh by an event stream that tells the browser to ask for
// the same page again, as a fragment. Forms ask for actions.
//
// It knows no daemon and makes no request to one: what it shows and does comes through its Config.
//
// Source: nsqadmin spec, sections 3, 9, 13 and 14.
package web

import (
	"io/fs"
	"net/http"
	"os"

	"nsq/nsqadmin/monitor"
)

// policy lets a page load what we serve and nothing else, run no script of its own and be shown in no
// frame: text from a node that got into a page unescaped would still do nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// site is what the handlers share. All but journal and streams is immutable.
type site struct {
	Config
	links   links
	journal journal
	streams streams
}

// New returns the handler of all pages. Paths of requests include the base path.
func New(config Config) http.Handler {
	s := &site{Config: config, links: newLinks(config.BasePath)}
	mux := http.NewServeMux()
	get := func(path string, handler http.HandlerFunc) { mux.HandleFunc("GET "+path, handler) }
	if s.links.base == "" {
		get("/{$}", s.page(s.overview))
	} else {
		get(s.links.base, s.page(s.overview))
	}
	get(s.links.To("/topics"), s.page(s.topics))
	get(s.links.To("/topics/{topic}"), s.page(s.topic))
	get(s.links.To("/topics/{topic}/{channel}"), s.page(s.channel))
	get(s.links.To("/nodes"), s.page(s.nodes))
	get(s.links.To("/nodes/{node}"), s.page(s.node))
	get(s.links.To("/lookup"), s.page(s.lookup))
	get(s.links.To("/counter"), s.page(s.counter))
	get(s.links.To("/actions/recent"), s.page(s.recent))
	get(s.links.To("/actions/result"), s.page(s.result))
	get(s.links.To("/actions/{action}"), s.page(s.confirm))
	mux.HandleFunc("POST "+s.links.To("/actions/{action}"), s.act)
	get(s.links.To("/events"), s.events)
	get(s.links.To("/static/{asset}"), s.assets().ServeHTTP)
	get(s.links.To("/fonts/{asset}"), s.assets().ServeHTTP)
	mux.HandleFunc("/", s.page(func(request) page {
		return missing("Page not found", "There is no such page.")
	}))
	// Other sites may neither send forms in an admin's name nor read pages through a frame.
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

func (s *site) assets() assets {
	if s.StaticDir != "" {
		return assets{os.DirFS(s.StaticDir)}
	}
	files, err := fs.Sub(embedded, "static")
	if err != nil { // the name is a constant and valid
		panic(err)
	}
	return assets{files}
}

// guard puts the headers on every answer that tell browsers what not to do.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, req)
	})
}

// request is what a page is made from.
type request struct {
	*http.Request
	view     view
	snapshot *monitor.Snapshot
	admin    bool
}
