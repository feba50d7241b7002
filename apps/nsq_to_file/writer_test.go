package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/archive"
	"nsq/internal/log"
	"nsq/internal/touch"
)

// bench is a writer under test, its consumer, and the nsqd that its messages come from, for use within
// synctest.
type bench struct {
	*writer
	t       *testing.T
	folder  string
	keeper  *touch.Keeper
	stopped bool

	mu      sync.Mutex // guards the following
	starved bool
	seen    seen
}

// seen is what a writer has done so far.
type seen struct {
	limits                      []int // of messages in flight
	finished, requeued, touched []string
	unsafe                      []string // finished while not in the file
}

// look is called when the writer rests.
func (b *bench) look() seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen
}

// change changes, or adds to, what is guarded.
func (b *bench) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func newBench(t *testing.T, change func(*writerConfig, *archive.Config)) *bench {
	t.Helper()
	b := &bench{t: t, folder: t.TempDir(), keeper: touch.New(2 * time.Second)}
	config := writerConfig{maxInFlight: 5, syncInterval: 30 * time.Second}
	files := archive.Config{OutputDir: b.folder, Level: 6, Naming: archive.Naming{Format: "<TOPIC><REV>.log"}}
	if change != nil {
		change(&config, &files)
	}
	a, err := archive.New(files, "t", log.Discard().Logf)
	if err != nil {
		t.Fatal(err)
	}
	b.writer = newWriter(config, a, b.keeper, log.Discard().Logf)
	b.writer.start(b)
	t.Cleanup(func() { // where a test has failed
		if !b.stopped {
			b.writer.stop()
			b.keeper.Stop()
		}
	})
	return b
}

func (b *bench) IsStarved() (starved bool) {
	b.change(func() { starved = b.starved })
	return starved
}

func (b *bench) SetMaxInFlight(n int) {
	b.change(func() { b.seen.limits = append(b.seen.limits, n) })
}

func (b *bench) OnFinish(m *nsq.Message) {
	safe := strings.Contains(b.content(), string(m.Body)+"\n")
	b.change(func() {
		b.seen.finished = append(b.seen.finished, string(m.Body))
		if !safe {
			b.seen.unsafe = append(b.seen.unsafe, string(m.Body))
		}
	})
}

func (b *bench) OnRequeue(m *nsq.Message, delay time.Duration, backoff bool) {
	if delay != 0 || backoff {
		b.t.Errorf("requeue with delay %v, backoff %v", delay, backoff)
	}
	b.change(func() { b.seen.requeued = append(b.seen.requeued, string(m.Body)) })
}

func (b *bench) OnTouch(m *nsq.Message) {
	b.change(func() { b.seen.touched = append(b.seen.touched, string(m.Body)) })
}

// content is what is in the files, one after the other.
func (b *bench) content() string {
	paths, err := filepath.Glob(filepath.Join(b.folder, "*"))
	if err != nil {
		b.t.Error(err)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			b.t.Error(err)
		}
		all.Write(data)
	}
	return all.String()
}

// send hands messages to the writer as the consumer does, and waits until it rests.
func (b *bench) send(bodies ...string) {
	b.t.Helper()
	for _, body := range bodies {
		m := nsq.NewMessage(nsq.MessageID{}, []byte(body))
		m.Delegate = b
		if err := b.HandleMessage(m); err != nil || !m.IsAutoResponseDisabled() {
			b.t.Errorf("HandleMessage = %v, automatic response is off: %v", err, m.IsAutoResponseDisabled())
		}
	}
	synctest.Wait()
}

func (b *bench) want(what string, got []string, want ...string) {
	b.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Fatalf("%s %q, want %q", what, got, want)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) end() {
	b.t.Helper()
	b.hurry()
	if err := b.stop(); err != nil {
		b.t.Error(err)
	}
}

// stop stops the writer.
func (b *bench) stop() error {
	b.t.Helper()
	b.stopped = true
	err := b.writer.stop()
	b.keeper.Stop()
	b.want("finished before they were written", b.look().unsafe)
	return err
}

// run runs a test within synctest, with a file that is open already.
func onBench(t *testing.T, change func(*writerConfig, *archive.Config), do func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, change)
		b.send("first")
		b.want("finished", b.look().finished, "first") // for it has opened the file
		b.change(func() { b.seen.finished = nil })
		do(b)
	})
}

