package broker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"nsq/internal/protocol"
	"nsq/internal/testutil"
)

const docEmpty = `{"topics":null,"version":"1.4.0"}`

// Whatever is created, deleted or paused is in nsqd.dat when the call returns, in the form that NSQ
// 1.3 writes.
func TestMetadataIsDurableOnReturn(t *testing.T) {
	store := onDisk(t.TempDir())
	b := start(t, store)
	topics := func(s string) string { return `{"topics":` + s + `,"version":"1.4.0"}` }
	check := func(what, want string) {
		t.Helper()
		if got := read(t, store.Path, "nsqd.dat"); got != want {
			t.Fatalf("after %s: %s\nwant %s", what, got, want)
		}
	}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("start", docEmpty)
	topic := topicOf(t, b, "t")
	check("create topic", topics(`[{"name":"t","paused":false,"channels":null}]`))
	c := channelOf(t, topic, "ch")
	check("create channel", topics(`[{"name":"t","paused":false,"channels":[{"name":"ch","paused":false}]}]`))
	try(c.Pause())
	check("pause channel", topics(`[{"name":"t","paused":false,"channels":[{"name":"ch","paused":true}]}]`))
	try(topic.Pause())
	check("pause topic", topics(`[{"name":"t","paused":true,"channels":[{"name":"ch","paused":true}]}]`))
	try(c.Unpause())
	try(topic.Unpause())
	check("unpause", topics(`[{"name":"t","paused":false,"channels":[{"name":"ch","paused":false}]}]`))
	subscribe(t, b, "s", "x", 1)
	channelOf(t, topic, "e#ephemeral")
	channelOf(t, topicOf(t, b, "e#ephemeral"), "x")
	check("subscribe", topics(`[{"name":"s","paused":false,"channels":[{"name":"x","paused":false}]},`+
		`{"name":"t","paused":false,"channels":[{"name":"ch","paused":false}]}]`))
	try(topic.DeleteChannel("ch"))
	try(b.DeleteTopic("s"))
	check("delete", topics(`[{"name":"t","paused":false,"channels":null}]`))
	try(b.DeleteTopic("t"))
	check("delete of the last topic", docEmpty)
	closeBroker(t, b)
	check("stop", docEmpty)
	for _, name := range fileNames(t, store.Path) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("left behind: %s", name)
		}
	}
}

