package archive

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// journal is what was logged. It is safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (j *journal) logf(level log.Level, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, level.String()+": "+fmt.Sprintf(format, args...))
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// sut is an archive under test in folders of its own.
type sut struct {
	*Archive
	t   *testing.T
	out string
	log journal
}

// newArchive fills what the config leaves out: the folder, and a name with revision and minute.
func newArchive(t *testing.T, c Config) *sut {
	t.Helper()
	if c.OutputDir == "" {
		c.OutputDir = t.TempDir()
	}
	if c.Naming.Format == "" {
		c.Naming.Format = "<TOPIC><REV>.<DATETIME>.log"
	}
	if c.Naming.Datetime == "" {
		c.Naming.Datetime = "%H%M"
	}
	if c.Level == 0 {
		c.Level = 6
	}
	s := &sut{t: t, out: c.OutputDir}
	var err error
	if s.Archive, err = New(c, "t", s.log.logf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.file != nil {
			s.file.f.Close()
		}
		if t.Failed() {
			t.Logf("log:\n%s", s.log.String())
		}
	})
	return s
}

// write writes records as a caller does, and syncs.
func (s *sut) write(now time.Time, records ...string) {
	s.t.Helper()
	for _, record := range records {
		if s.IsDue(now) {
			must(s.t, s.Next(now))
		}
		must(s.t, s.Write([]byte(record)))
	}
	must(s.t, s.Sync())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns the files below a folder with their content, decompressed.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		must(t, err)
		below, err := filepath.Rel(root, path)
		must(t, err)
		found[below] = string(decompress(t, path, data))
		return nil
	})
	must(t, err)
	return found
}

func decompress(t *testing.T, path string, data []byte) []byte {
	t.Helper()
	var in io.Reader = bytes.NewReader(data)
	switch filepath.Ext(path) {
	case ".gz":
		r, err := gzip.NewReader(in)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		in = r
	case ".zst":
		if len(data) == 0 {
			t.Fatalf("%s is empty, which is no zstd file", path)
		}
		r, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		must(t, err)
		defer r.Close()
		in = r
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return text
}

func wantTree(t *testing.T, root string, want map[string]string) {
	t.Helper()
	if got := tree(t, root); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("files are %q, want %q", got, want)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// descriptors are the open files of this process below a folder.
func descriptors(t *testing.T, root string) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no list of descriptors")
	}
	for _, e := range entries {
		if path, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(path, root) {
			open = append(open, path)
		}
	}
	slices.Sort(open)
	return open
}

// noise is text that nothing can compress much.
func noise(n int) string {
	var b strings.Builder
	x := uint32(1)
	for range n {
		x = x*1664525 + 1013904223
		b.WriteByte(' ' + byte(x>>24)%95)
	}
	return b.String()
}
