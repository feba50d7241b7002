//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// feeder publishes to one nsqd, whether that is there or not: after an error it goes on with other
// messages. Batches and single messages take turns.
type feeder struct {
	name     string
	topic    string
	producer *nsq.Producer
	ledger   *testutil.Ledger

	acked      atomic.Int64
	errors     atomic.Int64
	sinceError int64 // acknowledged since the last error; to be read after run
}

const feederBatch = 10

// run publishes until quota messages are acknowledged and release is closed.
func (f *feeder) run(quota int64, release <-chan struct{}) {
	for sequence := 0; ; sequence++ {
		if f.acked.Load() >= quota {
			select {
			case <-release:
				return
			default:
			}
		}
		keys := []string{fmt.Sprintf("%s-%d", f.name, sequence)}
		if sequence%2 == 0 {
			keys = numbered(keys[0], feederBatch)
		}
		f.ledger.Sending(keys...)
		if err := f.send(keys); err != nil {
			f.errors.Add(1)
			f.sinceError = 0
			continue
		}
		f.ledger.Acknowledged(keys...)
		f.sinceError += int64(len(keys))
		f.acked.Add(int64(len(keys)))
	}
}

func (f *feeder) send(keys []string) error {
	if len(keys) == 1 {
		return f.producer.Publish(f.topic, []byte(keys[0]))
	}
	return f.producer.MultiPublish(f.topic, toBytes(keys))
}

// Three nsqds, found through a nsqlookupd, carry a stream of messages while one of them is stopped and
// started again. Every acknowledged message is finished; only what was in flight at the stop may come
// twice; and the daemons count what the clients count.
func TestNothingLostWhileAnNSQDRestarts(t *testing.T) {
	const topic, channel = "stream", "c"
	const window, consumers = 60, 2
	quota := int64(long(20_000, 600_000) / 3)

	lookupd := startLookupd(t)
	var daemons []*testutil.Daemon
	ledger := testutil.NewLedger(channel)
	var feeders []*feeder
	for i := range 3 {
		d := startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+lookupd.TCP)
		daemons = append(daemons, d)
		post(t, d, "/topic/create?topic="+topic, "")
		post(t, d, "/channel/create?topic="+topic+"&channel="+channel, "")
		feeders = append(feeders, &feeder{
			name: fmt.Sprint(i), topic: topic, producer: newProducer(t, d, nil), ledger: ledger,
		})
	}
	for _, d := range daemons {
		awaitNamed(t, lookupd, d, topic, true)
	}
	for range consumers {
		consumer, _ := newConsumer(t, topic, channel, maxInFlight(window), 4, func(m *nsq.Message) error {
			ledger.Finished(channel, string(m.Body))
			return nil
		})
		if err := consumer.ConnectToNSQLookupd(lookupd.HTTP); err != nil {
			t.Fatal(err)
		}
	}

	restarted := make(chan struct{})
	var feeding sync.WaitGroup
	defer feeding.Wait()
	release := sync.OnceFunc(func() { close(restarted) })
	defer release()
	for _, f := range feeders {
		feeding.Go(func() { f.run(quota, restarted) })
	}
	testutil.Eventually(t, func() error {
		if n := feeders[1].acked.Load(); n < quota/3 {
			return fmt.Errorf("only %d acknowledged", n)
		}
		return nil
	})
	daemons[1].Stop()
	daemons[1].Restart()
	before := feeders[1].acked.Load()
	testutil.Eventually(t, func() error {
		if feeders[1].acked.Load() == before {
			return errors.New("nothing acknowledged since the restart")
		}
		return nil
	})
	release()
	feeding.Wait()
	testutil.Eventually(t, func() error {
		if left := ledger.Left(channel); left > 0 {
			return fmt.Errorf("%d of %d acknowledged messages are not finished", left, ledger.Acked())
		}
		return nil
	})

	for i, d := range daemons {
		want := uint64(feeders[i].acked.Load())
		if i == 1 {
			want = uint64(feeders[i].sinceError)
		} else if n := feeders[i].errors.Load(); n > 0 {
			t.Errorf("nsqd %d, which was not stopped, refused %d times", i, n)
		}
		checkCounts(t, d, topic, channel, want, i != 1)
	}
	if feeders[1].errors.Load() == 0 {
		t.Error("nobody noticed the restart")
	}
	balance := ledger.Balance(channel)
	t.Logf("%d acknowledged; %v", ledger.Acked(), balance)
	if len(balance.Lost) > 0 || len(balance.Unexpected) > 0 || len(balance.Duplicates) > window*consumers {
		t.Errorf("more than the %d in flight at the stop is out of order: %v", window*consumers, balance)
	}
}

// checkCounts compares the statistics of a drained nsqd with the number of messages acknowledged in
// this life of it. In its first life each of them was delivered and finished exactly once; a later
// one also delivers what an earlier one has left.
func checkCounts(t *testing.T, d *testutil.Daemon, topic, channel string, acked uint64, firstLife bool) {
	t.Helper()
	c := awaitChannel(t, d, topic, channel, drained)
	published, err := topicStats(d, topic)
	if err != nil {
		t.Fatal(err)
	}
	if published.MessageCount != acked || published.Depth != 0 {
		t.Errorf("nsqd %s counts %d in the topic, %d waiting; %d were acknowledged", d.TCP, published.MessageCount, published.Depth, acked)
	}
	if c.RequeueCount != 0 || c.TimeoutCount != 0 {
		t.Errorf("nsqd %s counts %d requeued, %d timed out", d.TCP, c.RequeueCount, c.TimeoutCount)
	}
	if finished := finishCount(c); firstLife && (c.MessageCount != acked || finished != acked) {
		t.Errorf("nsqd %s counts %d in the channel and %d finished of %d", d.TCP, c.MessageCount, finished, acked)
	}
}

func finishCount(c api.ChannelStats) uint64 {
	var sum uint64
	for _, client := range c.Clients {
		sum += client.FinishCount
	}
	return sum
}
