package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"nsq/internal/protocol"
	"nsq/nsqadmin/action"
)

const (
	// maxForm bounds, in bytes, the form of an action.
	maxForm = 64 << 10
	// patience is how long a result waits for a snapshot that shows it.
	patience = 5 * time.Second
)

// verbs name the kinds of actions: on the button, of what was done, and whether it destroys something.
var verbs = map[action.Kind]struct {
	verb, done string
	danger     bool
}{
	action.Create:    {"Create", "created", false},
	action.Delete:    {"Delete", "deleted", true},
	action.Pause:     {"Pause", "paused", false},
	action.Unpause:   {"Unpause", "unpaused", false},
	action.Empty:     {"Empty", "emptied", true},
	action.Tombstone: {"Tombstone", "tombstoned", true},
}

// creation is the form that creates, with what was typed.
type creation struct{ Action, Topic, Channel string }

func (s *site) creation(topic, channel string) *creation {
	return &creation{s.links.To("/actions/create"), topic, channel}
}

// link is what leads to the confirmation of an action.
func (s *site) link(target action.Action, kind action.Kind) act {
	target.Kind = kind
	return act{
		Text:   verbs[kind].verb,
		Href:   withQuery(s.links.To("/actions/"+string(kind)), url.Values{"topic": {target.Topic}, "channel": {target.Channel}, "node": {target.Node}}),
		Label:  verbs[kind].verb + " " + name(target),
		Danger: verbs[kind].danger,
	}
}

func (s *site) deleteAct(topic string) *act {
	a := s.link(action.Action{Topic: topic}, action.Delete)
	return &a
}

// name says what an action is about.
func name(a action.Action) string {
	switch {
	case a.Node != "":
		return "topic " + a.Topic + " on " + a.Node
	case a.Channel != "":
		return "channel " + a.Topic + " / " + a.Channel
	}
	return "topic " + a.Topic
}

// act does what a form asks for, then leads to a page of the result that can be loaded again.
func (s *site) act(w http.ResponseWriter, req *http.Request) {
	r := s.request(req)
	if !r.admin {
		s.render(w, r, forbidden())
		return
	}
	req.Body = http.MaxBytesReader(w, req.Body, maxForm)
	if err := req.ParseForm(); err != nil {
		s.render(w, r, refused(http.StatusBadRequest, "The form cannot be read."))
		return
	}
	a := action.Action{
		Kind:  action.Kind(r.PathValue("action")),
		Topic: req.PostForm.Get("topic"), Channel: req.PostForm.Get("channel"), Node: req.PostForm.Get("node"),
	}
	if p, ok := s.check(r, a, req.PostForm.Get("confirm")); !ok {
		s.render(w, r, p)
		return
	}
	outcome, err := s.Do(req, a)
	var invalid action.Invalid
	if errors.As(err, &invalid) {
		s.render(w, r, s.invalid(a, invalid))
		return
	}
	e := entry{at: time.Now(), action: a, failed: err != nil}
	if err != nil {
		e.errors = []string{err.Error()}
	}
	if outcome != nil {
		e.results, e.failed = outcome.Results, e.failed || outcome.Failed()
		e.errors = append(e.errors, unlisted(outcome)...)
	}
	id := s.journal.add(e)
	ctx, cancel := context.WithTimeout(req.Context(), patience)
	defer cancel()
	s.Refresh(ctx)
	http.Redirect(w, req, s.links.To("/actions/result")+"?id="+id, http.StatusSeeOther)
}

// check refuses what cannot be done, or was not confirmed.
func (s *site) check(r request, a action.Action, typed string) (page, bool) {
	switch {
	case verbs[a.Kind].verb == "":
		return missing("No such action", "There is no such action."), false
	case !protocol.ValidName(a.Topic):
		return s.invalid(a, "INVALID_TOPIC"), false
	case a.Channel != "" && !protocol.ValidName(a.Channel):
		return s.invalid(a, "INVALID_CHANNEL"), false
	case a.Kind == action.Tombstone && r.snapshot.Node(a.Node) == nil:
		return s.invalid(a, "NODE_NOT_FOUND"), false
	case a.Kind == action.Create:
		return page{}, true
	}
	if c := s.confirmation(r, a); c.Type != "" && c.Type != typed {
		p := s.asking(c)
		p.Status = http.StatusUnprocessableEntity
		p.Notices = []notice{{Kind: "bad", Text: "Nothing was done: the name that was typed is not “" + c.Type + "”."}}
		return p, false
	}
	return page{}, true
}

// unlisted are the failures of an outcome besides those of its results: of requests that only read.
func unlisted(o *action.Outcome) (texts []string) {
	listed := map[[2]string]bool{}
	for _, result := range o.Results {
		if result.Error != "" {
			listed[[2]string{result.Target, result.Stage}] = true
		}
	}
	for _, f := range o.Report.All() {
		if !listed[[2]string{f.Target, f.Stage}] {
			texts = append(texts, f.Target+" "+f.Stage+": "+f.Err.Error())
		}
	}
	return texts
}

func refused(status int, text string) page {
	return page{Status: status, Title: "Nothing was done", Notices: []notice{{Kind: "bad", Text: text}}}
}

func forbidden() page {
	return refused(http.StatusForbidden, "Only admins may do this. Who is one is told by a header that a proxy in front of nsqadmin sets.")
}

// invalid says what is wrong with an action, and lets a name be typed again.
func (s *site) invalid(a action.Action, code action.Invalid) page {
	texts := map[action.Invalid]string{
		"INVALID_TOPIC":   "This is not the name of a topic: names have 1 to 64 letters, digits, dots, dashes and underscores, and may end in #ephemeral.",
		"INVALID_CHANNEL": "This is not the name of a channel: names have 1 to 64 letters, digits, dots, dashes and underscores, and may end in #ephemeral.",
		"NODE_NOT_FOUND":  "There is no such node.",
	}
	text, known := texts[code]
	if !known {
		text = "This cannot be done."
	}
	p := refused(http.StatusBadRequest, text+" ("+clip(string(code))+")")
	if a.Kind == action.Create {
		p.Create = s.creation(clip(a.Topic), clip(a.Channel))
	}
	return p
}
