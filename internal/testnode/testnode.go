// Package testnode runs nsqd and nsqlookupd inside the process of a test, on free ports of the loopback
// interface. It is for tests of what talks to them; the daemons as programs are run by
// internal/testutil.
package testnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/log"
	"nsq/internal/testutil"
	"nsq/nsqd"
	"nsq/nsqlookupd"
)

// daemon is what nsqd and nsqlookupd have in common.
type daemon interface {
	Run(ctx context.Context) error
	TCPAddr() net.Addr
	HTTPAddr() net.Addr
}

// Node is a daemon that can be stopped and started again. It belongs to the goroutine of the test, and
// is stopped with it.
type Node struct {
	TCP, HTTP string // host:port, which Start keeps

	t     testing.TB
	build func(tcp, http string) (daemon, error)
	end   func() // nil while the daemon is stopped
}

// StartNSQD runs a nsqd that announces itself to the nsqlookupds.
func StartNSQD(t testing.TB, lookupds ...*Node) *Node {
	t.Helper()
	folder := t.TempDir()
	return start(t, func(tcp, http string) (daemon, error) {
		o := nsqd.NewOptions()
		o.TCPAddress, o.HTTPAddress, o.BroadcastAddress, o.DataPath = tcp, http, "127.0.0.1", folder
		for _, l := range lookupds {
			o.NSQLookupdTCPAddresses = append(o.NSQLookupdTCPAddresses, l.TCP)
		}
		return nsqd.New(o, log.Discard())
	})
}

// StartLookupd runs a nsqlookupd.
func StartLookupd(t testing.TB) *Node {
	t.Helper()
	return start(t, func(tcp, http string) (daemon, error) {
		o := nsqlookupd.NewOptions()
		o.TCPAddress, o.HTTPAddress, o.BroadcastAddress = tcp, http, "127.0.0.1"
		return nsqlookupd.New(o, log.Discard())
	})
}

func start(t testing.TB, build func(tcp, http string) (daemon, error)) *Node {
	t.Helper()
	n := &Node{TCP: "127.0.0.1:0", HTTP: "127.0.0.1:0", t: t, build: build}
	t.Cleanup(n.Stop)
	n.Start()
	return n
}

// Start runs the daemon again, with its addresses and data.
func (n *Node) Start() {
	n.t.Helper()
	var d daemon
	testutil.Eventually(n.t, func() (err error) { // the ports may be in use for a moment
		d, err = n.build(n.TCP, n.HTTP)
		return err
	})
	n.TCP, n.HTTP = d.TCPAddr().String(), d.HTTPAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	n.end = func() {
		cancel()
		if err := <-ended; err != nil {
			n.t.Errorf("daemon on %s: %v", n.TCP, err)
		}
	}
}

// Stop stops the daemon, if it runs.
func (n *Node) Stop() {
	if n.end != nil {
		n.end()
		n.end = nil
	}
}

// client closes its connections, so that none is left when a test looks for leaks.
var client = &http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true},
}

// Publish publishes messages to a nsqd.
func (n *Node) Publish(topic string, bodies ...string) {
	n.t.Helper()
	for _, body := range bodies {
		resp, err := client.Post("http://"+n.HTTP+"/pub?topic="+topic, "", strings.NewReader(body))
		if err != nil {
			n.t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			n.t.Fatalf("publish: %s", resp.Status)
		}
	}
}

// Create creates a topic and, unless it is empty, a channel.
func (n *Node) Create(topic, channel string) {
	n.t.Helper()
	n.post("/topic/create?topic=" + topic)
	if channel != "" {
		n.post("/channel/create?topic=" + topic + "&channel=" + channel)
	}
}

// Pause pauses a channel.
func (n *Node) Pause(topic, channel string) {
	n.t.Helper()
	n.post("/channel/pause?topic=" + topic + "&channel=" + channel)
}

func (n *Node) post(path string) {
	n.t.Helper()
	resp, err := client.Post("http://"+n.HTTP+path, "", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		n.t.Fatalf("%s: %s", path, resp.Status)
	}
}

// Channel returns the statistics of a channel of a nsqd.
func (n *Node) Channel(topic, channel string) (api.ChannelStats, error) {
	stats, err := n.topic(topic)
	for _, c := range stats.Channels {
		if c.ChannelName == channel {
			return c, nil
		}
	}
	return api.ChannelStats{}, errors.Join(fmt.Errorf("no channel %s of topic %s", channel, topic), err)
}

// MessageCount is how many messages a topic of a nsqd has got.
func (n *Node) MessageCount(topic string) int {
	n.t.Helper()
	stats, err := n.topic(topic)
	if err != nil {
		n.t.Fatal(err)
	}
	return int(stats.MessageCount)
}

// AwaitMessages waits until a topic of a nsqd has got so many messages.
func (n *Node) AwaitMessages(topic string, count int) {
	n.t.Helper()
	testutil.Eventually(n.t, func() error {
		if got := n.MessageCount(topic); got < count {
			return fmt.Errorf("topic %s has got %d messages, not %d", topic, got, count)
		}
		return nil
	})
}

func (n *Node) topic(topic string) (found api.TopicStats, err error) {
	resp, err := client.Get("http://" + n.HTTP + "/stats?format=json&topic=" + topic)
	if err != nil {
		return found, err
	}
	defer resp.Body.Close()
	var stats api.Stats
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil {
		return found, err
	}
	for _, t := range stats.Topics {
		if t.TopicName == topic {
			return t, nil
		}
	}
	return found, nil
}

// AwaitChannel waits until a channel of a nsqd has what is asked of it, and returns its statistics.
func (n *Node) AwaitChannel(topic, channel string, ok func(api.ChannelStats) bool) api.ChannelStats {
	n.t.Helper()
	var last api.ChannelStats
	testutil.Eventually(n.t, func() (err error) {
		if last, err = n.Channel(topic, channel); err == nil && !ok(last) {
			err = fmt.Errorf("channel is %+v", last)
		}
		return err
	})
	return last
}

// Drained says whether nothing is left in a channel.
func Drained(c api.ChannelStats) bool {
	return c.Depth == 0 && c.InFlightCount == 0 && c.DeferredCount == 0 && c.MessageCount > 0
}

// AwaitProducer waits until a nsqlookupd knows a producer of the topic.
func (n *Node) AwaitProducer(topic string) {
	n.t.Helper()
	testutil.Eventually(n.t, func() error {
		resp, err := client.Get("http://" + n.HTTP + "/lookup?topic=" + topic)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var answer api.Lookup
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			return err
		}
		if len(answer.Producers) == 0 {
			return fmt.Errorf("no producer of %s", topic)
		}
		return nil
	})
}