// A batch is finished, newest first, when it is as large as messages may be in flight, at the tick,
// when the consumer waits for it, at a hang-up, and at the stop; and not earlier.
func TestCommits(t *testing.T) {
	onBench(t, nil, func(b *bench) {
		b.send("a", "b", "c", "d")
		b.want("finished", b.look().finished)
		if got := b.content(); got != "first\na\nb\nc\nd\n" {
			t.Errorf("before the sync others can see %q", got)
		}
		b.send("e")
		b.want("finished", b.look().finished, "e", "d", "c", "b", "a")
		b.send("f")
		pass(29 * time.Second)
		b.want("finished", b.look().finished, "e", "d", "c", "b", "a")
		pass(2 * time.Second)
		b.want("finished", b.look().finished[5:], "f")
		b.change(func() { b.starved = true })
		b.send("g")
		b.want("finished", b.look().finished[6:], "g")
		b.change(func() { b.starved = false })
		b.send("h")
		b.hangUp()
		synctest.Wait()
		b.want("finished", b.look().finished[7:], "h")
		b.send("i") // opens the file again
		b.want("finished", b.look().finished[8:], "i")
		b.send("j")
		b.hurry()
		synctest.Wait()
		b.want("finished", b.look().finished[9:], "j")
		b.send("k")
		b.want("finished", b.look().finished[10:], "k")
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		b.want("requeued", b.look().requeued)
	})
}

// A batch that waits is touched until it is finished.
func TestTouches(t *testing.T) {
	onBench(t, nil, func(b *bench) {
		b.send("a")
		pass(9 * time.Second)
		if n := len(b.look().touched); n < 3 || n > 5 {
			t.Errorf("%d touches in 9s, want one every 2s", n)
		}
		pass(30 * time.Second)
		b.want("finished", b.look().finished, "a")
		n := len(b.look().touched)
		pass(time.Minute)
		if len(b.look().touched) != n {
			t.Error("a finished message was touched")
		}
		b.end()
	})
}

// At the tick a file is there even without a message, unless that is not wanted; then it is closed.
func TestTickRotates(t *testing.T) {
	for _, skip := range []bool{false, true} {
		onBench(t, func(w *writerConfig, a *archive.Config) {
			w.skipEmpty, a.RotateInterval = skip, 45*time.Second
		}, func(b *bench) {
			pass(61 * time.Second)
			paths, err := filepath.Glob(filepath.Join(b.folder, "*"))
			if want := map[bool]int{false: 2, true: 1}[skip]; err != nil || len(paths) != want {
				t.Errorf("skip %v: files %v, %v, want %d", skip, paths, err, want)
			}
			b.end()
		})
	}
}

// A file that is too large ends before the next message, and what was in it is finished then.
func TestRotationCommits(t *testing.T) {
	onBench(t, func(_ *writerConfig, a *archive.Config) { a.RotateSize = 8 }, func(b *bench) {
		b.send("a", "b") // with which the file has 10 bytes
		b.want("finished", b.look().finished)
		b.send("c")
		b.want("finished", b.look().finished, "b", "a", "c")
		b.end()
	})
}

// When the folder is gone and cannot be made, all messages go back at once and no more are asked for,
// but one after each pause; when it can, all goes on as before.
func TestFailureAndRecovery(t *testing.T) {
	onBench(t, nil, func(b *bench) {
		b.send("a", "b")
		if err := os.RemoveAll(b.folder); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.folder, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.send("c", "d", "e")
		b.want("finished", b.look().finished)
		b.want("requeued", b.look().requeued, "a", "b", "c", "d", "e")
		b.send("late")
		b.want("requeued", b.look().requeued[5:], "late")
		if fmt.Sprint(b.look().limits) != "[0]" {
			t.Fatalf("max in flight was set to %v", b.look().limits)
		}
		for _, pause := range []time.Duration{1, 2, 4, 8, 15, 15} {
			n := len(b.look().limits)
			pass(pause*time.Second - time.Millisecond)
			if len(b.look().limits) != n {
				t.Fatalf("tried again before %d s", pause)
			}
			pass(time.Millisecond)
			b.send("again")
			if got := fmt.Sprint(b.look().limits[n:]); got != "[1 0]" {
				t.Fatalf("after %d s max in flight was set to %s", pause, got)
			}
		}
		b.want("finished", b.look().finished)
		if err := os.Remove(b.folder); err != nil {
			t.Fatal(err)
		}
		pass(15 * time.Second)
		b.send("now")
		b.want("finished", b.look().finished, "now")
		if got := fmt.Sprint(b.look().limits[len(b.look().limits)-2:]); got != "[1 5]" {
			t.Fatalf("at the end max in flight was set to %s", got)
		}
		b.send("x")
		b.want("finished", b.look().finished, "now")
		b.end()
		if got := b.content(); got != "now\nx\n" {
			t.Errorf("file has %q", got)
		}
	})
}

// What was written before a failure and is safe does not come again.
func TestWrittenBeforeFailure(t *testing.T) {
	onBench(t, nil, func(b *bench) {
		b.send("a", "b")
		b.fail(os.ErrInvalid) // the goroutine of loop rests
		b.want("finished", b.look().finished, "b", "a")
		b.want("requeued", b.look().requeued)
		b.hurry()
		if err := b.stop(); err == nil || !strings.Contains(err.Error(), os.ErrInvalid.Error()) {
			t.Errorf("stop = %v, want the failure", err)
		}
	})
}
