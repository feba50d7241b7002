package cluster

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"nsq/internal/api"
	"nsq/internal/httpx"
)

// Failure is one request to a daemon that failed.
type Failure struct {
	Target string // HTTP address of the daemon
	Stage  string // path of the request
	Err    error
}

// Failures are the failures of one stage: the same request to several daemons.
type Failures []Failure

// Error is the errors, a line each.
func (f Failures) Error() string {
	lines := make([]string, len(f))
	for i, failure := range f {
		lines[i] = failure.Err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unreachable is the error of a question that nobody answered: all who were asked failed, or there
// was nobody to ask.
type Unreachable struct {
	Kind     string // "nsqlookupd" or "nsqd"
	Failures Failures
}

// Error has the form that scripts know.
func (u *Unreachable) Error() string {
	return "failed to query any " + u.Kind + ": " + u.Failures.Error()
}

// UnknownTopic says whether everybody was asked for a topic and answered not to know it.
func (u *Unreachable) UnknownTopic() bool {
	for _, f := range u.Failures {
		status, ok := errors.AsType[*httpx.StatusError](f.Err)
		if !ok || f.Stage != lookupPath || status.Code != http.StatusNotFound || !bytes.Contains(status.Body, []byte("TOPIC_NOT_FOUND")) {
			return false
		}
	}
	return len(u.Failures) > 0
}

// Report collects what failed on the way to an answer, stage by stage. It belongs to one goroutine.
type Report struct{ stages []Failures }

// Add takes the failures of the next stage.
func (r *Report) Add(f Failures) {
	if len(f) > 0 {
		r.stages = append(r.stages, f)
	}
}

// All are the failures of all stages.
func (r *Report) All() (all Failures) {
	for _, stage := range r.stages {
		all = append(all, stage...)
	}
	return all
}

// Message is the text for people: empty if nothing failed.
func (r *Report) Message() string {
	if len(r.stages) == 0 {
		return ""
	}
	texts := make([]string, len(r.stages))
	for i, stage := range r.stages {
		texts[i] = stage.Error()
	}
	return "WARNING: " + strings.Join(texts, "; ")
}

// Status is how an answer of the API ends.
func (r *Report) Status() api.AdminStatus {
	status := api.AdminStatus{Message: r.Message()}
	for _, f := range r.All() {
		status.Errors = append(status.Errors, api.AdminError{Target: f.Target, Stage: f.Stage, Error: f.Err.Error()})
	}
	return status
}
