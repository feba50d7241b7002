package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nsq/internal/protocol"
)

// A clean stop and start keeps everything, wherever it was: waiting in memory and on disk, in
// flight with its attempts, deferred. Nothing is delivered twice.
func TestRestartKeepsEverything(t *testing.T) {
	for _, size := range []int{0, 10, 1000} {
		store := onDisk(t.TempDir())
		b := start(t, store, memory(size))
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 30)
		channelOf(t, topic, "idle")
		for i := range 10 {
			publish(t, topic, numbered(10*i, 10*i+10)...)
		}
		publishDeferred(t, topic, time.Hour, "deferred")
		eventually(t, "30 in flight", func() bool { return len(c.deliveries()) == 30 })
		eventually(t, "the rest on the channels", func() bool {
			return stats(t, b, "t", "ch").MessageCount == 101 && stats(t, b, "t", "idle").MessageCount == 101
		})
		c.sub.SetReady(0)
		finished := map[string]bool{}
		for _, d := range c.deliveries()[:10] {
			c.sub.Finish([]protocol.ID{d.id})
			finished[d.body] = true
		}
		if err := topic.Pause(); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, numbered(100, 120)...)
		inFlight := map[string]bool{}
		for _, d := range c.deliveries()[10:] {
			inFlight[d.body] = true
		}
		closeBroker(t, b)
		<-c.done

		store = onDisk(store.Path)
		b = start(t, store, memory(size))
		if got := stats(t, b, "t", "ch"); got.Depth != 91 {
			t.Fatalf("memory %d: depth %d after the restart, want 91", size, got.Depth)
		}
		if got := depthOf(t, b, "t"); got != 20 {
			t.Fatalf("memory %d: topic depth %d after the restart, want 20", size, got)
		}
		if err := topicOf(t, b, "t").Unpause(); err != nil {
			t.Fatal(err)
		}
		ch, idle := subscribe(t, b, "t", "ch", 1000), subscribe(t, b, "t", "idle", 1000)
		var want []string
		for _, body := range numbered(0, 120) {
			if !finished[body] {
				want = append(want, body)
			}
		}
		eventually(t, "all deliveries", func() bool {
			return len(ch.deliveries()) >= len(want) && len(idle.deliveries()) >= 120 &&
				stats(t, b, "t", "ch").Depth == 0 && stats(t, b, "t", "idle").Depth == 0
		})
		wantSame(t, "ch", ch.bodies(), want)
		wantSame(t, "idle", idle.bodies(), numbered(0, 120))
		for _, d := range ch.deliveries() {
			if want := map[bool]uint16{true: 2, false: 1}[inFlight[d.body]]; d.attempts != want {
				t.Fatalf("memory %d: %s has attempts %d, want %d", size, d.body, d.attempts, want)
			}
		}
		if got := stats(t, b, "t", "ch"); got.DeferredCount != 1 {
			t.Fatalf("memory %d: the deferred message: %+v", size, got)
		}
		ch.finishAll()
		idle.finishAll()
		closeBroker(t, b)
		if got := readQueue(t, store.Path, "t:ch"); len(got) != 1 || got[0].body != "deferred" {
			t.Fatalf("memory %d: at the end on disk %+v", size, got)
		}
	}
}

// A folder that NSQ 1.3 left is read completely: every record of topics and channels with
// timestamp, id and attempts, and no record that was consumed already. Attempts stay at the most
// that the wire can say.
func TestReadsFolderOfNSQ(t *testing.T) {
	path := t.TempDir()
	write(t, path, "nsqd.dat", `{"topics":[{"name":"a","paused":true,"channels":[{"name":"c","paused":false}]},{"name":"tt","paused":false,"channels":null}],"version":"1.3.0"}`)
	writeQueue(t, path, "a", stored{1796095935820000000, 0, "18aef49cd4c01000", "hello"}, stored{1796095935820000001, 0, "18aef49cdb001000", ""})
	writeQueue(t, path, "a:c", stored{5, 1, "18aef49cd4c01001", "again"}, stored{6, 65534, "18aef49cd4c01002", "often"},
		stored{7, 65535, "18aef49cd4c01003", "very often"}, stored{8, 0, "not hex, 16 long", strings.Repeat("x", 100_000)})
	writeQueue(t, path, "tt", stored{9, 0, "18aef49cd4c01004", "topic"})
	write(t, path, "stranger.txt", "not ours")

	b := start(t, onDisk(path))
	if got := depthOf(t, b, "a"); got != 2 {
		t.Fatalf("depth of the paused topic %d, want 2", got)
	}
	c := subscribe(t, b, "a", "c", 10)
	tt := subscribe(t, b, "tt", "new", 10)
	eventually(t, "all of the channel", func() bool { return len(c.deliveries()) == 4 })
	eventually(t, "all of the topic", func() bool { return len(tt.deliveries()) == 1 })
	if err := topicOf(t, b, "a").Unpause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all of the paused topic", func() bool { return len(c.deliveries()) == 6 })
	want := map[string]string{
		"18aef49cd4c01001": "2 again", "18aef49cd4c01002": "65535 often", "18aef49cd4c01003": "65535 very often",
		"not hex, 16 long": "1 " + strings.Repeat("x", 100_000), "18aef49cd4c01000": "1 hello", "18aef49cdb001000": "1 ",
	}
	for _, d := range c.deliveries() {
		if got := fmt.Sprint(d.attempts, " ", d.body); got != want[string(d.id[:])] {
			t.Errorf("%s: %.40q, want %.40q", d.id, got, want[string(d.id[:])])
		}
		delete(want, string(d.id[:]))
	}
	if len(want) != 0 {
		t.Errorf("not delivered: %.300q", want)
	}
	c.finishAll()
	closeBroker(t, b)
	if got := read(t, path, "stranger.txt"); got != "not ours" {
		t.Errorf("a file of others has become %q", got)
	}
}

