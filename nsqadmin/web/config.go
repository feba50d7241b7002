package web

import (
	"context"
	"net/http"
	"time"

	"nsq/internal/log"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/graphite"
	"nsq/nsqadmin/monitor"
)

// Config is what the pages are made from. All functions may be called from any goroutine.
type Config struct {
	BasePath  string                                                      // "/" or "/foo/bar"
	Snapshot  func() *monitor.Snapshot                                    // the latest, never nil
	Changed   func() <-chan struct{}                                      // closed when a newer snapshot is there; asked for before Snapshot
	Refresh   func(context.Context)                                       // collects now and waits for it
	History   History                                                     // of the cluster, nodes, topics and channels
	Do        func(*http.Request, action.Action) (*action.Outcome, error) // the request says who asks; Admin is checked before
	Admin     func(*http.Request) bool                                    // whether a request may do actions
	Graphite  graphite.Settings                                           // zero: there is none
	StaticDir string                                                      // assets are read from here, at each request; empty: the embedded ones
	Stopping  <-chan struct{}                                             // closed when the server stops: event streams end
	Log       *log.Logger
}

// History is what the charts are drawn from; *monitor.History is one.
type History interface {
	Samples(monitor.Key) []monitor.Sample // the oldest first
	Interval() time.Duration              // between two samples
	Window() time.Duration                // how far back they go
}
