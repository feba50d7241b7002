package broker

import (
	"fmt"
	"sync/atomic"
	"testing"

	"nsq/internal/protocol"
)

// batchSize is that of the batches in the benchmarks; figures are for one message.
const batchSize = 200

func benchBatch(size int) *Batch {
	b := new(Batch)
	for range batchSize {
		b.Add(size)
	}
	return b
}

func BenchmarkQueuePutTake(b *testing.B) {
	q := &queue{capacity: 10_000, over: newMemQueue()}
	messages := benchBatch(200).messages
	var taken Batch
	b.ReportAllocs()
	for n := 0; n < b.N; n += batchSize {
		if err := q.put(messages); err != nil {
			b.Fatal(err)
		}
		taken.Reset()
		if err := q.take(&taken, batchSize, new(waiter)); err != nil || taken.Len() != batchSize {
			b.Fatal(taken.Len(), err)
		}
	}
}

func BenchmarkFlightDeliverFinish(b *testing.B) {
	f := newFlight()
	f.setReady(batchSize)
	batch := messages(1, batchSize)
	ids := make([]protocol.ID, batchSize)
	for i := range ids {
		ids[i] = idOf(1 + i)
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += batchSize {
		f.deliver(batch, int64(n), 1000)
		if finished, _ := f.finish(ids, nil); finished != batchSize {
			b.Fatal(finished)
		}
	}
}

func BenchmarkIDs(b *testing.B) {
	var s idSource
	b.ReportAllocs()
	for n := 0; n < b.N; n += batchSize {
		run := s.take(int64(n), batchSize)
		for range batchSize {
			run.next()
		}
	}
}

func BenchmarkBatchAdd(b *testing.B) {
	for _, size := range []int{10, 200, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var batch Batch
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for n := 0; n < b.N; n++ {
				if n%batchSize == 0 {
					batch.Reset()
				}
				batch.Add(size)
			}
		})
	}
}

// finisher is a consumer that finishes what it gets at once.
type finisher struct {
	sub  *Subscription
	ids  []protocol.ID
	left atomic.Int64
	done chan struct{} // one slot; told when nothing is left
}

func (f *finisher) Deliver(batch []Message) error {
	f.ids = f.ids[:0]
	for i := range batch {
		f.ids = append(f.ids, batch[i].id())
	}
	f.sub.Finish(f.ids)
	if f.left.Add(-int64(len(batch))) == 0 {
		f.done <- struct{}{}
	}
	return nil
}

func (f *finisher) Flush() error { return nil }
func (f *finisher) Close(error)  {}

// From publish through the topic to the finish on every channel.
func BenchmarkPublishDeliverFinish(b *testing.B) {
	for _, channels := range []int{1, 4} {
		b.Run(fmt.Sprint("channels-", channels), func(b *testing.B) {
			broker := start(b, newMemStore(), memory(1<<20))
			var all []*finisher
			for i := range channels {
				f := &finisher{done: make(chan struct{}, 1)}
				sub, err := broker.Subscribe("t", fmt.Sprint("ch", i), f, SubscriptionConfig{MsgTimeout: 1 << 40})
				if err != nil {
					b.Fatal(err)
				}
				f.sub = sub
				sub.SetReady(2500)
				b.Cleanup(func() { sub.Close() })
				all = append(all, f)
			}
			topic := topicOf(b, broker, "t")
			total := (b.N + batchSize - 1) / batchSize * batchSize
			for _, f := range all {
				f.left.Store(int64(total))
			}
			b.ReportAllocs()
			b.ResetTimer()
			var batch Batch
			for range total / batchSize {
				batch.Reset()
				for range batchSize {
					batch.Add(200)
				}
				if err := topic.Publish(&batch); err != nil {
					b.Fatal(err)
				}
			}
			for _, f := range all {
				<-f.done
			}
		})
	}
}
