//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/testutil"
)

// shortPoll is how often clients look again for what is away.
const shortPoll = 50 * time.Millisecond

// clientConfig is the default configuration of go-nsq, impatient where it waits for daemons.
func clientConfig(change func(*nsq.Config)) *nsq.Config {
	config := nsq.NewConfig()
	// The client gives up a write after a second, compression included, which takes longer where the
	// race detector watches on a machine that has other things to do.
	config.WriteTimeout = testutil.Patience
	config.LookupdPollInterval = shortPoll
	config.LookupdPollTimeout = testutil.Patience
	config.MaxAttempts = 0 // no limit: no message is given up behind the back of a test
	if change != nil {
		change(config)
	}
	return config
}

// newProducer returns a producer that is stopped when the test ends.
func newProducer(t *testing.T, d *testutil.Daemon, change func(*nsq.Config)) *nsq.Producer {
	t.Helper()
	producer, err := nsq.NewProducer(d.TCP, clientConfig(change))
	if err != nil {
		t.Fatal(err)
	}
	producer.SetLogger(newReconnectGuard(), nsq.LogLevelInfo)
	t.Cleanup(producer.Stop)
	return producer
}

// reconnectGuard is the log of a producer that makes a new connection wait until the goroutine of the
// one before has looked at it for the last time. go-nsq does not, which is a data race of its own.
type reconnectGuard struct {
	mu    sync.Mutex
	ended *sync.Cond
	alive int // connections begun and not ended; guarded by mu
}

func newReconnectGuard() *reconnectGuard {
	g := &reconnectGuard{}
	g.ended = sync.NewCond(&g.mu)
	return g
}

// Output takes what go-nsq logs around its connections.
func (g *reconnectGuard) Output(_ int, text string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case strings.Contains(text, "error connecting to nsqd"), strings.HasSuffix(text, "exiting router"):
		g.alive--
		g.ended.Broadcast()
	case strings.HasSuffix(text, "connecting to nsqd"):
		for g.alive > 0 {
			g.ended.Wait()
		}
		g.alive++
	}
	return nil
}

// newConsumer returns a consumer that is not connected yet, with a handler that runs in so many
// goroutines. The function stops it, and may be called again; the end of the test does so too.
func newConsumer(t *testing.T, topic, channel string, change func(*nsq.Config), handlers int, handle nsq.HandlerFunc) (*nsq.Consumer, func()) {
	t.Helper()
	consumer, err := nsq.NewConsumer(topic, channel, clientConfig(change))
	if err != nil {
		t.Fatal(err)
	}
	consumer.SetLogger(nil, nsq.LogLevelMax)
	consumer.AddConcurrentHandlers(handle, handlers)
	stop := sync.OnceFunc(func() {
		consumer.Stop()
		<-consumer.StopChan
	})
	t.Cleanup(stop)
	return consumer, stop
}

// consume connects a consumer with one handler to these nsqds. The function stops it.
func consume(t *testing.T, topic, channel string, change func(*nsq.Config), handle nsq.HandlerFunc, daemons ...*testutil.Daemon) func() {
	t.Helper()
	consumer, stop := newConsumer(t, topic, channel, change, 1, handle)
	for _, d := range daemons {
		if err := consumer.ConnectToNSQD(d.TCP); err != nil {
			t.Fatal(err)
		}
	}
	return stop
}

func maxInFlight(n int) func(*nsq.Config) {
	return func(c *nsq.Config) { c.MaxInFlight = n }
}

// inbox collects the messages of a consumer and finishes them.
type inbox struct {
	mu       sync.Mutex
	messages []*nsq.Message
}

func (b *inbox) HandleMessage(m *nsq.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, m)
	return nil
}

// all returns what has come so far.
func (b *inbox) all() []*nsq.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*nsq.Message(nil), b.messages...)
}

// await waits for at least so many messages.
func (b *inbox) await(t *testing.T, count int) []*nsq.Message {
	t.Helper()
	testutil.Eventually(t, func() error {
		if got := len(b.all()); got < count {
			return fmt.Errorf("%d messages have come, want %d", got, count)
		}
		return nil
	})
	return b.all()
}

// holder keeps the messages of a consumer in flight until it is released.
type holder struct {
	inbox
	released bool // guarded by the lock of inbox
}

// hold subscribes a consumer that keeps up to so many messages in flight. When the test ends they are
// finished, or the consumer would wait for them.
func hold(t *testing.T, topic, channel string, count int, d *testutil.Daemon) *holder {
	t.Helper()
	h := &holder{}
	consume(t, topic, channel, maxInFlight(count), h.HandleMessage, d)
	t.Cleanup(h.release)
	return h
}

func (h *holder) HandleMessage(m *nsq.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		return nil
	}
	m.DisableAutoResponse()
	h.messages = append(h.messages, m)
	return nil
}

func (h *holder) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	for _, m := range h.messages {
		m.Finish()
	}
}

// publish sends messages one by one.
func publish(t *testing.T, p *nsq.Producer, topic string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := p.Publish(topic, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered returns bodies that tell themselves apart.
func numbered(name string, count int) []string {
	bodies := make([]string, count)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return bodies
}

// toBytes turns bodies into what producers take.
func toBytes(bodies []string) [][]byte {
	raw := make([][]byte, len(bodies))
	for i, body := range bodies {
		raw[i] = []byte(body)
	}
	return raw
}
