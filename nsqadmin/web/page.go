package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"nsq/internal/version"
	"nsq/nsqadmin/monitor"
)

//go:embed templates
var templates embed.FS

// parsed are the templates: "layout" is a whole page, "main" the part of it that is kept fresh.
var parsed = template.Must(template.ParseFS(templates, "templates/*.html"))

// maxLines bounds the lines of a notice, maxText, in bytes, each text that came from a daemon.
const (
	maxLines = 20
	maxText  = 300
)

// page is one page. The parts that are empty are not shown; the others stand in this order.
type page struct {
	links
	Status   int // HTTP
	Title    string
	Heading  string
	Version  string
	Menu     []choice
	Crumbs   []choice
	Labels   []label
	Live     bool   // shows the snapshot, and is kept fresh
	Age      int    // of the snapshot, in seconds
	Seq      uint64 // of the snapshot
	Notices  []notice
	Acts     []act
	Counter  *counter
	Figures  []figure
	Problems *problems
	Confirm  *confirmation
	Create   *creation
	Tables   []table
	History  *history
	Facts    []figure
	More     []table  // after the history
	Outside  []choice // the same in Graphite
	Next     []choice // where to go from here
}

// notice is a box of text above the content.
type notice struct {
	Kind  string // "good", "warn" or "bad"
	Text  string
	Lines []string
}

// figure is a number, or a fact, with its name.
type figure struct{ Title, Text string }

// act is a link to the confirmation of an action.
type act struct {
	Text, Href string
	Label      string // for who does not see what it stands beside
	Danger     bool   // destroys something
}

// missing is the page of what is not there.
func missing(heading, text string) page {
	return page{Status: http.StatusNotFound, Title: heading, Heading: heading, Notices: []notice{{Kind: "warn", Text: text}}}
}

// page makes a handler of what makes a page, and answers with all of it or, for the script, its main part.
func (s *site) page(build func(request) page) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r := s.request(req)
		s.render(w, r, build(r))
	}
}

func (s *site) request(req *http.Request) request {
	query := req.URL.Query()
	return request{
		Request:  req,
		view:     view{path: req.URL.EscapedPath(), query: query},
		snapshot: s.Snapshot(),
		admin:    s.Admin(req),
	}
}

func (s *site) render(w http.ResponseWriter, r request, p page) {
	s.frame(r, &p)
	name := "layout"
	if r.view.query.Has("fragment") {
		name = "main"
	}
	var body bytes.Buffer
	if err := parsed.ExecuteTemplate(&body, name, p); err != nil {
		s.Log.Errorf("failed to render %s - %s", r.URL.Path, err)
		http.Error(w, "INTERNAL_ERROR", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body.Bytes()) // a peer that has gone needs no answer
}

// frame adds what every page has.
func (s *site) frame(r request, p *page) {
	p.links, p.Version = s.links, version.Version
	if p.Status == 0 {
		p.Status = http.StatusOK
	}
	if p.Heading == "" {
		p.Heading = p.Title
	}
	for _, entry := range [][2]string{{"Overview", "/"}, {"Topics", "/topics"}, {"Nodes", "/nodes"}, {"Lookup", "/lookup"}, {"Counter", "/counter"}, {"Actions", "/actions/recent"}} {
		href := s.links.To(entry[1])
		p.Menu = append(p.Menu, choice{Text: entry[0], Href: href, Current: r.view.path == href})
	}
	if p.Live && r.snapshot.Seq > 0 {
		p.Seq = r.snapshot.Seq
		p.Age = max(0, int(r.snapshot.Age(time.Now()).Seconds()))
	}
	if p.Live {
		p.Notices = append(p.Notices, trouble(r.snapshot)...)
	}
}

// trouble says what the snapshot lacks and who did not answer.
func trouble(snapshot *monitor.Snapshot) []notice {
	if snapshot.Seq == 0 {
		return []notice{{Kind: "warn", Text: "Nothing has been collected yet. The figures come within seconds."}}
	}
	failures := snapshot.Failures
	if len(failures) == 0 {
		return nil
	}
	n := notice{Kind: "bad", Text: many(len(failures), "request failed; its figures are missing here:", "requests failed; their figures are missing here:")}
	for _, f := range failures[:min(len(failures), maxLines)] {
		n.Lines = append(n.Lines, f.Target+" "+f.Stage+": "+clip(f.Err.Error()))
	}
	if rest := len(failures) - maxLines; rest > 0 {
		n.Lines = append(n.Lines, "and "+count(rest)+" more")
	}
	return []notice{n}
}

// clip bounds a text that came from a daemon.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && text[end]&0xC0 == 0x80 { // not within a character
		end--
	}
	return text[:end] + "…"
}
