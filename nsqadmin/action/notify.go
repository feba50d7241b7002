package action

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"nsq/internal/api"
	"nsq/internal/log"
)

const (
	maxWaiting     = 1000    // notifications; more are dropped, and the log says so
	maxDiscarded   = 1 << 20 // bytes of an answer that are read so that the connection can be used again
	tries          = 3       // of each notification
	retryPause     = time.Second
	defaultTimeout = time.Minute
	stopGrace      = 2 * time.Second // for what waits when the daemon stops
	maxUserLength  = 1024            // bytes of what a request says about itself
)

// NotifierConfig is what a Notifier is made from.
type NotifierConfig struct {
	Endpoint       string // absolute URL
	ConnectTimeout time.Duration
	RequestTimeout time.Duration
	ACLHeader      string
	Via            string // host name of this machine
	Log            *log.Logger
}

// Notifier tells one endpoint of all actions, in their order and without ever holding one up. Its
// methods are safe for concurrent use.
type Notifier struct {
	config  NotifierConfig
	client  *http.Client
	waiting chan api.AdminNotification
	pause   time.Duration // before another try
	grace   time.Duration // for what waits when the daemon stops
}

// NewNotifier returns a notifier, whose Run sends.
func NewNotifier(config NotifierConfig) *Notifier {
	dialer := &net.Dialer{Timeout: config.ConnectTimeout}
	if config.RequestTimeout <= 0 {
		config.RequestTimeout = defaultTimeout // an endpoint that hangs must not hold up the others
	}
	return &Notifier{
		config:  config,
		waiting: make(chan api.AdminNotification, maxWaiting),
		pause:   retryPause,
		grace:   stopGrace,
		client: &http.Client{
			Timeout: config.RequestTimeout,
			Transport: &http.Transport{
				DialContext:           dialer.DialContext,
				ResponseHeaderTimeout: config.RequestTimeout,
				TLSHandshakeTimeout:   10 * time.Second,
				IdleConnTimeout:       30 * time.Second,
			},
		},
	}
}

// Run sends notifications until ctx is cancelled, then what still waits, each once, as far as a
// moment allows.
func (n *Notifier) Run(ctx context.Context) error {
	defer n.client.CloseIdleConnections()
	late, cancel := withGrace(ctx, n.grace)
	defer cancel()
	for {
		select {
		case note := <-n.waiting:
			n.send(ctx, late, note)
		case <-ctx.Done():
			n.sendRest(ctx, late)
			return nil
		}
	}
}

// withGrace returns a context that ends when the grace has passed after the end of ctx.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		select {
		case <-time.After(grace):
		case <-late.Done():
		}
	})
	return late, func() { stop(); cancel() }
}

func (n *Notifier) sendRest(ctx, late context.Context) {
	for {
		select {
		case note := <-n.waiting:
			n.send(ctx, late, note)
		default:
			return
		}
	}
}

// send tries some times, until late ends, and not again once ctx has ended. A notification that
// arrives nowhere is logged.
func (n *Notifier) send(ctx, late context.Context, note api.AdminNotification) {
	for try := 1; ; try++ {
		err := n.post(late, note)
		if err == nil {
			return
		}
		n.config.Log.Errorf("failed to POST notification - %s", err)
		if try == tries {
			return
		}
		select {
		case <-time.After(n.pause << (try - 1)):
		case <-ctx.Done():
			return
		}
	}
}

// post sends a notification; any answer will do.
func (n *Notifier) post(ctx context.Context, note api.AdminNotification) error {
	body, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("encode notification: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.config.Endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	n.config.Log.Infof("POSTing notification %s of topic %s", note.Action, note.Topic)
	resp, err := n.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxDiscarded))
	if err != nil {
		n.config.Log.Debugf("failed to read answer to notification - %s", err)
	}
	return nil
}

// enqueue never waits.
func (n *Notifier) enqueue(note api.AdminNotification) {
	select {
	case n.waiting <- note:
	default:
		n.config.Log.Errorf("dropped notification %s of topic %s - %d are waiting", note.Action, note.Topic, maxWaiting)
	}
}

// notify tells of an action that was tried. Creating a channel is creating its topic, too.
func (a *Actor) notify(req *http.Request, do Action, success bool) {
	if a.config.Notifier == nil {
		return
	}
	note := a.config.Notifier.about(req, do)
	note.Success = success
	if do.Kind == Create && do.Channel != "" {
		first := note
		first.Action, first.Channel = "create_topic", ""
		a.config.Notifier.enqueue(first)
	}
	a.config.Notifier.enqueue(note)
}

// about is the notification of an action, its success aside.
func (n *Notifier) about(req *http.Request, do Action) api.AdminNotification {
	user, _, _ := req.BasicAuth()
	return api.AdminNotification{
		Action:    do.noun(),
		Topic:     do.Topic,
		Channel:   do.Channel,
		Node:      do.Node,
		Timestamp: time.Now().Unix(),
		User:      clip(user),
		RemoteIP:  req.RemoteAddr,
		UserAgent: clip(req.UserAgent()),
		URL:       clip(fullURL(req)),
		Via:       n.config.Via,
		ACLUser:   clip(req.Header.Get(n.config.ACLHeader)),
	}
}

// fullURL is the URL that the request was made with, as far as it tells.
func fullURL(req *http.Request) string {
	scheme := "http"
	if req.TLS != nil || req.Header.Get("X-Scheme") == "https" {
		scheme = "https"
	}
	return scheme + "://" + req.Host + req.URL.RequestURI()
}

func clip(text string) string { return text[:min(len(text), maxUserLength)] }
