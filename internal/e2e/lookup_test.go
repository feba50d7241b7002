//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// lookupKnows says what is missing when a nsqlookupd does not name this nsqd, and these channels, for a
// topic.
func lookupKnows(lookupd, d *testutil.Daemon, topic string, channels ...string) error {
	named, err := names(lookupd, d, topic)
	if err != nil {
		return err
	}
	if !named {
		return fmt.Errorf("nsqlookupd does not name %s for topic %s", d.TCP, topic)
	}
	found, err := ask[api.Lookup](lookupd, "/lookup?topic="+topic)
	if err == nil && !slices.Equal(found.Channels, channels) {
		err = fmt.Errorf("channels %q of topic %s, want %q", found.Channels, topic, channels)
	}
	return err
}

// A nsqlookupd that comes back, stopped or killed, knows everything again within 3 seconds.
func TestLookupdRestart(t *testing.T) {
	t.Parallel()
	lookupd := startLookupd(t)
	d := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+lookupd.TCP)
	post(t, d, "/topic/create?topic=bare", "")
	post(t, d, "/topic/create?topic=t", "")
	for _, channel := range []string{"a", "b"} {
		post(t, d, "/channel/create?topic=t&channel="+channel, "")
	}
	complete := func() error {
		if err := lookupKnows(lookupd, d, "bare"); err != nil {
			return err
		}
		return lookupKnows(lookupd, d, "t", "a", "b")
	}
	testutil.Eventually(t, complete)
	for _, end := range []func(){lookupd.Stop, lookupd.Kill} {
		end()
		lookupd.Restart()
		testutil.Within(t, 3*time.Second, complete)
	}
}

// A nsqlookupd that is frozen holds up publishing to a new topic for a second at most, publishing to
// others not at all, and the other nsqlookupd hears of the topic. When it thaws it hears of it too.
func TestFrozenLookupd(t *testing.T) {
	t.Parallel()
	// slack is what a busy machine may need on top of what is promised.
	const bound, slack = time.Second, 1500 * time.Millisecond
	frozen, other := startLookupd(t), startLookupd(t)
	d := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+frozen.TCP, "--lookupd-tcp-address="+other.TCP)
	awaitNodes(t, frozen, 1)
	awaitNodes(t, other, 1)
	producer := newProducer(t, d, nil)
	publish(t, producer, "old", "1")

	frozen.Signal(syscall.SIGSTOP)
	for _, topic := range []string{"new-1", "new-2"} {
		start := time.Now()
		publish(t, producer, topic, "1")
		if took := time.Since(start); took > bound+slack {
			t.Errorf("the first message of topic %s took %v", topic, took)
		}
		start = time.Now()
		publish(t, producer, "old", numbered("more", 100)...)
		if took := time.Since(start); took > slack {
			t.Errorf("100 messages to an old topic took %v", took)
		}
	}
	for _, topic := range []string{"new-1", "new-2"} {
		awaitNamed(t, other, d, topic, true)
	}
	frozen.Signal(syscall.SIGCONT)
	for _, topic := range []string{"old", "new-1", "new-2"} {
		awaitNamed(t, frozen, d, topic, true)
	}
}

// The nsqlookupds of a running nsqd can be replaced: the old one forgets it, the new one knows it.
func TestLookupdIsReplaced(t *testing.T) {
	t.Parallel()
	first, second := startLookupd(t), startLookupd(t)
	d := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+first.TCP)
	post(t, d, "/topic/create?topic=t", "")
	awaitNamed(t, first, d, "t", true)

	value := fmt.Sprintf(`[%q]`, second.TCP)
	const option = "/config/nsqlookupd_tcp_addresses"
	if answer, err := request(client, http.MethodPut, d.URL(option), []byte(value)); err != nil || string(answer) != value {
		t.Fatalf("answer %s, error %v", answer, err)
	}
	awaitNamed(t, second, d, "t", true)
	awaitNamed(t, first, d, "t", false)
	awaitNodes(t, first, 0)
	post(t, d, "/topic/create?topic=later", "")
	awaitNamed(t, second, d, "later", true)
	if named, err := names(first, d, "later"); named || err != nil {
		t.Errorf("the old nsqlookupd names the nsqd for a later topic: %v, %v", named, err)
	}
}

