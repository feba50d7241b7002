//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

// A handler that fails makes the consumer back off and the message come again, not before its delay.
func TestBackoffAndRequeue(t *testing.T) {
	t.Parallel()
	const count, failures, delay = 8, 2, 100 * time.Millisecond
	d := startNSQD(t, t.TempDir())
	bodies := numbered("m", count)
	publish(t, newProducer(t, d, nil), "t", bodies...)

	var mu sync.Mutex
	failedAt := map[string]time.Time{}
	var early []string
	var done inbox
	consume(t, "t", "c", func(c *nsq.Config) {
		c.MaxInFlight = 4
		c.DefaultRequeueDelay = delay // times attempts
		c.BackoffMultiplier = 10 * time.Millisecond
		c.MaxBackoffDuration = 40 * time.Millisecond
	}, func(m *nsq.Message) error {
		mu.Lock()
		defer mu.Unlock()
		body := string(m.Body)
		if last, again := failedAt[body]; again {
			if waited := time.Since(last); waited < time.Duration(m.Attempts-1)*delay {
				early = append(early, fmt.Sprintf("%s, attempt %d after %v", body, m.Attempts, waited))
			}
		}
		if m.Attempts <= failures {
			failedAt[body] = time.Now()
			return errors.New("not yet")
		}
		return done.HandleMessage(m)
	}, d)
	done.await(t, count)
	c := awaitChannel(t, d, "t", "c", drained)
	if c.RequeueCount != count*failures || c.TimeoutCount != 0 || finishCount(c) != count {
		t.Errorf("%d requeued, %d timed out, %d finished", c.RequeueCount, c.TimeoutCount, finishCount(c))
	}
	for _, m := range done.all() {
		if m.Attempts != failures+1 {
			t.Errorf("%s was finished at attempt %d", m.Body, m.Attempts)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(early) > 0 {
		t.Errorf("before the delay was over: %q", early)
	}
}

// A message that is touched stays in flight longer than its timeout; one that is not comes again.
func TestTouch(t *testing.T) {
	t.Parallel()
	const timeout, work = 2 * time.Second, 3 * time.Second
	d := startNSQD(t, t.TempDir())
	publish(t, newProducer(t, d, nil), "t", "touched", "forgotten")
	var done inbox
	consumer, _ := newConsumer(t, "t", "c", func(c *nsq.Config) {
		c.MaxInFlight = 2
		c.MsgTimeout = timeout
	}, 2, func(m *nsq.Message) error {
		switch {
		case string(m.Body) == "touched":
			tick := time.NewTicker(timeout / 10)
			defer tick.Stop()
			for start := time.Now(); time.Since(start) < work; <-tick.C {
				m.Touch()
			}
		case m.Attempts == 1: // waits for its second delivery
			m.DisableAutoResponse()
			t.Cleanup(m.Finish)
			return nil
		}
		return done.HandleMessage(m)
	})
	if err := consumer.ConnectToNSQD(d.TCP); err != nil {
		t.Fatal(err)
	}
	want := map[string]uint16{"touched": 1, "forgotten": 2}
	for _, m := range done.await(t, 2) {
		if m.Attempts != want[string(m.Body)] {
			t.Errorf("%s was finished at attempt %d", m.Body, m.Attempts)
		}
	}
	if c := awaitChannel(t, d, "t", "c", drained); c.TimeoutCount != 1 {
		t.Errorf("%d timed out, want 1", c.TimeoutCount)
	}
}

// quitter is a handler that always fails and notes what go-nsq gives up.
type quitter struct {
	tries  atomic.Int64
	gaveUp chan *nsq.Message
}

func (q *quitter) HandleMessage(m *nsq.Message) error {
	q.tries.Add(1)
	return errors.New("never")
}

func (q *quitter) LogFailedMessage(m *nsq.Message) { q.gaveUp <- m }

// After as many attempts as the consumer allows the message is given up, and gone.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	d := startNSQD(t, t.TempDir())
	publish(t, newProducer(t, d, nil), "t", "hopeless")
	q := &quitter{gaveUp: make(chan *nsq.Message, 1)}
	consumer, err := nsq.NewConsumer("t", "c", clientConfig(func(c *nsq.Config) {
		c.MaxAttempts = 3
		c.DefaultRequeueDelay = 0
		c.MaxBackoffDuration = 0
	}))
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLogger(nil, nsq.LogLevelMax)
	consumer.AddHandler(q)
	t.Cleanup(func() {
		consumer.Stop()
		<-consumer.StopChan
	})
	if err := consumer.ConnectToNSQD(d.TCP); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-q.gaveUp:
		if string(m.Body) != "hopeless" || m.Attempts != 4 || q.tries.Load() != 3 {
			t.Errorf("gave up %q at attempt %d after %d tries", m.Body, m.Attempts, q.tries.Load())
		}
	case <-time.After(testutil.Patience):
		t.Fatal("not given up")
	}
	if c := awaitChannel(t, d, "t", "c", drained); c.RequeueCount != 3 || finishCount(c) != 1 {
		t.Errorf("%d requeued, %d finished", c.RequeueCount, finishCount(c))
	}
}

