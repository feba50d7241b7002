package web

import (
	"slices"
	"strconv"
	"time"

	"nsq/internal/api"
	"nsq/nsqadmin/action"
)

func (s *site) result(r request) page {
	e, ok := s.journal.find(r.view.query.Get("id"))
	if !ok {
		return missing("No such result", "This result is no longer remembered, or another nsqadmin has it.")
	}
	p := page{Title: "Result", Heading: verbs[e.action.Kind].verb + " " + name(e.action), Notices: []notice{e.notice()}}
	p.Crumbs = []choice{{Text: "Actions", Href: s.links.To("/actions/recent")}, {Text: "Result", Current: true}}
	p.Tables = []table{build(r.view, resultTable(), numbered(e.results))}
	p.Facts = []figure{{"Asked for", e.at.Format(time.DateTime + " MST")}}
	p.Next = s.next(e.action)
	return p
}

// failures is how many requests failed.
func (e entry) failures() (n int) {
	for _, result := range e.results {
		if result.Error != "" {
			n++
		}
	}
	return n
}

// verdict is what became of an action as a whole: its kind of notice, in a word, and in a sentence.
func (e entry) verdict() (kind, word, text string) {
	done, failed := verbs[e.action.Kind].done, e.failures()
	switch {
	case e.failed:
		return "bad", "failed", "Failed: " + name(e.action) + " is not " + done + " anywhere."
	case failed > 0:
		return "warn", "partly done", "Partly done: " + count(failed) + " of " + many(len(e.results), "request", "requests") + " failed."
	case len(e.results) == 0:
		return "warn", "nothing done", "Nothing was done: no daemon has it."
	case len(e.errors) > 0:
		return "warn", "partly done", "Done where it could be seen to be needed; some daemons did not answer."
	}
	return "good", "done", "Done: " + name(e.action) + " is " + done + "."
}

func (e entry) notice() notice {
	kind, _, text := e.verdict()
	n := notice{Kind: kind, Text: text}
	for _, text := range e.errors[:min(len(e.errors), maxLines)] {
		n.Lines = append(n.Lines, clip(text))
	}
	return n
}

// next is where to look at what was done.
func (s *site) next(a action.Action) []choice {
	var all []choice
	gone := a.Kind == action.Delete
	if a.Channel != "" && !gone {
		all = append(all, choice{Text: "Channel " + a.Channel, Href: s.links.channel(a.Topic, a.Channel)})
	}
	if !gone || a.Channel != "" {
		all = append(all, choice{Text: "Topic " + a.Topic, Href: s.links.topic(a.Topic)})
	}
	if a.Node != "" {
		all = append(all, choice{Text: "Node " + a.Node, Href: s.links.node(a.Node)})
	}
	return append(all, choice{Text: "All topics", Href: s.links.To("/topics")})
}

// numberedResult is a result with its place: one daemon may be asked the same twice.
type numberedResult struct {
	at int
	api.AdminResult
}

func numbered(results []api.AdminResult) []numberedResult {
	all := make([]numberedResult, len(results))
	for i, result := range results {
		all[i] = numberedResult{i, result}
	}
	return all
}

func resultTable() spec[numberedResult] {
	type R = numberedResult
	return spec[R]{
		title: "What each daemon answered", caption: "In the order of the requests", empty: "No request was made.",
		key: func(r R) string { return strconv.Itoa(r.at) },
		columns: []column[R]{
			{title: "Daemon", cell: func(r R) cell { return cell{Text: r.Target} }},
			{title: "Request", cell: func(r R) cell { return cell{Text: r.Stage} }},
			{title: "Result", cell: func(r R) cell {
				if r.Error != "" {
					return cell{Labels: []label{{Text: "failed", Kind: "bad"}}, Sub: clip(r.Error)}
				}
				return cell{Labels: []label{{Text: "done", Kind: "good"}}}
			}},
		},
	}
}

func (s *site) recent(r request) page {
	entries := s.journal.all()
	slices.Reverse(entries)
	return page{
		Title: "Actions", Heading: "Recent actions",
		Tables: []table{build(r.view, s.entryTable(), entries)},
	}
}

func (s *site) entryTable() spec[entry] {
	type E = entry
	return spec[E]{
		title: "Asked for here", caption: "The latest " + count(remembered) + " since this nsqadmin was started", empty: "No action has been asked for on these pages.",
		key: func(e E) string { return e.id },
		columns: []column[E]{
			{title: "Time", cell: func(e E) cell {
				return cell{Text: e.at.Format(time.DateTime), Href: s.links.To("/actions/result") + "?id=" + e.id}
			}},
			{title: "Action", cell: func(e E) cell { return cell{Text: verbs[e.action.Kind].verb + " " + name(e.action)} }},
			{title: "Result", cell: func(e E) cell {
				kind, word, _ := e.verdict()
				return cell{Labels: []label{{Text: word, Kind: kind}}}
			}},
		},
	}
}
