package diskq

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func TestFirstInFirstOutAcrossFilesAndRestarts(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.MaxBytesPerFile = 800
	q := open(t, c, "a")
	put(t, q, records(0, 35)...)
	wantRecords(t, take(t, q, 12), records(0, 12))
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}

	q = open(t, c, "a")
	if q.Depth() != 23 {
		t.Errorf("depth %d after restart", q.Depth())
	}
	put(t, q, records(35, 40)...)
	wantRecords(t, drain(t, q), records(12, 40))
}

func TestTakeAppendsAndNeverWaitsForPut(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	q := open(t, c, "a")
	for _, max := range []int{-1, 0, 1, 100} { // not even open
		if got, err := q.Take(nil, max); len(got) != 0 || err != nil {
			t.Fatalf("%d records, %v", len(got), err)
		}
	}
	put(t, q, records(1, 4)...)
	for _, max := range []int{-1, 0} {
		if got, err := q.Take(nil, max); len(got) != 0 || err != nil {
			t.Fatalf("%d records, %v", len(got), err)
		}
	}
	got := [][]byte{record(0)}
	for q.Depth() > 0 {
		var err error
		if got, err = q.Take(got, 100); err != nil {
			t.Fatal(err)
		}
	}
	wantRecords(t, got, records(0, 4))
	if got, err := q.Take(got, 100); len(got) != 4 || err != nil {
		t.Fatalf("%d records, %v", len(got), err)
	}
}

