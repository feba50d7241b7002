package action

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/api"
	"nsq/internal/log"
	"nsq/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run starts a notifier with a short pause, and returns what stops it and waits for its end.
func run(t *testing.T, n *Notifier) (stop func()) {
	n.pause = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// What fails is tried again before the next is sent, so that the order stays.
func TestNotificationsAreTriedAgain(t *testing.T) {
	var requests atomic.Int64
	got := make(chan string, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if requests.Add(1) < tries {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		got <- string(body)
	}))
	defer endpoint.Close()
	n := NewNotifier(NotifierConfig{Endpoint: endpoint.URL, Log: log.Discard()})
	stop := run(t, n)
	defer stop()
	for _, topic := range []string{"first", "second"} {
		n.enqueue(api.AdminNotification{Topic: topic})
	}
	for _, topic := range []string{"first", "second"} {
		if body := <-got; !strings.Contains(body, topic) {
			t.Errorf("notification %s, want that of %s", body, topic)
		}
	}
}

// An endpoint that is gone costs neither the daemon nor the actions anything but lines in the log.
func TestEndpointIsGone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	said := &testutil.Buffer{}
	n := NewNotifier(NotifierConfig{Endpoint: "http://" + address, Log: log.New(said, "", log.Info)})
	for range maxWaiting + 5 { // nobody takes them yet: the last ones are dropped, nobody waits
		n.enqueue(api.AdminNotification{Action: "pause_topic", Topic: "t"})
	}
	if dropped := strings.Count(said.String(), "dropped notification pause_topic of topic t"); dropped != 5 {
		t.Errorf("%d were dropped, want 5", dropped)
	}
	run(t, n)()
	if !strings.Contains(said.String(), "failed to POST notification - ") {
		t.Errorf("log: %.500s", said.String())
	}
}

// What waits when the daemon stops is sent once, and an endpoint that hangs does not keep it.
func TestNotificationsAtTheEnd(t *testing.T) {
	release := make(chan struct{})
	got := make(chan struct{}, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		got <- struct{}{}
		<-release
	}))
	defer endpoint.Close()
	defer close(release)
	n := NewNotifier(NotifierConfig{Endpoint: endpoint.URL, RequestTimeout: time.Hour, Log: log.Discard()})
	n.grace = 50 * time.Millisecond
	stop := run(t, n)
	n.enqueue(api.AdminNotification{Topic: "hangs"})
	<-got
	stop() // comes back although nobody answers
}

// The names of actions are those of the contract.
func TestNames(t *testing.T) {
	tests := map[string]Action{
		"create_topic":             {Kind: Create},
		"create_channel":           {Kind: Create, Channel: "c"},
		"delete_topic":             {Kind: Delete},
		"delete_channel":           {Kind: Delete, Channel: "c"},
		"pause_topic":              {Kind: Pause},
		"unpause_channel":          {Kind: Unpause, Channel: "c"},
		"empty_topic":              {Kind: Empty},
		"tombstone_topic_producer": {Kind: Tombstone, Node: "n"},
	}
	for want, action := range tests {
		if got := action.noun(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (Action{Kind: Delete, Topic: "t", Channel: "c"}).String(); got != "delete_channel t/c" {
		t.Error(got)
	}
}

// Nothing of what failed is a success, and doing nothing is none of the failures.
func TestOutcome(t *testing.T) {
	bad, good := api.AdminResult{Error: "x"}, api.AdminResult{}
	for _, test := range []struct {
		results []api.AdminResult
		want    bool
	}{{nil, false}, {[]api.AdminResult{good}, false}, {[]api.AdminResult{bad, good}, false}, {[]api.AdminResult{bad, bad}, true}} {
		if got := (&Outcome{Results: test.results}).Failed(); got != test.want {
			t.Errorf("%v: %v", test.results, got)
		}
	}
}
