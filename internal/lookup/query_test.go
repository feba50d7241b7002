package lookup

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
	"nsq/internal/httpx"
)

func TestQueries(t *testing.T) {
	asked := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- req.RequestURI
		switch req.URL.Path {
		case "/channels":
			_, _ = w.Write([]byte(`{"channels":["b","a"]}`))
		case "/lookup":
			if req.URL.Query().Get("topic") == "no" {
				http.Error(w, `{"message":"TOPIC_NOT_FOUND"}`, http.StatusNotFound)
				return
			}
			_, _ = w.Write([]byte(`{"channels":["c"],"producers":[{"broadcast_address":"b","tcp_port":1}]}`))
		}
	}))
	defer s.Close()
	client := httpx.NewClient(httpx.ClientConfig{})
	defer client.Close()
	address := strings.TrimPrefix(s.URL, "http://")

	channels, err := Channels(t.Context(), client, address, "t#ephemeral")
	if diff := cmp.Diff([]string{"b", "a"}, channels); err != nil || diff != "" {
		t.Errorf("Channels: %v\n%s", err, diff)
	}
	if got := <-asked; got != "/channels?topic=t%23ephemeral" {
		t.Errorf("asked for %s", got)
	}
	answer, err := Producers(t.Context(), client, address, "t")
	want := api.Lookup{Channels: []string{"c"}, Producers: []api.Producer{{BroadcastAddress: "b", TCPPort: 1}}}
	if diff := cmp.Diff(want, answer); err != nil || diff != "" {
		t.Errorf("Producers: %v\n%s", err, diff)
	}
	<-asked
	var refused *httpx.StatusError
	if _, err := Producers(t.Context(), client, address, "no"); !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
		t.Errorf("Producers of an unknown topic: %v", err)
	}
}

func TestHTTPAddress(t *testing.T) {
	for _, test := range []struct {
		info PeerInfo
		want string
	}{
		{PeerInfo{BroadcastAddress: "host", HTTPPort: 4161}, "host:4161"},
		{PeerInfo{BroadcastAddress: "fd00::1", HTTPPort: 4161}, "[fd00::1]:4161"},
		{PeerInfo{HTTPPort: 4161}, ""},
	} {
		if got := test.info.HTTPAddress(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.info, got, test.want)
		}
	}
}
