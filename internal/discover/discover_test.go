package discover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
	"nsq/internal/httpx"
)

func newClient(t *testing.T) *httpx.Client {
	client := httpx.NewClient(httpx.ClientConfig{ConnectTimeout: time.Second, RequestTimeout: 5 * time.Second})
	t.Cleanup(client.Close)
	return client
}

// answering runs a server that gives each path its answer, and returns its host:port.
func answering(t *testing.T, answers map[string]string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.RequestURI()]
		if !ok {
			http.Error(w, `{"message":"NOT_FOUND"}`, http.StatusNotFound)
			return
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// All are asked at the same time, and the answers are in the order of the addresses.
func TestAsk(t *testing.T) {
	var together sync.WaitGroup
	together.Add(3)
	addresses := []string{"c", "a", "b"}
	answers := Ask(t.Context(), addresses, func(_ context.Context, address string) (string, error) {
		together.Done()
		together.Wait() // for ever, if one had to wait for another
		if address == "a" {
			return "", errors.New("no")
		}
		return address + "!", nil
	})
	for i, answer := range answers {
		failed := answer.Address == "a"
		if answer.Address != addresses[i] || (answer.Err != nil) != failed || !failed && answer.Value != addresses[i]+"!" {
			t.Errorf("answer %d is %+v", i, answer)
		}
	}
	if errs := Failures(answers); len(errs) != 1 || errs[0].Error() != "no" {
		t.Errorf("failures %v", errs)
	}
}

// Topics of all nsqlookupds are found, those that do not match or are no names left out; one that fails
// is told of and takes nothing away.
func TestTopics(t *testing.T) {
	one := answering(t, map[string]string{"/topics": `{"topics":["b","a1","../etc","a1"]}`})
	two := answering(t, map[string]string{"/topics": `{"topics":["a2#ephemeral","a1","xa3"]}`})
	gone := answering(t, nil)
	topics := &Topics{
		Client:    newClient(t),
		Addresses: []string{one, gone, "http://" + two + "/"},
		Pattern:   regexp.MustCompile("a[0-9]"),
	}
	found, err := topics.Find(t.Context())
	if want := []string{"a1", "a2#ephemeral", "xa3"}; !slices.Equal(found, want) {
		t.Errorf("topics %q, want %q", found, want)
	}
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v, want that of the second nsqlookupd", err)
	}
	topics.Pattern, topics.Addresses = nil, []string{one}
	if found, err := topics.Find(t.Context()); err != nil || !slices.Equal(found, []string{"a1", "b"}) {
		t.Errorf("topics %q, error %v", found, err)
	}
}

// Producers of all nsqlookupds are found, each once; one that fails is told of.
func TestProducers(t *testing.T) {
	const path = "/lookup?topic=t"
	one := answering(t, map[string]string{path: `{"producers":[{"broadcast_address":"h1","tcp_port":1,"http_port":2}]}`})
	two := answering(t, map[string]string{path: `{"producers":[{"broadcast_address":"h2","tcp_port":1,"http_port":2},` +
		`{"broadcast_address":"h1","tcp_port":1,"http_port":2},{"broadcast_address":"","tcp_port":5}]}`})
	gone := answering(t, nil)
	producers, errs := Producers(t.Context(), newClient(t), []string{one, two, gone}, "t")
	want := []api.Producer{
		{BroadcastAddress: "h1", TCPPort: 1, HTTPPort: 2},
		{BroadcastAddress: "h2", TCPPort: 1, HTTPPort: 2},
	}
	if diff := cmp.Diff(want, producers); diff != "" {
		t.Errorf("producers (-want +got):\n%s", diff)
	}
	if len(errs) != 1 {
		t.Errorf("errors %v, want one", errs)
	}
	if TCPAddress(want[0]) != "h1:1" || HTTPAddress(want[0]) != "h1:2" {
		t.Errorf("addresses %s and %s", TCPAddress(want[0]), HTTPAddress(want[0]))
	}
}