// readyCounts are the RDY counts of the clients of channel c of topic t, by nsqd.
func readyCounts(daemons ...*testutil.Daemon) ([]int64, error) {
	var counts []int64
	for _, d := range daemons {
		c, err := channelStats(d, "t", "c")
		if err != nil {
			return nil, err
		}
		var sum int64
		for _, client := range c.Clients {
			sum += client.ReadyCount
		}
		counts = append(counts, sum)
	}
	return counts, nil
}

// A consumer shares its window among two nsqds, and with a window of 1 hands it from one to the other.
func TestReadyIsShared(t *testing.T) {
	t.Parallel()
	daemons := []*testutil.Daemon{startNSQD(t, t.TempDir()), startNSQD(t, t.TempDir())}
	const each = 20
	for i, d := range daemons {
		publish(t, newProducer(t, d, nil), "t", numbered(fmt.Sprint("from", i), each)...)
	}

	var all inbox
	stop := consume(t, "t", "c", maxInFlight(10), all.HandleMessage, daemons...)
	testutil.Eventually(t, func() error {
		counts, err := readyCounts(daemons...)
		if err == nil && (counts[0] != 5 || counts[1] != 5) {
			err = fmt.Errorf("RDY %v, want 5 each", counts)
		}
		return err
	})
	all.await(t, 2*each)
	stop()

	for i, d := range daemons {
		publish(t, newProducer(t, d, nil), "t", numbered(fmt.Sprint("again", i), 2)...)
	}
	var one inbox
	consume(t, "t", "c", func(c *nsq.Config) {
		c.MaxInFlight = 1
		c.RDYRedistributeInterval = 20 * time.Millisecond
		c.LowRdyIdleTimeout = time.Second
	}, one.HandleMessage, daemons...)
	one.await(t, 4)
	if counts, err := readyCounts(daemons...); err != nil || counts[0]+counts[1] > 1 {
		t.Errorf("RDY %v with a window of 1, error %v", counts, err)
	}
	for _, d := range daemons {
		if c := awaitChannel(t, d, "t", "c", drained); c.RequeueCount+c.TimeoutCount > 0 {
			t.Errorf("%d requeued, %d timed out", c.RequeueCount, c.TimeoutCount)
		}
	}
}

// Bodies of all kinds and sizes arrive as they were over compressed connections, and over plain ones
// at the other end.
func TestCompression(t *testing.T) {
	t.Parallel()
	snappy := func(c *nsq.Config) { c.Snappy, c.MaxInFlight = true, 50 }
	deflate := func(c *nsq.Config) { c.Deflate, c.MaxInFlight = true, 50 }
	var bodies [][]byte
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{1, 100, 5_000, 70_000, 500_000, 1 << 20} {
		noise := make([]byte, size)
		random.Read(noise)
		bodies = append(bodies, noise, bytes.Repeat([]byte{byte(size)}, size))
	}
	d := startNSQD(t, t.TempDir())
	for _, test := range []struct {
		name              string
		publish, consume  func(*nsq.Config)
		snappy, deflating bool // the consumer
	}{
		{"snappy", snappy, snappy, true, false},
		{"deflate", deflate, deflate, false, true},
		{"mixed", snappy, deflate, false, true},
		{"to-plain", deflate, maxInFlight(50), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			producer := newProducer(t, d, test.publish)
			want := map[[sha256.Size]byte]int{}
			for _, body := range bodies {
				if err := producer.Publish(test.name, body); err != nil {
					t.Fatal(err)
				}
				want[sha256.Sum256(body)]++
			}
			var small [][]byte
			for i := range 200 {
				small = append(small, fmt.Append(nil, "small ", i))
				want[sha256.Sum256(small[i])]++
			}
			if err := producer.MultiPublish(test.name, small); err != nil {
				t.Fatal(err)
			}
			var got inbox
			consume(t, test.name, "c", test.consume, got.HandleMessage, d)
			for _, m := range got.await(t, len(bodies)+len(small)) {
				if want[sha256.Sum256(m.Body)]--; want[sha256.Sum256(m.Body)] < 0 {
					t.Fatalf("a body of %d bytes was not published, or not so often", len(m.Body))
				}
			}
			c := awaitChannel(t, d, test.name, "c", drained)
			if peer := c.Clients[0]; peer.Snappy != test.snappy || peer.Deflate != test.deflating {
				t.Errorf("the connection has snappy %v, deflate %v", peer.Snappy, peer.Deflate)
			}
		})
	}
}

