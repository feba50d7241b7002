package broker

import (
	"testing"
	"testing/synctest"
)

// What is on its way from a queue to its next place is counted by the queue until it is there:
// nobody finds that nothing is left while something is.
func TestMovingMessagesAreCounted(t *testing.T) {
	for _, capacity := range []int{0, 100} {
		q := &queue{capacity: capacity, over: newMemQueue()}
		if err := q.put(messages(0, 10)); err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := q.take(&b, 4, new(waiter)); err != nil || b.Len() != 4 {
			t.Fatalf("took %d, %v", b.Len(), err)
		}
		if all, _ := q.depth(); all != 10 {
			t.Errorf("capacity %d: depth %d with 4 of 10 on their way", capacity, all)
		}
		q.arrived(&b)
		q.arrived(&b) // to say it twice is to say it once
		if all, _ := q.depth(); all != 6 {
			t.Errorf("capacity %d: depth %d after 4 of 10 have arrived", capacity, all)
		}
	}
}

// While a consumer is slow to take what was delivered, that is in flight and no longer waiting.
func TestSlowConsumerHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		hold := make(chan struct{})
		subscribe(t, b, "t", "ch", 10, func(c *client, _ *SubscriptionConfig) { c.hold = hold })
		publish(t, topicOf(t, b, "t"), numbered(0, 10)...)
		synctest.Wait()
		got := stats(t, b, "t", "ch")
		if got.Depth+got.InFlightCount != 10 || got.InFlightCount == 0 {
			t.Errorf("depth %d, in flight %d", got.Depth, got.InFlightCount)
		}
		if depth := topicOf(t, b, "t").Depth(); depth != 0 {
			t.Errorf("depth of the topic %d", depth)
		}
		close(hold)
		synctest.Wait()
	})
}
