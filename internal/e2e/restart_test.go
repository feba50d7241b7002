//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// A clean stop and a start bring back what was in memory, on disk, in flight and deferred, and what
// was paused.
func TestRestartKeeps(t *testing.T) {
	t.Parallel()
	const delay = 3 * time.Second
	d := startNSQD(t, t.TempDir(), "--mem-queue-size=10")
	producer := newProducer(t, d, nil)

	waiting, work := numbered("waiting", 25), numbered("work", 30)
	publish(t, producer, "waiting", waiting...) // no channel: 10 in memory, 15 on disk
	post(t, d, "/topic/create?topic=work", "")
	post(t, d, "/channel/create?topic=work&channel=c", "")
	publish(t, producer, "work", work...)
	held := hold(t, "work", "c", 5, d)
	inFlight := held.await(t, 5)

	post(t, d, "/topic/create?topic=later", "")
	post(t, d, "/channel/create?topic=later&channel=c", "")
	deferredAt := map[string]time.Time{}
	for _, body := range numbered("soon", 3) {
		deferredAt[body] = time.Now()
		if err := producer.DeferredPublish("later", delay, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range numbered("much-later", 4) {
		if err := producer.DeferredPublish("later", time.Hour, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	awaitChannel(t, d, "later", "c", func(c api.ChannelStats) bool { return c.DeferredCount == 7 })

	post(t, d, "/topic/create?topic=paused", "")
	post(t, d, "/channel/create?topic=paused&channel=c", "")
	post(t, d, "/channel/pause?topic=paused&channel=c", "")
	publish(t, producer, "paused", "in the channel")
	awaitChannel(t, d, "paused", "c", func(c api.ChannelStats) bool { return c.Depth == 1 })
	post(t, d, "/topic/pause?topic=paused", "")
	publish(t, producer, "paused", "in the topic")
	post(t, d, "/topic/create?topic=gone%23ephemeral", "")
	post(t, d, "/channel/create?topic=work&channel=gone%23ephemeral", "")

	d.Stop()
	d.Restart()

	if stats, err := ask[api.Stats](d, "/stats?format=json"); err != nil || !slices.Equal(topicNames(stats), []string{"later", "paused", "waiting", "work"}) {
		t.Errorf("topics %q, error %v", topicNames(stats), err)
	}
	t.Run("waiting", func(t *testing.T) {
		topic, err := topicStats(d, "waiting")
		if err != nil || topic.Depth != int64(len(waiting)) {
			t.Errorf("depth %d, error %v", topic.Depth, err)
		}
		var got inbox
		consume(t, "waiting", "c", maxInFlight(10), got.HandleMessage, d)
		got.await(t, len(waiting))
		checkArrived(t, d, "waiting", &got, waiting, nil)
	})
	t.Run("in flight", func(t *testing.T) {
		// The consumer that held them may have come back first, and hold others: let them be its.
		var got inbox
		consume(t, "work", "c", maxInFlight(10), got.HandleMessage, d)
		testutil.Eventually(t, func() error {
			if n := len(got.all()) + len(held.all()) - len(inFlight); n < len(work) {
				return fmt.Errorf("%d of %d are back", n, len(work))
			}
			return nil
		})
		got.messages = append(got.messages, held.all()[len(inFlight):]...)
		checkArrived(t, d, "", &got, work, inFlight)
		if topic, err := topicStats(d, "work"); err != nil || len(topic.Channels) != 1 {
			t.Errorf("%d channels, error %v; the ephemeral one is back", len(topic.Channels), err)
		}
	})
	t.Run("paused", func(t *testing.T) {
		topic, err := topicStats(d, "paused")
		if err != nil || !topic.Paused || topic.Depth != 1 || !topic.Channels[0].Paused || topic.Channels[0].Depth != 1 {
			t.Fatalf("error %v, topic %+v", err, topic)
		}
		post(t, d, "/channel/unpause?topic=paused&channel=c", "")
		var got inbox
		consume(t, "paused", "c", nil, got.HandleMessage, d)
		if body := string(got.await(t, 1)[0].Body); body != "in the channel" {
			t.Errorf("delivered %q of a paused topic", body)
		}
		post(t, d, "/topic/unpause?topic=paused", "")
		got.await(t, 2)
		checkArrived(t, d, "paused", &got, []string{"in the channel", "in the topic"}, nil)
	})
	t.Run("deferred", func(t *testing.T) {
		type arrival struct {
			message *nsq.Message
			at      time.Time
		}
		arrivals := make(chan arrival, 10)
		consume(t, "later", "c", maxInFlight(10), func(m *nsq.Message) error {
			arrivals <- arrival{m, time.Now()}
			return nil
		}, d)
		for range deferredAt {
			var got arrival
			select {
			case got = <-arrivals:
			case <-time.After(testutil.Patience):
				t.Fatal("not delivered")
			}
			published, ok := deferredAt[string(got.message.Body)]
			if early := delay - got.at.Sub(published); !ok || early > 0 || got.message.Attempts != 1 {
				t.Errorf("%s came %v early with attempts %d", got.message.Body, early, got.message.Attempts)
			}
		}
		awaitChannel(t, d, "later", "c", func(c api.ChannelStats) bool {
			return c.DeferredCount == 4 && c.Depth == 0 && c.InFlightCount == 0
		})
	})
}

func topicNames(stats api.Stats) []string {
	var names []string
	for _, topic := range stats.Topics {
		names = append(names, topic.TopicName)
	}
	return names
}

// checkArrived insists that each body came once, with attempts 1 or, for those delivered before, 2
// and the identity they had. A topic that is named has to be drained then.
func checkArrived(t *testing.T, d *testutil.Daemon, topic string, got *inbox, bodies []string, before []*nsq.Message) {
	t.Helper()
	if topic != "" {
		awaitChannel(t, d, topic, "c", drained)
	}
	records := recordsOf(got.all())
	for i := range records {
		records[i].attempts--
	}
	checkBodies(t, "arrived", records, bodies, before)
}