// Changes that come while a write runs share the next one, and each is in the file when its call
// returns.
func TestMetadataWritesAreCoalesced(t *testing.T) {
	store := newMemStore()
	gate := make(chan struct{})
	var slow atomic.Bool
	store.saving = func() {
		if slow.Load() {
			<-gate
		}
	}
	b := start(t, store)
	topic := topicOf(t, b, "t")
	var channels []*Channel
	for _, name := range numbered(0, 200) {
		channels = append(channels, channelOf(t, topic, name))
	}
	before := store.saveCount()
	slow.Store(true)
	var all sync.WaitGroup
	for _, c := range channels {
		all.Go(func() {
			if err := c.Pause(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(store.document(), `{"name":"`+c.name+`","paused":true}`) {
				t.Errorf("the pause of %s has returned and is not in the metadata", c.name)
			}
		})
	}
	eventually(t, "all on their way to the metadata", func() bool {
		return !slices.ContainsFunc(channels, func(c *Channel) bool { return !c.paused.Load() })
	})
	close(gate)
	all.Wait()
	if writes := store.saveCount() - before; writes > len(channels)/4 {
		t.Fatalf("%d writes for %d changes of one moment", writes, len(channels))
	}
}

// Files of all releases are read: key order and case do not matter, nor unknown keys, missing
// ones, null and empty lists. Invalid names are skipped with a warning, ephemeral ones created.
func TestMetadataForms(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    string // topic/channel, * is paused
		warned  []string
	}{
		"NSQ 1.3": {content: `{"topics":[{"name":"a","paused":true,"channels":[{"name":"c","paused":true}]},{"name":"tt","paused":false,"channels":null}],"version":"1.3.0"}`,
			want: "a* a/c* tt"},
		"up to 1.2.1": {content: `{"topics":[{"channels":[],"name":"x","paused":false},{"channels":[{"name":"c","paused":false}],"name":"y","paused":true}],"version":"1.2.1"}`,
			want: "x y* y/c"},
		"missing paused":    {content: `{"topics":[{"name":"a","channels":[{"name":"c"}]}]}`, want: "a a/c"},
		"missing lists":     {content: `{"topics":[{"name":"a"}]}`, want: "a"},
		"unknown keys":      {content: `{"future":[1],"Topics":[{"NAME":"a","since":"today","Channels":[{"Name":"c","PAUSED":true,"n":1}]}]}`, want: "a a/c*"},
		"empty object":      {content: `{}`},
		"null":              {content: `null`},
		"null topics":       {content: `{"topics":null,"version":""}`},
		"white space":       {content: " \n{\"topics\" : [ ] }\n\n"},
		"the same twice":    {content: `{"topics":[{"name":"a","paused":true},{"name":"a"}]}`, want: "a*"},
		"ephemeral":         {content: `{"topics":[{"name":"a#ephemeral","channels":[{"name":"c#ephemeral"}]}]}`, want: "a#ephemeral a#ephemeral/c#ephemeral"},
		"invalid topic":     {content: `{"topics":[{"name":"a b"},{"name":""},{"name":"ok"}]}`, want: "ok", warned: []string{"skipping creation of invalid topic a b", "skipping creation of invalid topic "}},
		"invalid channel":   {content: `{"topics":[{"name":"a","channels":[{"name":"../c"},{"name":"ok"}]}]}`, want: "a a/ok", warned: []string{"skipping creation of invalid channel ../c"}},
		"a channel is null": {content: `{"topics":[{"name":"a","channels":[null]}]}`, want: "a", warned: []string{"skipping creation of invalid channel "}},
	} {
		t.Run(name, func(t *testing.T) {
			store, j := onDisk(t.TempDir()), new(testutil.Buffer)
			write(t, store.Path, "nsqd.dat", c.content)
			b := start(t, store, logTo(j))
			var got []string
			star := map[bool]string{true: "*"}
			for _, topic := range b.Stats("", "") {
				got = append(got, topic.Name+star[topic.Paused])
				for _, channel := range topic.Channels {
					got = append(got, topic.Name+"/"+channel.Name+star[channel.Paused])
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("restored %q, want %q", got, c.want)
			}
			if warned := j.Logged("WARNING"); !slices.Equal(warned, c.warned) {
				t.Errorf("warnings %q, want %q", warned, c.warned)
			}
			if again := read(t, store.Path, "nsqd.dat"); !strings.HasSuffix(again, `,"version":"1.4.0"}`) {
				t.Errorf("not written anew: %s", again)
			}
		})
	}
}

// A file that is no such document stops the start, with the exact text, and stays as it is.
func TestMetadataDamaged(t *testing.T) {
	for content, reason := range map[string]string{
		"":                                     "unexpected end of JSON input",
		`{"topics":[`:                          "unexpected end of JSON input",
		"garbage":                              "invalid character 'g' looking for beginning of value",
		`{}{}`:                                 "invalid character '{' after top-level value",
		`[]`:                                   "json: cannot unmarshal array into Go value of type broker.document",
		`{"topics":{"name":"a"}}`:              "json: cannot unmarshal object into Go struct field",
		`{"topics":[{"name":1}]}`:              "json: cannot unmarshal number into Go struct field",
		`{"topics":[{"name":"a","paused":1}]}`: "json: cannot unmarshal number into Go struct field",
	} {
		store := onDisk(t.TempDir())
		write(t, store.Path, "nsqd.dat", content)
		_, err := New(testConfig(store))
		want := "failed to load metadata - failed to parse metadata in " + filepath.Join(store.Path, "nsqd.dat") + " - " + reason
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", content, err, want)
		}
		if got := read(t, store.Path, "nsqd.dat"); got != content {
			t.Errorf("%q has become %q", content, got)
		}
	}

	store := onDisk(t.TempDir())
	path := filepath.Join(store.Path, "nsqd.dat")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := New(testConfig(store))
	if want := "failed to load metadata - failed to read metadata from " + path + " - "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("unreadable: %v\nwant %s", err, want)
	}

	failing := newMemStore()
	failing.failSave(errDisk)
	if _, err := New(testConfig(failing)); !errors.Is(err, errDisk) || err.Error() != "failed to persist metadata - "+errDisk.Error() {
		t.Errorf("unwritable: %v", err)
	}
}