// A queue costs nothing on disk, and no library, before its first record or when there is none left.
func TestLazy(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	q := open(t, c, "a")
	if q.lib != nil {
		t.Error("library open without records")
	}
	if err := q.Empty(); err != nil {
		t.Error(err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if f := readFolder(t, c.Path); len(f) != 0 {
		t.Errorf("files without a Put: %v", f.names())
	}

	q = open(t, c, "a")
	put(t, q, record(0))
	drain(t, q)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if q = open(t, c, "a"); q.lib != nil {
		t.Error("library open though metadata says empty")
	}
	put(t, q, record(1))
	wantRecords(t, drain(t, q), records(1, 2))
}

func TestClosedQueueRefusesAndCreatesNothing(t *testing.T) {
	for name, end := range map[string]func(Queue) error{"close": Queue.Close, "delete": Queue.Delete} {
		for _, used := range []bool{false, true} {
			c, _ := testConfig(t.TempDir())
			q := open(t, c, "a")
			if used {
				put(t, q, record(0))
			}
			if err := errors.Join(end(q), end(q)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			before := readFolder(t, c.Path).names()
			if n, err := q.Put(records(0, 1)); n != 0 || !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Put = %d, %v", name, n, err)
			}
			if got, err := q.Take(nil, 1); len(got) != 0 || !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Take = %d, %v", name, len(got), err)
			}
			if err := q.Empty(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Empty = %v", name, err)
			}
			if after := readFolder(t, c.Path).names(); !slices.Equal(before, after) {
				t.Errorf("%s: files %v became %v", name, before, after)
			}
		}
	}
}

func TestPutStopsAtARecordOfWrongSize(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.MaxRecord = 100
	q := open(t, c, "a")
	for wrong, text := range map[int]string{
		25:  "invalid message write size (25) minMsgSize=26 maxMsgSize=100",
		101: "invalid message write size (101) minMsgSize=26 maxMsgSize=100",
	} {
		n, err := q.Put([][]byte{record(0), make([]byte, wrong), record(1)})
		if n != 1 || err == nil || err.Error() != text {
			t.Errorf("%d bytes: %d, %v", wrong, n, err)
		}
		wantRecords(t, drain(t, q), records(0, 1))
	}
}

func TestEmpty(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.MaxBytesPerFile = 800
	q := open(t, c, "a")
	put(t, q, records(0, 25)...)
	take(t, q, 3)
	if err := q.Empty(); err != nil {
		t.Fatal(err)
	}
	if q.Depth() != 0 {
		t.Errorf("depth %d", q.Depth())
	}
	f := readFolder(t, c.Path)
	if got := string(f["a.diskqueue.meta.dat"]); len(f) != 1 || got != "0\n3,0\n3,0\n" {
		t.Errorf("files %v, metadata %q", f.names(), got)
	}
	put(t, q, records(25, 30)...)
	wantRecords(t, drain(t, q), records(25, 30))
}

func TestDeleteRemovesEveryFileOfTheQueueAndNoOther(t *testing.T) {
	others := folder{
		"ab.diskqueue.000000.dat":             onDisk(record(0)),
		"a:b.diskqueue.000000.dat":            onDisk(record(0)),
		"a:b.diskqueue.000001.dat.bad":        nil,
		"a.diskqueue.000000.dat.mine":         nil,
		"x.diskqueue.a.diskqueue.000000.dat":  nil,
		"nsqd.dat":                            nil,
		"xa.diskqueue.meta.dat.77.tmp":        nil,
		"a.diskqueue.000000.diskqueue.000001": nil,
	}
	for name, backlog := range map[string]folder{
		"records": {
			"a.diskqueue.meta.dat": []byte("2\n3,0\n3,160\n"), "a.diskqueue.000003.dat": onDisk(records(0, 2)...),
			"a.diskqueue.000001.dat": onDisk(record(9)), "a.diskqueue.000002.dat.bad": onDisk(record(8)),
		},
		"only bad":      {"a.diskqueue.000002.dat.bad": onDisk(record(8))},
		"only metadata": {"a.diskqueue.meta.dat": []byte("0\n3,0\n3,0\n")},
		"nothing":       {},
	} {
		all := make(folder)
		for _, part := range []folder{others, backlog} {
			for file, content := range part {
				all[file] = content
			}
		}
		for _, use := range []func(q Queue){
			func(Queue) {}, func(q Queue) { put(t, q, record(5)) }, func(q Queue) { q.Close() },
		} {
			c, j := testConfig(all.write(t))
			q := open(t, c, "a")
			use(q)
			if err := q.Delete(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if q.Depth() != 0 {
				t.Errorf("%s: depth %d", name, q.Depth())
			}
			if got := readFolder(t, c.Path).names(); !slices.Equal(got, others.names()) {
				t.Errorf("%s: left %v", name, got)
			}
			q = open(t, c, "a") // and the name is free again
			put(t, q, record(7))
			wantRecords(t, drain(t, q), records(7, 8))
			if lines := j.Logged("WARNING"); len(lines) > 0 {
				t.Errorf("%s: logged %q", name, lines)
			}
		}
	}
}

func TestOpenRefusesBadSettings(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"sync every":   func(c *Config) { c.SyncEvery = 0 },
		"sync timeout": func(c *Config) { c.SyncTimeout = 0 },
		"file size":    func(c *Config) { c.MaxBytesPerFile = 0 },
		"records":      func(c *Config) { c.MaxRecord = c.MinRecord - 1 },
		"path":         func(c *Config) { c.Path = filepath.Join(c.Path, "absent") },
	} {
		c, _ := testConfig(t.TempDir())
		change(c)
		if _, err := c.Open("a"); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	c, _ := testConfig(t.TempDir())
	for _, name := range []string{"", "../a", "a/b", "/"} {
		if _, err := c.Open(name); err == nil {
			t.Errorf("%q: opened", name)
		}
	}
}

// The library makes a format of the path; a percent sign in it must not matter.
func TestPercentInPathAndName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "100%d%s%%")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	c, _ := testConfig(path)
	c.MaxBytesPerFile = 800
	q := open(t, c, "5%d")
	put(t, q, records(0, 25)...)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(readFolder(t, path)["5%d.diskqueue.meta.dat"]); got != "25\n0,0\n2,400\n" {
		t.Errorf("metadata %q", got)
	}
	wantRecords(t, drain(t, open(t, c, "5%d")), records(0, 25))
}

func TestDiscard(t *testing.T) {
	q := Discard()
	put(t, q, records(0, 3)...)
	if got, err := q.Take(records(0, 1), 5); len(got) != 1 || err != nil || q.Depth() != 0 {
		t.Errorf("Take = %d, %v; depth %d", len(got), err, q.Depth())
	}
	if err := errors.Join(q.Empty(), q.Close(), q.Delete()); err != nil {
		t.Error(err)
	}
}

