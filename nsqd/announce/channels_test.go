package announce

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/lookup"
)

// channelServer is the HTTP side of a nsqlookupd that gives one answer.
func channelServer(t *testing.T, status int, body string) lookup.PeerInfo {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if got := req.Header.Get("Accept"); got != "application/vnd.nsq; version=1.0" {
			t.Errorf("Accept: %s", got)
		}
		if req.RequestURI != "/channels?topic=t%23ephemeral" {
			t.Errorf("asked for %s", req.RequestURI)
		}
		w.WriteHeader(status)
		if _, err := w.Write([]byte(body)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return infoOf(t, s.Listener.Addr())
}

func infoOf(t *testing.T, addr net.Addr) lookup.PeerInfo {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return lookup.PeerInfo{BroadcastAddress: host, HTTPPort: n}
}

// asker is an Announcer whose peers have introduced themselves, nil for one that has not.
func asker(t *testing.T, infos ...*lookup.PeerInfo) (*Announcer, *lines) {
	text := &lines{}
	client := httpx.NewClient(httpx.ClientConfig{ConnectTimeout: time.Second, RequestTimeout: 100 * time.Millisecond})
	t.Cleanup(client.Close)
	a := New(Config{HTTP: client, Log: log.New(text, "", log.Info)})
	var addresses []string
	for i := range infos {
		addresses = append(addresses, "lookup"+strconv.Itoa(i))
	}
	a.SetAddresses(addresses)
	for i, p := range a.wanted() {
		p.info.Store(infos[i])
	}
	return a, text
}

// The answers of all that can be asked are merged, without what must not be created.
func TestKnownChannels(t *testing.T) {
	one := channelServer(t, 200, `{"channels":["c","a","gone#ephemeral","not a name"]}`)
	two := channelServer(t, 200, `{"channels":["b","c"],"more":1}`)
	none := channelServer(t, 200, `{"channels":[]}`)
	a, text := asker(t, &one, &two, &two, &none, nil, &lookup.PeerInfo{HTTPPort: 1})
	channels, err := a.KnownChannels(t.Context(), "t#ephemeral")
	if diff := cmp.Diff([]string{"a", "b", "c"}, channels); err != nil || diff != "" {
		t.Errorf("%v, channels (-want +got):\n%s", err, diff)
	}
	url := lookup.ChannelsURL(two.HTTPAddress(), "t#ephemeral")
	if got := strings.Count(text.String(), "INFO: CI: querying nsqlookupd "+url+"\n"); got != 1 {
		t.Errorf("%s was asked %d times:\n%s", url, got, text)
	}
}

// One that fails or freezes takes nothing away from what the others know.
func TestKnownChannelsWithFailures(t *testing.T) {
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	good := channelServer(t, 200, `{"channels":["a"]}`)
	for name, bad := range map[string]lookup.PeerInfo{
		"500":       channelServer(t, 500, `{"message":"INTERNAL_ERROR"}`),
		"no JSON":   channelServer(t, 200, `[`),
		"frozen":    infoOf(t, frozen.Addr()),
		"no port":   {BroadcastAddress: "127.0.0.1", HTTPPort: -1},
		"odd host":  {BroadcastAddress: "a b\n/", HTTPPort: 1},
		"over port": {BroadcastAddress: "127.0.0.1", HTTPPort: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			a, text := asker(t, &bad, &good)
			channels, err := a.KnownChannels(t.Context(), "t#ephemeral")
			if diff := cmp.Diff([]string{"a"}, channels); err == nil || diff != "" {
				t.Errorf("error %v, channels (-want +got):\n%s", err, diff)
			}
			if !strings.Contains(text.String(), "WARNING: failed to query nsqlookupd for channels to pre-create for topic t#ephemeral - ") {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}

// Without a nsqlookupd there is nothing to ask or to complain about; with one that nobody has met
// there is.
func TestKnownChannelsWithoutPeers(t *testing.T) {
	a, text := asker(t)
	if channels, err := a.KnownChannels(t.Context(), "t"); len(channels) > 0 || err != nil || text.String() != "" {
		t.Errorf("without nsqlookupds: %v, %v, log %q", channels, err, text)
	}
	a, text = asker(t, nil)
	if channels, err := a.KnownChannels(t.Context(), "t"); len(channels) > 0 || !errors.Is(err, ErrNoLookupd) {
		t.Errorf("with one that is away: %v, %v", channels, err)
	}
	if want := "ERROR: no available nsqlookupd to query for channels to pre-create for topic t\n"; !strings.HasSuffix(text.String(), want) {
		t.Errorf("log %q, want %q", text, want)
	}
}

// The addresses of a nsqlookupd that went away are still asked.
func TestIntroductionOutlivesTheConnection(t *testing.T) {
	inWorld(t, 1, nil, func(t *testing.T, w *world) {
		after(time.Second)
		w.fakes["a"].die()
		after(time.Second)
		if diff := cmp.Diff([]string{"lookup1:4161"}, httpAddresses(w.wanted())); diff != "" {
			t.Errorf("HTTP addresses (-want +got):\n%s", diff)
		}
	})
}