// The channels that a topic has elsewhere, and those that only a nsqlookupd has, exist before the
// topic's first message leaves it.
func TestKnownChannelsGetTheFirstMessage(t *testing.T) {
	t.Parallel()
	lookupd := startLookupd(t)
	elsewhere := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+lookupd.TCP)
	here := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+lookupd.TCP)
	awaitNodes(t, lookupd, 2)
	post(t, elsewhere, "/topic/create?topic=t", "")
	for _, channel := range []string{"a", "b", "passing%23ephemeral"} {
		post(t, elsewhere, "/channel/create?topic=t&channel="+channel, "")
	}
	post(t, lookupd, "/channel/create?topic=t&channel=ordered", "")
	testutil.Eventually(t, func() error {
		return lookupKnows(lookupd, elsewhere, "t", "a", "b", "ordered", "passing#ephemeral")
	})

	publish(t, newProducer(t, here, nil), "t", "first")
	testutil.Eventually(t, func() error {
		topic, err := topicStats(here, "t")
		if err != nil {
			return err
		}
		got := map[string]int64{}
		for _, c := range topic.Channels {
			got[c.ChannelName] = c.Depth
		}
		if len(got) != 3 || got["a"] != 1 || got["b"] != 1 || got["ordered"] != 1 || topic.Depth != 0 {
			return fmt.Errorf("depths %v, %d wait in the topic", got, topic.Depth)
		}
		return nil
	})
}

// A nsqd that is killed is not named any more, and is again when it is back.
func TestKilledNSQDIsForgotten(t *testing.T) {
	t.Parallel()
	lookupd := startLookupd(t)
	d := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+lookupd.TCP)
	post(t, d, "/topic/create?topic=t", "")
	awaitNamed(t, lookupd, d, "t", true)
	d.Kill()
	awaitNamed(t, lookupd, d, "t", false)
	awaitNodes(t, lookupd, 0)
	if topics, err := ask[api.TopicList](lookupd, "/topics"); err != nil || !slices.Equal(topics.Topics, []string{"t"}) {
		t.Errorf("topics %q, error %v; permanent names outlive their producers", topics.Topics, err)
	}
	d.Restart()
	awaitNamed(t, lookupd, d, "t", true)
}

// A tombstone hides a nsqd for one topic and for its lifetime only.
func TestTombstone(t *testing.T) {
	t.Parallel()
	lookupd := startLookupd(t, "--tombstone-lifetime=2s")
	d := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+lookupd.TCP)
	for _, topic := range []string{"hidden", "seen"} {
		post(t, d, "/topic/create?topic="+topic, "")
		awaitNamed(t, lookupd, d, topic, true)
	}
	start := time.Now()
	post(t, lookupd, "/topic/tombstone?topic=hidden&node="+d.HTTP, "")
	nodes, err := ask[api.NodeList](lookupd, "/nodes")
	if err != nil || len(nodes.Producers) != 1 {
		t.Fatalf("nodes %+v, error %v", nodes, err)
	}
	got := map[string]bool{}
	for i, topic := range nodes.Producers[0].Topics {
		got[topic] = nodes.Producers[0].Tombstones[i]
	}
	hidden, err := nodesOf(lookupd, "hidden")
	if err != nil {
		t.Fatal(err)
	}
	seen, err := nodesOf(lookupd, "seen")
	if err != nil {
		t.Fatal(err)
	}
	// On a machine that took so long for the answers they may be from after its end.
	if time.Since(start) < 2*time.Second && (!got["hidden"] || got["seen"] || len(hidden) != 0) || len(seen) != 1 {
		t.Errorf("tombstones %v; nodes %q for the hidden topic, %q for the other", got, hidden, seen)
	}
	awaitNamed(t, lookupd, d, "hidden", true)
	if alive := time.Since(start); alive < 2*time.Second {
		t.Errorf("the tombstone was gone after %v", alive)
	}
}
