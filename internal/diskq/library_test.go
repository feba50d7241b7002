package diskq

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// sickbed records what Health is told.
type sickbed struct {
	mu      sync.Mutex
	reports []error
}

func (s *sickbed) report(queue string, err error) {
	if queue != "a" {
		panic(queue)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, err)
}

func (s *sickbed) all() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reports)
}

// well says that something was reported, and recovery last.
func (s *sickbed) well() bool {
	all := s.all()
	return len(all) > 0 && all[len(all)-1] == nil
}

func (s *sickbed) ill() bool {
	all := s.all()
	return len(all) > 0 && all[len(all)-1] != nil
}

// With consumers that keep up the library takes every file that it leaves behind for a bad one.
func TestConsumedFilesAreRemovedWithoutAlarm(t *testing.T) {
	c, j := testConfig(t.TempDir())
	c.MaxBytesPerFile = 800
	q := open(t, c, "a")
	for i := range 95 {
		put(t, q, record(i))
		wantRecords(t, drain(t, q), records(i, i+1))
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := readFolder(t, c.Path).names(), []string{"a.diskqueue.000009.dat", "a.diskqueue.meta.dat"}; !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if lines := append(j.Logged("ERROR"), j.Logged("WARNING")...); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
	hushed := func(line string) bool { return strings.Contains(line, "saving bad file") }
	if !slices.ContainsFunc(j.Logged("DEBUG"), hushed) {
		t.Error("the library did not take a consumed file for a bad one: is this still needed?")
	}
}

func TestDamagedFilesAreKeptWithAlarm(t *testing.T) {
	f := backlog()
	copy(f["a.diskqueue.000001.dat"][3200:], "\xff\xff\xff\xff")
	c, j := testConfig(f.write(t))
	drain(t, open(t, c, "a"))
	file := filepath.Join(c.Path, "a.diskqueue.000001.dat")
	if _, err := os.Stat(file + ".bad"); err != nil {
		t.Error(err)
	}
	if want := "DISKQUEUE(a) reading at 3200 of " + file + " - invalid message read size (-1)"; !slices.Contains(j.Logged("ERROR"), want) {
		t.Errorf("no %q in %q", want, j.Logged("ERROR"))
	}
	if want := "DISKQUEUE(a) 60 records lost to damage"; !slices.Contains(j.Logged("WARNING"), want) {
		t.Errorf("no %q in %q", want, j.Logged("WARNING"))
	}
}

// block makes a path unusable, also for root, until the returned function is called.
func block(t *testing.T, path string) (unblock func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}

func TestFailedWriteIsReportedAndHeals(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.MaxBytesPerFile = 400
	var s sickbed
	c.Health = s.report
	q := open(t, c, "a")
	put(t, q, records(0, 3)...)
	if len(s.all()) != 0 {
		t.Errorf("reports %v before any failure", s.all())
	}
	unblock := block(t, filepath.Join(c.Path, "a.diskqueue.000001.dat"))
	for range 2 {
		n, err := q.Put(records(3, 8)) // room for two in the first file
		if pathError := new(fs.PathError); !errors.As(err, &pathError) {
			t.Fatalf("Put = %d, %v", n, err)
		}
		if !s.ill() {
			t.Error("not reported")
		}
		if n == 2 {
			continue
		}
		if n != 0 {
			t.Fatalf("Put stored %d", n)
		}
	}
	if q.Depth() != 5 {
		t.Errorf("depth %d", q.Depth())
	}
	unblock()
	put(t, q, records(5, 8)...)
	if !s.well() {
		t.Errorf("reports %v", s.all())
	}
	wantRecords(t, drain(t, q), records(0, 8))
}

func TestFailedCreationIsReportedAndHeals(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	var s sickbed
	c.Health = s.report
	q := open(t, c, "a")
	unblock := block(t, filepath.Join(c.Path, "a.diskqueue.meta.dat"))
	if n, err := q.Put(records(0, 2)); n != 0 || err == nil {
		t.Fatalf("Put = %d, %v", n, err)
	}
	if !s.ill() || q.Depth() != 0 {
		t.Errorf("reports %v, depth %d", s.all(), q.Depth())
	}
	if got := readFolderNames(t, c.Path); !slices.Equal(got, []string{"a.diskqueue.meta.dat"}) {
		t.Errorf("litter %v", got)
	}
	unblock()
	put(t, q, records(0, 2)...)
	if !s.well() {
		t.Errorf("reports %v", s.all())
	}
	wantRecords(t, drain(t, q), records(0, 2))
}

func readFolderNames(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A failed sync is only in the log of the library; it must reach Health, and so must the recovery,
// even if nothing else happens to the queue.
func TestFailedSyncIsReportedAndHeals(t *testing.T) {
	c, j := testConfig(t.TempDir())
	c.SyncTimeout = 5 * time.Millisecond
	var s sickbed
	c.Health = s.report
	q := open(t, c, "a")
	put(t, q, record(0))
	metadata := filepath.Join(c.Path, "a.diskqueue.meta.dat")
	eventually(t, "first sync", func() bool {
		m, err := readMeta(metadata)
		return err == nil && m.depth == 1
	})
	if err := os.Remove(metadata); err != nil {
		t.Fatal(err)
	}
	unblock := block(t, metadata)
	put(t, q, record(1))
	eventually(t, "report", s.ill)
	for _, name := range readFolderNames(t, c.Path) {
		if strings.HasSuffix(name, ".tmp") {
			eventually(t, "removal of "+name, func() bool {
				_, err := os.Stat(filepath.Join(c.Path, name))
				return errors.Is(err, fs.ErrNotExist)
			})
		}
	}
	put(t, q, record(2)) // works, and is no recovery
	if s.well() {
		t.Error("well though syncs fail")
	}
	if !slices.ContainsFunc(j.Logged("ERROR"), func(l string) bool { return strings.HasPrefix(l, "DISKQUEUE(a) failed to sync - ") }) {
		t.Errorf("logged %q", j.Logged("ERROR"))
	}
	unblock()
	eventually(t, "recovery", s.well)
	wantRecords(t, drain(t, q), records(0, 3))
}

// A queue that could not be reopened has kept its records, and the next Take finds them.
func TestTakeBringsALostQueueBack(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.MaxBytesPerFile = 400
	var s sickbed
	c.Health = s.report
	q := open(t, c, "a")
	put(t, q, records(0, 5)...)
	unblock := block(t, filepath.Join(c.Path, "a.diskqueue.000001.dat"))
	for range 2 { // the write fails, then closing the library
		if _, err := q.Put(records(5, 6)); err == nil {
			t.Fatal("stored")
		}
	}
	if q.lib != nil || !q.lost || q.Depth() != 5 {
		t.Fatalf("library %v, lost %v, depth %d: this test proves nothing", q.lib, q.lost, q.Depth())
	}
	unblock()
	wantRecords(t, drain(t, q), records(0, 5))
	put(t, q, records(5, 6)...)
	wantRecords(t, drain(t, q), records(5, 6))
	if !s.well() {
		t.Errorf("reports %v", s.all())
	}
}

func TestHealthOfADeletedQueue(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	var s sickbed
	c.Health = s.report
	c.MaxBytesPerFile = 80
	q := open(t, c, "a")
	put(t, q, record(0))
	unblock := block(t, filepath.Join(c.Path, "a.diskqueue.000001.dat"))
	if _, err := q.Put(records(1, 2)); err == nil || !s.ill() {
		t.Fatalf("%v, %v", err, s.all())
	}
	unblock()
	if err := q.Delete(); err != nil || !s.well() {
		t.Errorf("%v, %v", err, s.all())
	}
}

// Close reports when what was written cannot be made durable.
func TestCloseReportsAFileThatCannotBeSynced(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	q := open(t, c, "a")
	put(t, q, records(0, 2)...)
	take(t, q, 1) // now the reader has the file open
	file := filepath.Join(c.Path, "a.diskqueue.000000.dat")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	block(t, file)
	if err := q.Close(); err == nil {
		t.Error("closed without an error")
	}
}

// Part of a record that a failed write left, longer than the next record: nothing of it shows up.
func TestRemainsOfAFailedWriteAreCutOff(t *testing.T) {
	for name, next := range map[string]func(*testing.T, *disk) [][]byte{
		"put":   func(t *testing.T, q *disk) [][]byte { put(t, q, record(2)); return records(0, 3) },
		"close": func(*testing.T, *disk) [][]byte { return records(0, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			c, j := testConfig(t.TempDir())
			q := open(t, c, "a")
			put(t, q, records(0, 2)...)
			file := filepath.Join(c.Path, "a.diskqueue.000000.dat")
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(onDisk(record(7), record(8))); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			q.writer.Lock()
			q.torn = true // as after a failed write
			q.writer.Unlock()
			want := next(t, q)
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			if got := readFolder(t, c.Path)["a.diskqueue.000000.dat"]; string(got) != string(onDisk(want...)) {
				t.Errorf("file of %d bytes, want %d", len(got), len(want)*80)
			}
			wantRecords(t, drain(t, open(t, c, "a")), want)
			if lines := append(j.Logged("ERROR"), j.Logged("WARNING")...); len(lines) > 0 {
				t.Errorf("logged %q", lines)
			}
		})
	}
}