// A start that fails half way loses nothing of what it had begun to move, leaves no goroutine, and
// does not forget the topics that it did not reach.
func TestFailedStartLosesNothing(t *testing.T) {
	for name, fail := range map[string]func(*memStore, error){
		"queue of a later topic":    func(s *memStore, err error) { s.openErr["u"] = err },
		"queue of a later channel":  func(s *memStore, err error) { s.openErr["u:ch"] = err },
		"metadata can not be saved": func(s *memStore, err error) { s.saveErr = err },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemStore()
			b := start(t, store)
			publish(t, topicOf(t, b, "t"), numbered(0, 50)...)
			channelOf(t, topicOf(t, b, "u"), "ch")
			closeBroker(t, b)
			document := `{"topics":[{"name":"t","channels":[{"name":"ch"}]},{"name":"u","channels":[{"name":"ch"}]}]}`
			store.metadata = []byte(document)

			fail(store, errDisk)
			if _, err := New(testConfig(store)); !errors.Is(err, errDisk) {
				t.Fatalf("%s: New returned %v", name, err)
			}
			if store.document() != document {
				t.Fatalf("%s: the metadata has become %s", name, store.document())
			}
			fail(store, nil)
			b = start(t, store)
			c := subscribe(t, b, "t", "ch", 100)
			synctest.Wait()
			wantSame(t, name, c.bodies(), numbered(0, 50))
			if got := stats(t, b, "u", "ch"); got.Name != "ch" {
				t.Fatalf("%s: %+v", name, got)
			}
		})
	}
}

// Changes are told when something has come or gone, and at no other time.
func TestChangedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		b := start(t, newMemStore(), func(c *Config) { c.Changed = func() { changes.Add(1) } })
		step := func(what string, want int32) {
			t.Helper()
			if got := changes.Swap(0); got != want {
				t.Errorf("%s: told %d times, want %d", what, got, want)
			}
		}
		topic := topicOf(t, b, "t")
		step("create topic", 1)
		channelOf(t, topic, "ch")
		step("create channel", 1)
		topicOf(t, b, "t")
		channelOf(t, topic, "ch")
		publish(t, topic, "a")
		step("use", 0)
		c := subscribe(t, b, "e#ephemeral", "e#ephemeral", 1)
		step("subscribe", 2)
		c.disconnect()
		step("the last ephemeral client leaves", 2)
		if err := b.DeleteTopic("t"); err != nil {
			t.Error(err)
		}
		step("delete topic", 1)
	})
}

// FuzzMetadata proves that whatever is in nsqd.dat, the start ends with an error or with topics and
// channels of valid names, and then the file says the same that was restored.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(docEmpty))
	f.Add([]byte(`{"topics":[{"name":"a","paused":true,"channels":[{"name":"c","paused":true}]}],"version":"1.3.0"}`))
	f.Add([]byte(`{"topics":[{"name":"a#ephemeral","channels":[null,{"name":""}]},null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := newMemStore()
		store.metadata = data
		b, err := New(testConfig(store))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "failed to load metadata - failed to parse metadata in /data/nsqd.dat - ") {
				t.Fatal(err)
			}
			return
		}
		before := store.document()
		closeBroker(t, b)
		b = start(t, store)
		for _, topic := range b.Topics() {
			for _, c := range topic.Channels() {
				if !protocol.ValidName(topic.name) || !protocol.ValidName(c.name) {
					t.Fatalf("restored %q, %q", topic.name, c.name)
				}
			}
		}
		closeBroker(t, b)
		if after := store.document(); after != before {
			t.Fatalf("%s has become %s", before, after)
		}
	})
}

// Metadata that are as we would write them are not written at start: a full disk keeps nobody from
// what is on it.
func TestStartOnFullDisk(t *testing.T) {
	store := newMemStore()
	b, err := New(testConfig(store))
	if err != nil {
		t.Fatal(err)
	}
	channelOf(t, topicOf(t, b, "t"), "ch")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	store.failSave(errDisk)
	b, err = New(testConfig(store))
	if err != nil {
		t.Fatalf("start on a store that takes no metadata: %v", err)
	}
	if _, err := topicOf(t, b, "t").FindChannel("ch"); err != nil {
		t.Error(err)
	}
	if err := b.Close(); !errors.Is(err, errDisk) {
		t.Errorf("close: %v, want what the store says", err)
	}
}