// What is written can be read by the description of NSQ 1.3's format alone: names of files,
// metadata of queues, records with timestamp, attempts, id and body.
func TestWritesFolderForNSQ(t *testing.T) {
	for _, size := range []int{0, 3, 1000} {
		path := t.TempDir()
		now := time.Unix(1_796_095_935, 820_000_000)
		b := start(t, onDisk(path), memory(size), func(c *Config) {
			began := time.Now()
			c.Now = func() time.Time { return now.Add(time.Since(began)) }
		})
		topic := topicOf(t, b, "topic")
		c := subscribe(t, b, "topic", "chan", 2)
		publish(t, topic, numbered(0, 10)...)
		eventually(t, "two in flight", func() bool { return len(c.deliveries()) == 2 })
		eventually(t, "the hand-over", func() bool { return topic.Depth() == 0 })
		publishDeferred(t, topic, time.Hour, "deferred")
		eventually(t, "one deferred", func() bool { return stats(t, b, "topic", "chan").DeferredCount == 1 })
		if err := topic.Pause(); err != nil {
			t.Fatal(err)
		}
		publish(t, topic, "in", "the", "topic")
		ids := map[string]string{}
		for _, d := range c.deliveries() {
			ids[d.body] = string(d.id[:])
		}
		closeBroker(t, b)
		<-c.done

		onChannel := readQueue(t, path, "topic:chan")
		if got := storedBodies(onChannel); !slices.Equal(got, append(numbered(0, 10), "deferred")) {
			t.Fatalf("memory %d: on the channel %q", size, got)
		}
		for _, s := range onChannel {
			id, flying := ids[s.body]
			if want := map[bool]uint16{true: 1, false: 0}[flying]; s.attempts != want || flying && s.id != id {
				t.Errorf("memory %d: %+v, want attempts %d, id %q", size, s, want, id)
			}
			if since := time.Unix(0, s.timestamp).Sub(now); since < 0 || since > time.Minute {
				t.Errorf("memory %d: timestamp %d", size, s.timestamp)
			}
		}
		if got := storedBodies(readQueue(t, path, "topic")); !slices.Equal(got, []string{"in", "the", "topic"}) {
			t.Fatalf("memory %d: in the topic %q", size, got)
		}
		if got := read(t, path, "nsqd.dat"); got != `{"topics":[{"name":"topic","paused":true,"channels":[{"name":"chan","paused":false}]}],"version":"1.4.0"}` {
			t.Errorf("metadata %s", got)
		}
		for _, name := range fileNames(t, path) {
			if name != "nsqd.dat" && name != "topic:chan.deferred.dat" && !strings.HasPrefix(name, "topic.diskqueue.") && !strings.HasPrefix(name, "topic:chan.diskqueue.") {
				t.Errorf("memory %d: unknown file %s", size, name)
			}
		}
	}
}

