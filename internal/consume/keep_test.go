package consume

import (
	"context"
	"errors"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nsqio/go-nsq"
)

// takeTries returns when attempts failed since it was called last.
func (f *fakeConnector) takeTries() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	tries := f.tries
	f.tries = nil
	return tries
}

// sleep lets time pass, and all that happens in it happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

// fakeConnector is a consumer whose nsqd are up or down as the test says.
type fakeConnector struct {
	mu        sync.Mutex
	up        map[string]bool
	connected map[string]bool
	tries     []time.Time
}

func newFakeConnector(up ...string) *fakeConnector {
	f := &fakeConnector{up: make(map[string]bool), connected: make(map[string]bool)}
	for _, address := range up {
		f.up[address] = true
	}
	return f
}

func (f *fakeConnector) ConnectToNSQD(address string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.connected[address]:
		return nsq.ErrAlreadyConnected
	case !f.up[address]:
		f.tries = append(f.tries, time.Now())
		return errors.New("refused " + address)
	}
	f.connected[address] = true
	return nil
}

func (f *fakeConnector) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.connected)
}

func (f *fakeConnector) set(address string, up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up[address] = up
	if !up {
		delete(f.connected, address)
	}
}

// A nsqd that is lost is tried after 1, 2, 4 ... seconds, at most every 15, and is back soon after it is.
// The next loss begins with 1 s again.
func TestKeeperReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeConnector("a", "b")
		k := &keeper{consumer: fake, source: given{"a", "b"}, log: discard(), first: firstPause, most: longestPause}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.run(ctx) }()
		sleep(time.Second + time.Millisecond)
		for range 2 {
			if n := fake.count(); n != 2 {
				t.Fatalf("%d connections", n)
			}
			fake.set("b", false)
			sleep(time.Minute)
			tries := fake.takeTries()
			gaps := make([]time.Duration, 0, len(tries))
			for i := 1; i < len(tries); i++ {
				gaps = append(gaps, tries[i].Sub(tries[i-1])/time.Second)
			}
			if want := []time.Duration{2, 4, 8, 15, 15, 15}; !slices.Equal(gaps, want) {
				t.Errorf("seconds between attempts %d, want %d", gaps, want)
			}
			fake.set("b", true)
			sleep(longestPause + time.Second)
		}
		cancel()
		<-ended
	})
}

// directory is what a look-up finds.
type directory struct {
	mu    sync.Mutex
	found []string
	looks int
}

// find fails the second time.
func (d *directory) find(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.looks++; d.looks == 2 {
		return d.found, errors.New("no answer")
	}
	return d.found, nil
}

func (d *directory) known() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

func (d *directory) set(found ...string) (looks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = found
	return d.looks
}

// What is not known yet is looked for as a lost nsqd is; a look-up that fails does not end it.
func TestKeeperLooksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeConnector("a", "b")
		d := new(directory)
		var logged strings.Builder
		k := &keeper{consumer: fake, source: d, log: log.New(&logged, "", 0), first: firstPause, most: longestPause}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.run(ctx) }()
		sleep(8 * time.Second) // looks at 1, 3, 7
		if looks := d.set("a"); looks != 3 || logged.String() != "error looking for nsqd - no answer\n" {
			t.Errorf("%d looks, log %q", looks, logged.String())
		}
		sleep(8 * time.Second)
		if looks := d.set("a"); fake.count() != 1 || looks != 4 {
			t.Errorf("%d connections after %d looks", fake.count(), looks)
		}
		sleep(time.Hour)
		if looks := d.set("a"); looks != 4 {
			t.Errorf("%d looks, though nothing is missing", looks)
		}
		d.set("b") // as the client's own look-up does; a is gone from the directory, but still connected
		sleep(firstPause)
		if fake.count() != 2 {
			t.Errorf("%d connections, want that to the new nsqd, too", fake.count())
		}
		cancel()
		<-ended
	})
}

// At the start one nsqd has to answer, unless there is patience; the same address twice is a mistake.
func TestConnectFirst(t *testing.T) {
	for _, test := range []struct {
		name, up, addresses string
		patient             bool
		err, log            string
	}{
		{"one", "a", "a", false, "", ""},
		{"one down", "", "a", false, "refused a", ""},
		{"all down", "", "a b", false, "refused a", "(a) error connecting to nsqd - refused a\n(b) error connecting to nsqd - refused b\n"},
		{"some down", "b", "a b c", false, "", "(a) error connecting to nsqd - refused a\n(c) error connecting to nsqd - refused c\n"},
		{"patience", "", "a", true, "", "(a) error connecting to nsqd - refused a\n"},
		{"twice", "a", "a a", false, "already connected", ""},
		{"twice and down", "", "a a", true, "already connected", "(a) error connecting to nsqd - refused a\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var logged strings.Builder
			err := connectFirst(newFakeConnector(strings.Fields(test.up)...), strings.Fields(test.addresses), test.patient, log.New(&logged, "", 0))
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if logged.String() != test.log {
				t.Errorf("log %q, want %q", logged.String(), test.log)
			}
		})
	}
}
