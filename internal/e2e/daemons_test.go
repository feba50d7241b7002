//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// startNSQD starts a nsqd on a data folder, which announces the loopback address.
func startNSQD(t *testing.T, folder string, args ...string) *testutil.Daemon {
	t.Helper()
	return programs.Start(t, "nsqd", nsqdArgs(folder, args...)...)
}

func nsqdArgs(folder string, args ...string) []string {
	return append([]string{"--data-path=" + folder, "--broadcast-address=127.0.0.1"}, args...)
}

func startLookupd(t *testing.T, args ...string) *testutil.Daemon {
	t.Helper()
	return programs.Start(t, "nsqlookupd", append([]string{"--broadcast-address=127.0.0.1"}, args...)...)
}

// newClient returns a HTTP client that keeps connections, unlike client; it lets go of them when the
// test ends.
func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testutil.Patience}
}

// client makes a new connection for each request: nothing depends on an earlier process.
var client = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true},
	Timeout:   testutil.Patience,
}

// request makes a request and returns the body of its answer, or an error if that is not a 200.
func request(c *http.Client, method, address string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s %s", method, address, resp.Status, answer)
	}
	return answer, nil
}

// post makes a request that has to succeed; path has the parameters too.
func post(t *testing.T, d *testutil.Daemon, path string, body string) {
	t.Helper()
	if _, err := request(client, http.MethodPost, d.URL(path), []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// ask returns a JSON answer of a daemon.
func ask[T any](d *testutil.Daemon, path string) (T, error) {
	var answer T
	body, err := request(client, http.MethodGet, d.URL(path), nil)
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	return answer, err
}

// topicStats is what a nsqd reports of a topic.
func topicStats(d *testutil.Daemon, topic string) (api.TopicStats, error) {
	stats, err := ask[api.Stats](d, "/stats?format=json&topic="+url.QueryEscape(topic))
	if err != nil {
		return api.TopicStats{}, err
	}
	if len(stats.Topics) != 1 {
		return api.TopicStats{}, fmt.Errorf("nsqd has no topic %s", topic)
	}
	return stats.Topics[0], nil
}

// channelStats is what a nsqd reports of a channel.
func channelStats(d *testutil.Daemon, topic, channel string) (api.ChannelStats, error) {
	stats, err := topicStats(d, topic)
	if err != nil {
		return api.ChannelStats{}, err
	}
	for _, c := range stats.Channels {
		if c.ChannelName == channel {
			return c, nil
		}
	}
	return api.ChannelStats{}, fmt.Errorf("topic %s has no channel %s", topic, channel)
}

// awaitChannel waits until a channel is as wanted.
func awaitChannel(t *testing.T, d *testutil.Daemon, topic, channel string, wanted func(api.ChannelStats) bool) api.ChannelStats {
	t.Helper()
	var stats api.ChannelStats
	testutil.Eventually(t, func() (err error) {
		if stats, err = channelStats(d, topic, channel); err == nil && !wanted(stats) {
			err = fmt.Errorf("channel %s of %s is not as wanted: %+v", channel, topic, stats)
		}
		return err
	})
	return stats
}

// drained is a channel that has nothing left to do.
func drained(c api.ChannelStats) bool {
	return c.Depth == 0 && c.InFlightCount == 0 && c.DeferredCount == 0
}

// nodesOf are the nsqds that a nsqlookupd names for a topic, as host:port of TCP.
func nodesOf(lookupd *testutil.Daemon, topic string) ([]string, error) {
	found, err := ask[api.Lookup](lookupd, "/lookup?topic="+url.QueryEscape(topic))
	var nodes []string
	for _, p := range found.Producers {
		nodes = append(nodes, net.JoinHostPort(p.BroadcastAddress, fmt.Sprint(p.TCPPort)))
	}
	return nodes, err
}

// names says whether a nsqlookupd names this nsqd for a topic; not knowing the topic is an answer too.
func names(lookupd, nsqd *testutil.Daemon, topic string) (bool, error) {
	topics, err := ask[api.TopicList](lookupd, "/topics")
	if err != nil {
		return false, err
	}
	for _, known := range topics.Topics {
		if known != topic {
			continue
		}
		nodes, err := nodesOf(lookupd, topic)
		for _, node := range nodes {
			if node == nsqd.TCP {
				return true, err
			}
		}
		return false, err
	}
	return false, nil
}

// awaitNamed waits until a nsqlookupd names this nsqd for a topic, or does not any more.
func awaitNamed(t *testing.T, lookupd, nsqd *testutil.Daemon, topic string, wanted bool) {
	t.Helper()
	testutil.Eventually(t, func() error {
		named, err := names(lookupd, nsqd, topic)
		if err == nil && named != wanted {
			err = fmt.Errorf("names %s for topic %s: %v", nsqd.TCP, topic, named)
		}
		return err
	})
}

// awaitNodes waits until a nsqlookupd knows this many nsqds.
func awaitNodes(t *testing.T, lookupd *testutil.Daemon, count int) {
	t.Helper()
	testutil.Eventually(t, func() error {
		nodes, err := ask[api.NodeList](lookupd, "/nodes")
		if err == nil && len(nodes.Producers) != count {
			err = fmt.Errorf("%d nodes, want %d", len(nodes.Producers), count)
		}
		return err
	})
}

// dial opens a plain connection that is closed when the test ends, and says something on it.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, testutil.Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	if err := conn.SetDeadline(time.Now().Add(testutil.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}
