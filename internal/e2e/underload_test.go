//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nsqio/go-nsq"

	"nsq/internal/testutil"
)

const (
	loadTopic   = "load"
	loadChannel = "c"
	loadWindow  = 50 // of the consumer
	loadReader  = "consumer or folder"
)

// load is what publishes to a nsqd, in many ways at once, until that is stopped.
type load struct {
	t       *testing.T
	d       *testutil.Daemon
	ledger  *testutil.Ledger
	round   int
	running sync.WaitGroup

	acked atomic.Int64
	fresh atomic.Int64 // topics made by an acknowledged message
}

// send publishes batches with this function until it fails, under keys that begin with name.
func (l *load) send(name string, size int, publish func(sequence int, keys []string) error) {
	for sequence := 0; ; sequence++ {
		keys := numbered(fmt.Sprintf("%d-%s-%d", l.round, name, sequence), size)
		l.ledger.Sending(keys...)
		if publish(sequence, keys) != nil {
			return
		}
		l.acknowledged(keys)
	}
}

func (l *load) acknowledged(keys []string) {
	l.ledger.Acknowledged(keys...)
	l.acked.Add(int64(len(keys)))
}

// async keeps many commands on their way on one connection, until one fails.
func (l *load) async(name string, size int, command func(p *nsq.Producer, keys []string, done chan *nsq.ProducerTransaction) error) {
	const onTheWay = 50
	producer := newProducer(l.t, l.d, nil)
	done := make(chan *nsq.ProducerTransaction, onTheWay)
	var failed atomic.Bool
	answered := func(tx *nsq.ProducerTransaction) {
		if tx.Error != nil {
			failed.Store(true)
			return
		}
		l.acknowledged(tx.Args[0].([]string))
	}
	l.running.Go(func() {
		waiting := 0
		for sequence := 0; !failed.Load(); sequence++ {
			if waiting == onTheWay {
				answered(<-done)
				waiting--
			}
			keys := numbered(fmt.Sprintf("%d-%s-%d", l.round, name, sequence), size)
			l.ledger.Sending(keys...)
			if command(producer, keys, done) != nil {
				break
			}
			waiting++
		}
		for ; waiting > 0; waiting-- {
			answered(<-done)
		}
	})
}

// http publishes over a connection that is kept. newTopics says whether each message makes a topic.
func (l *load) http(name string, newTopics bool) {
	c := newClient(l.t)
	l.running.Go(func() {
		l.send(name, 1, func(sequence int, keys []string) error {
			topic := loadTopic
			if newTopics {
				topic = fmt.Sprintf("fresh-%d-%s-%d", l.round, name, sequence)
			}
			_, err := request(c, http.MethodPost, l.d.URL("/pub?topic="+topic), []byte(keys[0]))
			if err == nil && newTopics {
				l.fresh.Add(1)
			}
			return err
		})
	})
}

func (l *load) start() {
	l.async("pub", 1, func(p *nsq.Producer, keys []string, done chan *nsq.ProducerTransaction) error {
		return p.PublishAsync(loadTopic, []byte(keys[0]), done, keys)
	})
	l.async("mpub", 20, func(p *nsq.Producer, keys []string, done chan *nsq.ProducerTransaction) error {
		return p.MultiPublishAsync(loadTopic, toBytes(keys), done, keys)
	})
	for i := range 2 {
		l.http(fmt.Sprint("http", i), false)
		l.http(fmt.Sprint("new", i), true)
	}
	batches := newClient(l.t)
	l.running.Go(func() {
		l.send("httpmpub", 10, func(_ int, keys []string) error {
			_, err := request(batches, http.MethodPost, l.d.URL("/mpub?topic="+loadTopic), bytes.Join(toBytes(keys), []byte("\n")))
			return err
		})
	})
}

// A nsqd is stopped again and again while all kinds of publishers, some of them to new topics, and in
// every other round a consumer, are at work. What was acknowledged has been finished or is in the
// folder, and in the end all of that is delivered.
func TestStopUnderLoad(t *testing.T) {
	folder := t.TempDir()
	ledger := testutil.NewLedger(loadReader)
	d := startNSQD(t, folder, "--mem-queue-size=200", "--max-bytes-per-file=100000")
	post(t, d, "/topic/create?topic="+loadTopic, "")
	post(t, d, "/channel/create?topic="+loadTopic+"&channel="+loadChannel, "")

	rounds := long(10, 200)
	for round := range rounds {
		if round > 0 {
			d.Restart()
		}
		l := &load{t: t, d: d, ledger: ledger, round: round}
		stopConsumer := func() {}
		if round%2 == 1 {
			stopConsumer = consume(t, loadTopic, loadChannel, maxInFlight(loadWindow), func(m *nsq.Message) error {
				ledger.Finished(loadReader, string(m.Body))
				return nil
			}, d)
		}
		l.start()
		testutil.Eventually(t, func() error {
			if l.acked.Load() < 500 || l.fresh.Load() < 3 {
				return fmt.Errorf("%d messages acknowledged, %d new topics", l.acked.Load(), l.fresh.Load())
			}
			return nil
		})
		d.Signal(syscall.SIGTERM)
		if code := d.Exit(); code != 0 {
			t.Errorf("round %d: exit code %d", round, code)
		}
		l.running.Wait()
		stopConsumer()
	}

	queues := readFolder(t, folder)
	for _, records := range queues {
		for _, r := range records {
			ledger.Finished(loadReader, r.body)
		}
	}
	balance := ledger.Balance(loadReader)
	t.Logf("%d acknowledged in %d rounds, %d queues; %v", ledger.Acked(), rounds, len(queues), balance)
	// What the consumer had finished without nsqd hearing of it stays.
	if allowed := rounds / 2 * loadWindow; len(balance.Lost) > 0 || len(balance.Unexpected) > 0 || len(balance.Duplicates) > allowed {
		t.Errorf("more than %d in flight is out of order: %v", allowed, balance)
	}

	d.Restart()
	want := slices.Concat(queues[loadTopic], queues[loadTopic+":"+loadChannel])
	var rest inbox
	consume(t, loadTopic, loadChannel, maxInFlight(500), rest.HandleMessage, d)
	rest.await(t, len(want))
	awaitChannel(t, d, loadTopic, loadChannel, drained)
	compareRecords(t, "in the end", recordsOf(rest.all()), delivered(want))
	d.Stop()
}
