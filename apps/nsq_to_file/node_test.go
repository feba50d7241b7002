//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"nsq/internal/testnode"
	"nsq/internal/testutil"
	"nsq/internal/utility/utilitytest"
)

// running is the program at work.
type running struct {
	*utilitytest.Running
	t   *testing.T
	out string // folder
}

// start starts the program with a folder of its own, where each topic has one file, unless args say
// otherwise.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	out := t.TempDir()
	args = append([]string{"--output-dir=" + out, "--filename-format=<TOPIC><REV>.log", "--sync-interval=100ms"}, args...)
	return &running{Running: utilitytest.Start(t, newToFile().program(), args...), t: t, out: out}
}

// lines returns all lines of a folder's files, decompressed and sorted.
func lines(t testing.TB, folder string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := readAll(f, filepath.Ext(path))
		if err != nil {
			t.Fatalf("read %s: %v", path, err)
		}
		if len(text) > 0 {
			all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
		}
	}
	slices.Sort(all)
	return all
}

func readAll(f *os.File, suffix string) ([]byte, error) {
	raw, err := io.ReadAll(f)
	if err != nil || len(raw) == 0 { // opened just before a kill
		return nil, err
	}
	switch suffix {
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case ".zst":
		r, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	return raw, nil
}

func (r *running) wantLines(want ...string) {
	r.t.Helper()
	if got := lines(r.t, r.out); !slices.Equal(got, want) {
		r.t.Fatalf("files have %q, want %q", got, want)
	}
}

func numbers(n int) (bodies []string) {
	for i := range n {
		bodies = append(bodies, fmt.Sprintf("m%04d", i))
	}
	return bodies
}

// Everything that is published is in the files once, and finished, in every format.
func TestArchive(t *testing.T) {
	n := testnode.StartNSQD(t)
	for topic, flag := range map[string]string{"plain": "--gzip=false", "gzip": "--gzip", "zstd": "--zstd"} {
		n.Create(topic, name)
		r := start(t, "--topic="+topic, "--topic="+topic, "--nsqd-tcp-address="+n.TCP, "--rotate-size=200", flag)
		bodies := numbers(100)
		n.Publish(topic, bodies...)
		n.AwaitChannel(topic, name, testnode.Drained)
		r.wantLines(bodies...)
		r.End(0)
		r.wantLines(bodies...)
		if files, _ := filepath.Glob(filepath.Join(r.out, "*")); len(files) < 3 {
			t.Errorf("only %d files", len(files))
		}
	}
}

// At the stop what waits for the disk is written and finished.
func TestStop(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Create("t", name)
	r := start(t, "--topic=t", "--nsqd-tcp-address="+n.TCP, "--sync-interval=1h")
	n.Publish("t", numbers(10)...)
	testutil.Eventually(t, func() error {
		if got := lines(t, r.out); len(got) != 10 {
			return fmt.Errorf("%d lines", len(got))
		}
		return nil
	})
	r.End(0)
	n.AwaitChannel("t", name, testnode.Drained)
	r.wantLines(numbers(10)...)
}

// SIGHUP finishes files, which then move; the program goes on.
func TestHangUp(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Create("t", name)
	r := start(t, "--topic=t", "--nsqd-tcp-address="+n.TCP, "--work-dir="+t.TempDir(), "--skip-empty-files")
	for i := range 3 {
		n.Publish("t", fmt.Sprint(i))
		n.AwaitChannel("t", name, testnode.Drained)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(r.out, fmt.Sprintf("t-%06d.log", i))
		testutil.Eventually(t, func() error { _, err := os.Stat(file); return err })
	}
	r.wantLines("0", "1", "2")
	r.End(0)
}

// Topics that match are found at once, and new ones later, although one nsqlookupd is down; others are
// left alone.
func TestDiscovery(t *testing.T) {
	l := testnode.StartLookupd(t)
	n := testnode.StartNSQD(t, l)
	n.Publish("logs_a", "a")
	n.Publish("other", "x")
	l.AwaitProducer("logs_a")
	l.AwaitProducer("other")
	r := start(t, "--topic-pattern=^logs_", "--topic-refresh=200ms", "--lookupd-http-address="+l.HTTP, "--lookupd-http-address=127.0.0.1:1")
	n.AwaitChannel("logs_a", name, testnode.Drained)
	n.Publish("logs_b", "b")
	n.AwaitChannel("logs_b", name, testnode.Drained)
	r.wantLines("a", "b")
	if _, err := n.Channel("other", name); err == nil {
		t.Error("a topic that does not match has a channel")
	}
	r.Log.Await(t, "ERROR: could not retrieve topic list: ")
	r.End(0)
}

// Given topics that do not match the pattern are left out, with a word about it.
func TestTopicsAndPattern(t *testing.T) {
	n := testnode.StartNSQD(t)
	n.Publish("logs_a", "a")
	n.Publish("other", "x")
	r := start(t, "--topic=logs_a", "--topic=other", "--topic-pattern=^logs_", "--nsqd-tcp-address="+n.TCP)
	n.AwaitChannel("logs_a", name, testnode.Drained)
	r.Log.Await(t, "WARNING: skipping topic other (doesn't match pattern ^logs_)\n")
	r.End(0)
	r.wantLines("a")
}

// A nsqd that is not there at the start is waited for.
func TestLateNSQD(t *testing.T) {
	t.Parallel()
	n := testnode.StartNSQD(t)
	n.Publish("t", "a")
	n.Stop()
	r := start(t, "--topic=t", "--nsqd-tcp-address="+n.TCP)
	r.Log.Await(t, "error connecting to nsqd")
	n.Start()
	n.AwaitChannel("t", name, testnode.Drained)
	r.wantLines("a")
	r.End(0)
}

// A message that waits longer for the disk than its timeout is not delivered again.
func TestSlowSync(t *testing.T) {
	t.Parallel()
	n := testnode.StartNSQD(t)
	n.Create("t", name)
	r := start(t, "--topic=t", "--nsqd-tcp-address="+n.TCP, "--sync-interval=2s", "--consumer-opt=msg_timeout,1s")
	n.Publish("t", numbers(5)...)
	if c := n.AwaitChannel("t", name, testnode.Drained); c.TimeoutCount != 0 {
		t.Errorf("%d messages timed out", c.TimeoutCount)
	}
	r.wantLines(numbers(5)...)
	r.End(0)
}

// While the disk takes nothing messages stay in the channel, with a clear error; when it does they are
// written, without a restart. A stop in between is a failure.
func TestDiskThatFails(t *testing.T) {
	t.Parallel()
	n := testnode.StartNSQD(t)
	n.Publish("t", numbers(20)...)
	r := start(t, "--topic=none", "--nsqd-tcp-address="+n.TCP)
	r.End(0)
	file := filepath.Join(r.out, "t.log")
	if err := os.Symlink("/dev/full", file); err != nil {
		t.Skip(err)
	}
	args := []string{"--topic=t", "--nsqd-tcp-address=" + n.TCP, "--output-dir=" + r.out}
	failing := start(t, args...)
	failing.Log.Await(t, "no space left on device - ")
	failing.End(1)
	again := start(t, args...)
	again.Log.Await(t, "no space left on device - ")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	n.AwaitChannel("t", name, testnode.Drained)
	again.Log.Await(t, "records can be written again")
	again.End(0)
	r.wantLines(numbers(20)...)
}

// A full file system takes no half line, and all is written when there is room.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if err := syscall.Mount("tmpfs", out, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(out, 0); err != nil {
			t.Error(err)
		}
	})
	full := filepath.Join(out, "full")
	if err := os.WriteFile(full, make([]byte, 60<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	n := testnode.StartNSQD(t)
	var bodies []string
	for _, body := range numbers(20) {
		bodies = append(bodies, body+strings.Repeat("x", 1000))
	}
	n.Publish("t", bodies...)
	r := start(t, "--topic=t", "--nsqd-tcp-address="+n.TCP, "--output-dir="+out)
	r.Log.Await(t, "no space left on device - ")
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	n.AwaitChannel("t", name, testnode.Drained)
	r.End(0)
	if got := lines(t, out); !slices.Equal(slices.Compact(got), bodies) {
		t.Errorf("%d lines: %.60q", len(got), got)
	}
}

// A folder that vanishes is made again, and nothing that was not finished is lost with it.
func TestVanishedFolder(t *testing.T) {
	t.Parallel()
	n := testnode.StartNSQD(t)
	n.Create("t", name)
	folder := filepath.Join(t.TempDir(), "deep", "out")
	r := start(t, "--topic=t", "--nsqd-tcp-address="+n.TCP, "--output-dir="+folder)
	n.Publish("t", "before")
	n.AwaitChannel("t", name, testnode.Drained)
	if err := os.RemoveAll(filepath.Dir(folder)); err != nil {
		t.Fatal(err)
	}
	n.Publish("t", "after")
	n.AwaitChannel("t", name, testnode.Drained)
	if got := lines(t, folder); !slices.Equal(got, []string{"after"}) {
		t.Errorf("files have %q", got)
	}
	r.Log.Await(t, "was removed while it was written - 1 messages go back to the queue, trying again in 1s")
	r.End(0)
}
