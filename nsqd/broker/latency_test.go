package broker

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/metrics/histogram"
)

// countedIn says how many durations a histogram has in the bucket that ends at the bound.
func countedIn(t *testing.T, s histogram.Snapshot, bound float64) uint64 {
	t.Helper()
	before := uint64(0)
	for i, b := range s.Bounds {
		if b == bound {
			return s.Counts[i] - before
		}
		before = s.Counts[i]
	}
	t.Fatalf("no bound %v in %v", bound, s.Bounds)
	return 0
}

// The time from publish to delivery is counted once for each message and channel, whether it waited in
// memory or on disk; redeliveries are not.
func TestDeliveryLatency(t *testing.T) {
	for _, size := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			latency := NewDeliveryLatency()
			b := start(t, newMemStore(), memory(size), func(c *Config) { c.DeliveryLatency = latency })
			topic := topicOf(t, b, "t")
			channelOf(t, topic, "slow")
			quick := subscribe(t, b, "t", "quick", 10)
			publish(t, topic, "a", "b", "c")
			synctest.Wait()
			time.Sleep(20 * time.Second)
			subscribe(t, b, "t", "slow", 10)
			synctest.Wait()

			got := latency.Snapshot()
			if got.Count != 6 || countedIn(t, got, 0.00005) != 3 || countedIn(t, got, 30) != 3 || got.Sum != 60 {
				t.Fatalf("latencies with %d in memory: %+v, want 3 of 0 s and 3 of 20 s", size, got)
			}
			if err := quick.sub.Requeue(quick.deliveries()[0].id, 0); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := len(quick.deliveries()); n != 4 {
				t.Fatalf("%d deliveries, want the redelivery too", n)
			}
			if again := latency.Snapshot(); !reflect.DeepEqual(got, again) {
				t.Fatalf("the redelivery is counted: %+v, before %+v", again, got)
			}
		})
	}
}

// The time of the next message in memory is known, in topic and channel, and none where memory is empty.
func TestFrontTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore(), memory(2))
		topic := topicOf(t, b, "t")
		if front := b.Stats("t", "")[0].FrontTime; front != 0 {
			t.Fatalf("front of an empty topic at %d", front)
		}
		first := time.Now()
		publish(t, topic, "a")
		time.Sleep(time.Minute)
		publish(t, topic, "b", "c") // c is on disk
		if got := b.Stats("t", "")[0]; got.FrontTime != first.UnixNano() || got.BackendDepth == 0 {
			t.Fatalf("front %d, want %d, with some on disk: %+v", got.FrontTime, first.UnixNano(), got)
		}
		channelOf(t, topic, "ch")
		synctest.Wait()
		if front := stats(t, b, "t", "ch").FrontTime; front != first.UnixNano() {
			t.Fatalf("front of the channel at %d, want %d", front, first.UnixNano())
		}
		if front := b.Stats("t", "")[0].FrontTime; front != 0 {
			t.Fatalf("front of the topic at %d, which handed all over", front)
		}
	})
}

func BenchmarkMeasureDelivery(b *testing.B) {
	broker := &Broker{config: Config{DeliveryLatency: NewDeliveryLatency()}}
	messages := benchBatch(200).messages
	now := time.Now()
	for i := range messages {
		messages[i].attempts = 1
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += batchSize {
		broker.measureDelivery(messages, now)
	}
}
