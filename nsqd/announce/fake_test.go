package announce

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/lookup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const introduction = `{"broadcast_address":"lookup1","hostname":"h","http_port":4161,"tcp_port":4160,"version":"1.3.0","news":1}`

// fake is a nsqlookupd of a test. What it is told is in lines, one entry a command, with "connected"
// for each new connection.
type fake struct {
	mu     sync.Mutex
	lines  []string
	conns  map[net.Conn]bool
	away   bool                     // refuses connections
	frozen bool                     // accepts, reads, answers nothing
	answer func(line string) string // nil for a well-behaved one
	raw    []byte                   // instead of the framed answer to IDENTIFY
}

func newFake() *fake { return &fake{conns: map[net.Conn]bool{}} }

var errAway = errors.New("connection refused")

// connect is the listener of the fake, on a pipe in memory.
func (f *fake) connect() (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, "connected")
	if f.away {
		return nil, errAway
	}
	ours, theirs := net.Pipe()
	f.conns[theirs] = true
	go f.serve(theirs)
	return ours, nil
}

// serve reads commands until the connection ends.
func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	r := lookup.NewReader(conn)
	if _, err := r.Discard(len(lookup.Magic)); err != nil {
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		if line == lookup.CommandIdentify {
			if _, fault := lookup.ReadIdentity(r); fault != nil {
				return
			}
		}
		if answer := f.hear(line); answer != nil {
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}
}

// hear notes a command and returns the bytes to answer with.
func (f *fake) hear(line string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
	switch {
	case f.frozen:
		return nil
	case line == lookup.CommandIdentify && f.raw != nil:
		return f.raw
	case f.answer != nil:
		return lookup.AppendFrame(nil, f.answer(line))
	case line == lookup.CommandIdentify:
		return lookup.AppendFrame(nil, introduction)
	default:
		return lookup.AppendFrame(nil, lookup.OK)
	}
}

// change alters the behaviour.
func (f *fake) change(alter func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	alter(f)
}

// die ends all connections and refuses new ones.
func (f *fake) die() {
	f.change(func(f *fake) {
		f.away = true
		for conn := range f.conns {
			conn.Close()
			delete(f.conns, conn)
		}
	})
}

// heard returns what was told since the last call.
func (f *fake) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := f.lines
	f.lines = nil
	return lines
}

// lines is a log to look at while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is an Announcer among fakes, inside a bubble with its own clock.
type world struct {
	t *testing.T
	*Announcer
	fakes map[string]*fake
	log   *lines
	end   func()

	mu     sync.Mutex
	exists []lookup.Registration // what Source returns; guarded by mu
	looks  int                   // how often it was asked; guarded by mu
}

// inWorld runs a test with fakes called a, b and c, of which the first few are announced to. The names,
// as exist takes them, exist from the start, and a is prepared before anybody talks to it.
func inWorld(t *testing.T, announced int, names []string, test func(*testing.T, *world), prepare ...func(a *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, log: &lines{}, fakes: map[string]*fake{"a": newFake(), "b": newFake(), "c": newFake()}}
		w.Announcer = New(Config{
			Addresses: []string{"a", "b", "c"}[:announced],
			Self:      lookup.Identity{BroadcastAddress: "self", TCPPort: 4150, HTTPPort: 4151, Version: "1"},
			Source:    w.source,
			Log:       log.New(w.log, "", log.Debug),
			Dial: func(_ context.Context, _, address string) (net.Conn, error) {
				return w.fakes[address].connect()
			},
		})
		w.exist(names...)
		for _, alter := range prepare {
			alter(w.fakes["a"])
		}
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- w.Run(ctx) }()
		w.end = sync.OnceFunc(func() {
			cancel()
			if err := <-ran; err != nil {
				t.Errorf("Run = %v", err)
			}
			synctest.Wait()
		})
		test(t, w)
		w.end()
		for _, f := range w.fakes {
			f.die()
		}
		synctest.Wait()
	})
}

func (w *world) source() []lookup.Registration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	return slices.Clone(w.exists)
}

// exist sets what exists, as "topic" or "topic channel", all of generation 1, and pokes.
func (w *world) exist(names ...string) { w.existAs(1, names...) }

func (w *world) existAs(generation uint64, names ...string) {
	var exists []lookup.Registration
	for _, name := range names {
		topic, channel, _ := strings.Cut(name, " ")
		exists = append(exists, lookup.Registration{Topic: topic, Channel: channel, Generation: generation})
	}
	w.mu.Lock()
	w.exists = exists
	w.mu.Unlock()
	w.Changed()
}

// after lets time pass and all work be done.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// hears expects what a fake was told since the last look.
func (w *world) hears(name string, lines ...string) {
	w.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(lines, w.fakes[name].heard()); diff != "" {
		w.t.Errorf("%s was told (-want +got):\n%s", name, diff)
	}
}

// logs expects a line in the log.
func (w *world) logs(text string) {
	w.t.Helper()
	synctest.Wait()
	if !strings.Contains(w.log.String(), text+"\n") {
		w.t.Errorf("no log line %q in\n%s", text, w.log.String())
	}
}