// Every record is taken exactly once whatever runs beside, a batch stays together, and what one
// Take returns is in order.
func TestConcurrentPutAndTake(t *testing.T) {
	const producers, consumers, batches, batch = 4, 4, 60, 10
	c, j := testConfig(t.TempDir())
	c.MaxBytesPerFile, c.SyncEvery = 8000, 500
	q := open(t, c, "a")

	var putting, taking sync.WaitGroup
	for p := range producers {
		putting.Go(func() {
			for b := range batches {
				from := p*10000 + b*batch
				if _, err := q.Put(records(from, from+batch)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var taken atomic.Int64
	var mu sync.Mutex
	seen := make(map[string]int)
	for range consumers {
		taking.Go(func() {
			for taken.Load() < producers*batches*batch && !t.Failed() {
				got, err := q.Take(nil, 7)
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(int64(len(got)))
				last := make(map[byte]string)
				mu.Lock()
				for _, r := range got {
					if producer := r[2]; last[producer] >= string(r) {
						t.Errorf("%.7s after %.7s", r, last[producer])
					} else {
						last[producer] = string(r)
					}
					seen[string(r)]++
				}
				mu.Unlock()
				if d := q.Depth(); d < 0 {
					t.Errorf("depth %d", d)
				}
			}
		})
	}
	putting.Wait()
	taking.Wait()
	for p := range producers {
		for _, r := range records(p*10000, p*10000+batches*batch) {
			if seen[string(r)] != 1 {
				t.Errorf("%.7s taken %d times", r, seen[string(r)])
			}
		}
	}
	if len(seen) != producers*batches*batch || q.Depth() != 0 {
		t.Errorf("%d different records, depth %d", len(seen), q.Depth())
	}
	if lines := append(j.Logged("ERROR"), j.Logged("WARNING")...); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
}

// Concurrent Takes never claim a record twice.
func TestClaim(t *testing.T) {
	const depth, claimants = 10, 8
	for range 2000 { // it is the last records that they fight for
		var q disk
		q.depth.Store(depth)
		var claimed atomic.Int64
		var work sync.WaitGroup
		for range claimants {
			work.Go(func() {
				for n := q.claim(3); n > 0; n = q.claim(3) {
					claimed.Add(int64(n))
				}
			})
		}
		work.Wait()
		if claimed.Load() != depth || q.Depth() != 0 {
			t.Fatalf("claimed %d of %d, left %d", claimed.Load(), depth, q.Depth())
		}
	}
}

// Take, Put, Empty and the end of a queue may meet in any way.
func TestConcurrentEverything(t *testing.T) {
	for _, end := range []func(Queue) error{Queue.Close, Queue.Delete} {
		c, _ := testConfig(t.TempDir())
		c.MaxBytesPerFile = 800
		q := open(t, c, "a")
		var work sync.WaitGroup
		started := make(chan struct{}, 100)
		loop := func(op func() error) {
			work.Go(func() {
				for {
					err := op()
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 2 {
			loop(func() error { _, err := q.Put(records(0, 5)); return err })
			loop(func() error { _, err := q.Take(nil, 5); return err })
		}
		loop(q.Empty)
		for range cap(started) {
			<-started
		}
		if err := end(q); err != nil {
			t.Error(err)
		}
		work.Wait()
	}
}

// The queue behaves as a slice that survives restarts and crashes right after a restart.
func TestModel(t *testing.T) {
	root := memoryDir(t)
	var runs int
	rapid.Check(t, func(t *rapid.T) {
		runs++
		path := filepath.Join(root, fmt.Sprint(runs))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		c, j := testConfig(path)
		c.MaxBytesPerFile = rapid.Int64Range(1, 600).Draw(t, "file size")
		c.SyncEvery = rapid.Int64Range(1, 50).Draw(t, "sync every")
		reopen := func() Queue {
			q, err := c.Open("a:b")
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		q := reopen()
		defer func() { q.Close() }()
		var model [][]byte
		var next int
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				var batch [][]byte
				for range rapid.IntRange(0, 8).Draw(t, "records") {
					size := rapid.IntRange(26, 300).Draw(t, "size")
					batch = append(batch, fmt.Appendf(nil, "%07d%s", next, strings.Repeat("y", size-7)))
					next++
				}
				n, err := q.Put(batch)
				if err != nil || n != len(batch) {
					t.Fatalf("Put = %d, %v", n, err)
				}
				model = append(model, batch...)
			},
			"take": func(t *rapid.T) {
				n := min(rapid.IntRange(0, 12).Draw(t, "max"), len(model))
				if got := take(t, q, n); !slices.EqualFunc(got, model[:n], bytes.Equal) {
					t.Fatalf("took %s, want %s", brief(got), brief(model[:n]))
				}
				model = model[n:]
			},
			"empty":  func(*rapid.T) { check(q.Empty()); model = nil },
			"delete": func(*rapid.T) { check(q.Delete()); q = reopen(); model = nil },
			"reopen": func(*rapid.T) { check(q.Close()); q = reopen() },
			"": func(t *rapid.T) {
				if q.Depth() != int64(len(model)) {
					t.Fatalf("depth %d, want %d", q.Depth(), len(model))
				}
			},
		})
		check(q.Close())
		if lines := append(j.Logged("ERROR"), j.Logged("WARNING")...); len(lines) > 0 {
			t.Fatalf("logged %q", lines)
		}
		if files, err := listQueue(path, "a:b"); err != nil || len(files.bad)+len(files.temps) > 0 {
			t.Fatalf("litter %v, %v", files, err)
		}
	})
}
