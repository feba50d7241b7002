package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A new topic creates the channels that it has elsewhere before a message leaves it, so that they
// miss nothing; invalid and ephemeral names are left out.
func TestNewTopicLearnsChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		answer := make(chan []string)
		b := start(t, store, func(c *Config) {
			c.KnownChannelsWait = time.Second
			c.KnownChannels = func(_ context.Context, topic string) []string {
				if topic != "t" {
					t.Errorf("asked for %s", topic)
				}
				return <-answer
			}
		})
		began := time.Now()
		topic := topicOf(t, b, "t")
		if waited := time.Since(began); waited != time.Second {
			t.Fatalf("the creator waited for %v, want 1s", waited)
		}
		c := subscribe(t, b, "t", "mine", 10)
		publish(t, topic, "a", "b")
		synctest.Wait()
		if len(c.deliveries()) != 0 || depthOf(t, b, "t") != 2 {
			t.Fatalf("%d messages left the topic before it knew its channels", len(c.deliveries()))
		}
		answer <- []string{"known", "no good", "gone#ephemeral", "", "../up", "mine"}
		synctest.Wait()
		wantBodies(t, "mine", c.bodies(), []string{"a", "b"})
		if got := stats(t, b, "t", "known"); got.Depth != 2 {
			t.Fatalf("the known channel missed something: %+v", got)
		}
		if got := len(topic.Channels()); got != 2 || !strings.Contains(store.document(), `"known"`) {
			t.Fatalf("%d channels, want 2; %s", got, store.document())
		}
	})
}

// An answer that comes soon is not waited for any longer, and an existing topic asks nobody.
func TestLearningEndsWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := start(t, newMemStore(), func(c *Config) {
			c.KnownChannelsWait = time.Minute
			c.KnownChannels = func(context.Context, string) []string {
				asked++
				time.Sleep(time.Millisecond)
				return []string{"x"}
			}
		})
		began := time.Now()
		topic := topicOf(t, b, "t")
		if waited := time.Since(began); waited != time.Millisecond || len(topic.Channels()) != 1 {
			t.Fatalf("waited for %v, %d channels", waited, len(topic.Channels()))
		}
		topicOf(t, b, "t")
		if asked != 1 {
			t.Fatalf("asked %d times", asked)
		}
	})
}

// Nobody's silence holds up a stop: who asks is told to give up.
func TestCloseEndsLearning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore()
		b := start(t, store, func(c *Config) {
			c.KnownChannels = func(ctx context.Context, _ string) []string {
				<-ctx.Done()
				return []string{"late"}
			}
		})
		topic := topicOf(t, b, "t")
		publish(t, topic, "a")
		began := time.Now()
		closeBroker(t, b)
		if time.Since(began) != 0 {
			t.Fatalf("Close took %v", time.Since(began))
		}
		if _, err := topic.FindChannel("late"); !errors.Is(err, ErrNotFound) {
			t.Fatalf("a channel was made after the stop: %v", err)
		}
		wantBodies(t, "kept", store.queue("t", "").bodies(), []string{"a"})
	})
}