// A sampling consumer gets its share, and the rest is gone.
func TestSampling(t *testing.T) {
	t.Parallel()
	const count = 2000
	d := startNSQD(t, t.TempDir())
	if err := newProducer(t, d, nil).MultiPublish("t", toBytes(numbered("m", count))); err != nil {
		t.Fatal(err)
	}
	var got inbox
	consume(t, "t", "c", func(c *nsq.Config) { c.SampleRate, c.MaxInFlight = 50, 200 }, got.HandleMessage, d)
	awaitChannel(t, d, "t", "c", func(c api.ChannelStats) bool {
		return drained(c) && c.MessageCount == count
	})
	// Half of it, give or take nine standard deviations.
	if n := len(got.all()); n < 800 || n > 1200 {
		t.Errorf("%d of %d messages came at a rate of 50 %%", n, count)
	}
}

// An ephemeral channel goes with its last consumer, and an ephemeral topic with its last channel.
func TestEphemeralGoes(t *testing.T) {
	t.Parallel()
	d := startNSQD(t, t.TempDir())
	post(t, d, "/topic/create?topic=t", "")
	post(t, d, "/channel/create?topic=t&channel=stays", "")
	var got inbox
	var stops []func()
	for range 2 {
		stops = append(stops, consume(t, "t", "c#ephemeral", nil, got.HandleMessage, d))
	}
	stopOther := consume(t, "whole#ephemeral", "c#ephemeral", nil, got.HandleMessage, d)
	publish(t, newProducer(t, d, nil), "t", "1")
	got.await(t, 1)

	stops[0]()
	awaitChannel(t, d, "t", "c#ephemeral", func(c api.ChannelStats) bool { return c.ClientCount == 1 })
	stops[1]()
	stopOther()
	testutil.Eventually(t, func() error {
		stats, err := ask[api.Stats](d, "/stats?format=json")
		if err != nil {
			return err
		}
		if len(stats.Topics) != 1 || len(stats.Topics[0].Channels) != 1 {
			return fmt.Errorf("topics %q with %d channels in the first", topicNames(stats), len(stats.Topics[0].Channels))
		}
		return nil
	})
	if c := awaitChannel(t, d, "t", "stays", func(api.ChannelStats) bool { return true }); c.Depth != 1 {
		t.Errorf("the other channel has depth %d", c.Depth)
	}
}

// Ten connections publish single messages at the same time.
func TestManyProducers(t *testing.T) {
	t.Parallel()
	const producers, each = 10, 200
	d := startNSQD(t, t.TempDir())
	ledger := testutil.NewLedger("c")
	var publishing sync.WaitGroup
	for i := range producers {
		producer := newProducer(t, d, nil)
		publishing.Go(func() {
			for _, body := range numbered(fmt.Sprint("p", i), each) {
				ledger.Sending(body)
				if err := producer.Publish("t", []byte(body)); err != nil {
					t.Errorf("publish: %v", err)
					return
				}
				ledger.Acknowledged(body)
			}
		})
	}
	consume(t, "t", "c", maxInFlight(100), func(m *nsq.Message) error {
		ledger.Finished("c", string(m.Body))
		return nil
	}, d)
	publishing.Wait()
	testutil.Eventually(t, func() error {
		if left := ledger.Left("c"); left > 0 {
			return fmt.Errorf("%d messages are missing", left)
		}
		return nil
	})
	if b := ledger.Balance("c"); len(b.Lost)+len(b.Duplicates)+len(b.Unexpected)+b.Unsure > 0 {
		t.Error(b)
	}
	checkCounts(t, d, "t", "c", producers*each, true)
}

// Ping tells whether a nsqd is there.
func TestPing(t *testing.T) {
	t.Parallel()
	d := startNSQD(t, t.TempDir())
	producer := newProducer(t, d, nil)
	for range 3 {
		if err := producer.Ping(); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing came back that a later answer could be taken for.
	publish(t, producer, "t", "1")
	d.Kill()
	if err := newProducer(t, d, nil).Ping(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v of a nsqd that is gone", err)
	}
}
