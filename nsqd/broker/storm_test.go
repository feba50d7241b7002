package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nsq/internal/protocol"
)

// Everything at once on few names, from many goroutines, and in the middle of it the stop: nothing
// hangs, panics or stays, and every error is one that is meant.
func TestStorm(t *testing.T) {
	for name, store := range map[string]Store{"memory": newMemStore(), "disk": onDisk(t.TempDir())} {
		t.Run(name, func(t *testing.T) { storm(t, store) })
	}
}

func storm(t *testing.T, store Store) {
	b, err := New(testConfig(store, memory(20)))
	if err != nil {
		t.Fatal(err)
	}
	topics := []string{"a", "b", "c#ephemeral"}
	channels := []string{"x", "y", "z#ephemeral"}
	expected := func(what string, err error) {
		if err != nil && !errors.Is(err, ErrExiting) && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	stop := make(chan struct{})
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	var all sync.WaitGroup
	for g := range 12 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 7))
			var clients []*client
			for !stopped() {
				topic, channel := topics[random.IntN(3)], channels[random.IntN(3)]
				switch op := random.IntN(100); {
				case op < 50:
					if top, err := b.Topic(topic); err == nil {
						batch := batchOf("1", "2", "3")
						if op < 10 {
							batch = batchOf("later")
							batch.Defer(uint32(1 + random.IntN(20)))
						}
						expected("publish", top.Publish(batch))
					} else {
						expected("topic", err)
					}
				case op < 70:
					how := finishing
					if op < 60 {
						how = timeout(10 * time.Millisecond)
					}
					c, err := trySubscribe(b, topic, channel, int64(random.IntN(10)), how)
					expected("subscribe", err)
					if err == nil {
						clients = append(clients, c)
					}
				case op < 80:
					if len(clients) > 0 {
						clients[0].disconnect()
						clients = clients[1:]
					}
				case op < 85:
					for _, c := range clients {
						for _, d := range c.deliveries() {
							c.sub.Touch(d.id)
							expected("requeue", c.sub.Requeue(d.id, time.Duration(random.IntN(3))*time.Millisecond))
						}
					}
				default:
					top, err := b.FindTopic(topic)
					if err != nil {
						continue
					}
					ch, err := top.FindChannel(channel)
					if err != nil {
						continue
					}
					switch random.IntN(9) {
					case 0:
						expected("delete topic", b.DeleteTopic(topic))
					case 1:
						expected("delete channel", top.DeleteChannel(channel))
					case 2:
						expected("empty topic", top.Empty())
					case 3:
						expected("empty channel", ch.Empty())
					case 4:
						expected("pause", top.Pause())
					case 5:
						expected("pause", ch.Pause())
					case 6:
						b.Stats("", "")
					default:
						expected("unpause", top.Unpause())
						expected("unpause", ch.Unpause())
					}
				}
			}
			for _, c := range clients {
				c.disconnect()
			}
		})
	}
	time.Sleep(700 * time.Millisecond)
	done := make(chan error)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close hangs")
	}
	close(stop)
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(20 * time.Second):
		t.Fatal("somebody hangs")
	}
	for _, topic := range b.Topics() {
		for _, c := range topic.Channels() {
			if err := topic.Publish(batchOf("late")); !errors.Is(err, ErrExiting) {
				t.Error(fmt.Errorf("publish to %s after the storm: %w", c.name, err))
			}
		}
	}
}

// handedOn is a consumer that hands ids on to another goroutine.
type handedOn chan protocol.ID

func (h handedOn) Deliver(batch []Message) error {
	for i := range batch {
		h <- batch[i].id()
	}
	return nil
}

func (h handedOn) Flush() error { return nil }
func (h handedOn) Close(error)  {}

// A window of one that is opened from elsewhere, by each finish at the very moment in which the
// pump finds it closed, never stalls.
func TestWindowOfOneNeverStalls(t *testing.T) {
	const n = 5000
	b := start(t, newMemStore(), memory(n))
	delivered := make(handedOn, 1)
	sub, err := b.Subscribe("t", "ch", delivered, SubscriptionConfig{MsgTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	sub.SetReady(1)
	publish(t, topicOf(t, b, "t"), numbered(0, n)...)
	for i := range n {
		select {
		case id := <-delivered:
			sub.Finish([]protocol.ID{id})
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing comes after %d messages", i)
		}
	}
}

// A window that opened after the pump looked at it and before it lies down to wait is seen.
func TestWindowOpensBeforeRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, newMemStore())
		s := &Subscription{
			channel: channelOf(t, topicOf(t, b, "t"), "ch"), consumer: make(handedOn),
			waiter: newWaiter(Anywhere), stop: make(chan struct{}),
		}
		s.flight.init()
		s.SetReady(1)
		rested := make(chan error, 1)
		go func() { rested <- s.rest(0) }()
		synctest.Wait()
		close(s.stop)
		if s.blocked.Load() {
			t.Error("the pump waits for a window that is open")
		}
		if err := <-rested; err != nil {
			t.Errorf("rest: %v", err)
		}
	})
}
