package diskq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig is a data path whose settings leave syncing to the code under test.
func testConfig(path string) (*Config, *testutil.Buffer) {
	j := new(testutil.Buffer)
	return &Config{
		Path: path, MaxBytesPerFile: 1 << 20, MinRecord: 26, MaxRecord: 1 << 10,
		SyncEvery: 1 << 40, SyncTimeout: time.Hour, Logger: log.New(j, "", log.Debug),
	}, j
}

// memoryDir is a folder where syncing costs nothing, if there is one.
func memoryDir(t testing.TB) string {
	path, err := os.MkdirTemp("/dev/shm", "diskq")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

func open(t testing.TB, c *Config, name string) *disk {
	t.Helper()
	q, err := c.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q.(*disk)
}

func put(t testing.TB, q Queue, records ...[]byte) {
	t.Helper()
	if n, err := q.Put(records); n != len(records) || err != nil {
		t.Fatalf("Put = %d, %v, want %d", n, err, len(records))
	}
}

// drain takes until the queue says that it is empty.
func drain(t testing.TB, q Queue) [][]byte {
	t.Helper()
	var all [][]byte
	for deadline := time.Now().Add(20 * time.Second); q.Depth() > 0; {
		var err error
		if all, err = q.Take(all, 64); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("queue stuck at depth %d after %d records", q.Depth(), len(all))
		}
	}
	return all
}

// take takes n records, in as many steps as a slow disk makes of it.
func take(t interface {
	Helper()
	Fatalf(string, ...any)
}, q Queue, n int) [][]byte {
	t.Helper()
	var all [][]byte
	for deadline := time.Now().Add(20 * time.Second); ; {
		got, err := q.Take(all, n-len(all))
		if all = got; err != nil || len(all) > n {
			t.Fatalf("took %d of %d records: %v", len(all), n, err)
		}
		if len(all) == n {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("took only %d of %d records", len(all), n)
		}
	}
}

func wantRecords(t testing.TB, got, want [][]byte) {
	t.Helper()
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("got %d records %s\nwant %d records %s", len(got), brief(got), len(want), brief(want))
	}
}

func brief(records [][]byte) string {
	var b strings.Builder
	for _, r := range records[:min(len(records), 300)] {
		fmt.Fprintf(&b, " %.8s", r)
	}
	return b.String()
}

// record is a 76-byte record, 80 on disk, that can be told from others.
func record(i int) []byte { return fmt.Appendf(nil, "%07d|%s", i, strings.Repeat("x", 68)) }

func records(from, to int) (all [][]byte) {
	for i := from; i < to; i++ {
		all = append(all, record(i))
	}
	return all
}

// onDisk is the content of a data file.
func onDisk(records ...[]byte) []byte {
	var b []byte
	for _, r := range records {
		b = binary.BigEndian.AppendUint32(b, uint32(len(r)))
		b = append(b, r...)
	}
	return b
}

// folder is what lies in a data path: file name to content.
type folder map[string][]byte

func (f folder) write(t testing.TB) string {
	t.Helper()
	path := memoryDir(t)
	for name, content := range f {
		if err := os.WriteFile(filepath.Join(path, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func readFolder(t testing.TB, path string) folder {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	f := make(folder)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(path, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // the library works on
		}
		if err != nil {
			t.Fatal(err)
		}
		f[e.Name()] = content
	}
	return f
}

func (f folder) names() []string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// crash returns a copy of a data path as a killed process would leave it.
func crash(t testing.TB, path string) string { return readFolder(t, path).write(t) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