// Deletion leaves no file, and what is created under the name again is empty, also after a restart.
func TestDeleteLeavesNoFile(t *testing.T) {
	store := onDisk(t.TempDir())
	b := start(t, store, memory(2))
	for range 2 {
		topic := topicOf(t, b, "t")
		for _, name := range []string{"x", "y"} {
			channelOf(t, topic, name)
		}
		publish(t, topic, numbered(0, 50)...)
		publishDeferred(t, topic, time.Hour, "deferred")
		eventually(t, "the hand-over", func() bool { return stats(t, b, "t", "y").MessageCount == 51 })
		closeBroker(t, b)
		store = onDisk(store.Path)
		b = start(t, store, memory(2))
		if names := fileNames(t, store.Path); !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "t:x.diskqueue.") }) ||
			!slices.Contains(names, "t:x.deferred.dat") {
			t.Fatalf("the test means files to be there: %q", names)
		}
		if err := topicOf(t, b, "t").DeleteChannel("x"); err != nil {
			t.Fatal(err)
		}
		if names := fileNames(t, store.Path); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "t:x") }) {
			t.Fatalf("files of the deleted channel: %q", names)
		}
		if err := b.DeleteTopic("t"); err != nil {
			t.Fatal(err)
		}
		if names := fileNames(t, store.Path); !slices.Equal(names, []string{"nsqd.dat"}) {
			t.Fatalf("files of the deleted topic: %q", names)
		}
		channelOf(t, topicOf(t, b, "t"), "x")
		if got := stats(t, b, "t", "x"); got.Depth != 0 || depthOf(t, b, "t") != 0 {
			t.Fatalf("created anew: %+v", got)
		}
	}
}

// A permanent channel of an ephemeral topic leaves no files when the daemon stops, and what a crash
// left of one does not come back.
func TestNoOrphansOfEphemeralTopics(t *testing.T) {
	store := onDisk(t.TempDir())
	writeQueue(t, store.Path, "t#ephemeral:ch", stored{1, 0, "18aef49cd4c01000", "from before the crash"})
	b := start(t, store, memory(0))
	c := subscribe(t, b, "t#ephemeral", "ch", 0)
	topic := topicOf(t, b, "t#ephemeral")
	for _, body := range numbered(0, 20) {
		publish(t, topic, body)
	}
	eventually(t, "the hand-over", func() bool { return stats(t, b, "t#ephemeral", "ch").Depth == 20 })
	if got := stats(t, b, "t#ephemeral", "ch"); got.BackendDepth != 20 {
		t.Fatalf("%+v, want all on disk", got)
	}
	c.sub.SetReady(100)
	eventually(t, "all deliveries", func() bool { return len(c.deliveries()) == 20 })
	wantSame(t, "delivered", c.bodies(), numbered(0, 20))
	closeBroker(t, b)
	<-c.done
	if names := fileNames(t, store.Path); !slices.Equal(names, []string{"nsqd.dat"}) {
		t.Fatalf("files left: %q", names)
	}
}

// A stop waits for a message that is on its way from a client back to the queue.
func TestStopWaitsForRequeue(t *testing.T) {
	for what, giveBack := range map[string]func(*client){
		"requeue":    func(c *client) { c.sub.Requeue(c.deliveries()[0].id, 0) },
		"disconnect": func(c *client) { c.disconnect() },
	} {
		writing, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		store := newMemStore()
		b := start(t, store, memory(0))
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 1)
		publish(t, topic, "a")
		eventually(t, "a delivery", func() bool { return len(c.deliveries()) == 1 })
		c.sub.SetReady(0)
		store.queue("t", "ch").putting = func() {
			once.Do(func() {
				close(writing)
				<-goOn
			})
		}
		gaveBack, closed := make(chan struct{}), make(chan error, 1)
		go func() { giveBack(c); close(gaveBack) }()
		<-writing
		go func() { closed <- b.Close() }()
		select {
		case <-closed:
			t.Fatalf("%s: Close does not wait for the message", what)
		case <-time.After(30 * time.Millisecond):
		}
		close(goOn)
		<-gaveBack
		if err := <-closed; err != nil {
			t.Fatalf("%s: Close: %v", what, err)
		}
		<-c.done
		wantBodies(t, what, store.queue("t", "ch").bodies(), []string{"a"})
	}
}

// While a stop is under way, a requeue is either done or refused, and the message is kept in both
// cases, once; only what was finished may be gone.
func TestStopDuringFinishAndRequeue(t *testing.T) {
	for range 20 {
		store := newMemStore()
		b := start(t, store)
		topic := topicOf(t, b, "t")
		c := subscribe(t, b, "t", "ch", 200)
		publish(t, topic, numbered(0, 200)...)
		eventually(t, "all in flight", func() bool { return len(c.deliveries()) == 200 })
		finished := make(chan []string)
		go func() {
			var done []string
			for i, d := range c.deliveries() {
				if i%2 == 0 {
					c.sub.Requeue(d.id, time.Duration(i%4)*time.Hour)
				} else if len(c.sub.Finish([]protocol.ID{d.id})) == 0 {
					done = append(done, d.body)
				}
			}
			finished <- done
		}()
		closeBroker(t, b)
		<-c.done
		kept := store.queue("t", "ch").bodies()
		for _, body := range <-finished {
			// One that was finished after the channel was written out is on disk too: it is only
			// delivered once more.
			if !slices.Contains(kept, body) {
				kept = append(kept, body)
			}
		}
		wantSame(t, "kept or finished", kept, numbered(0, 200))
	}
}
