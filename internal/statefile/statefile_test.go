package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// names lists a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A file has the content and the mode of its last write, and nothing else is left in the folder.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "100%s.dat") // a percent sign is a name like any other
	for _, content := range []string{"", "first and long", "second"} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("content %q, want %q", got, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if diff := cmp.Diff([]string{"100%s.dat"}, names(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
}

// A path without a folder is one in the working directory.
func TestWriteRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("nsqd.dat", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, "nsqd.dat"); got != "x" {
		t.Errorf("content %q", got)
	}
}

// The new content is on the disk before it takes the name, and the name is before Write returns.
func TestWriteOrder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nsqd.dat")
	temp := regexp.MustCompile(`^nsqd\.dat\.[0-9]{1,19}\.tmp$`)
	var steps []string
	d := disk{
		sync: func(f *os.File) error {
			steps = append(steps, "sync "+read(t, f.Name()))
			if !temp.MatchString(filepath.Base(f.Name())) || filepath.Dir(f.Name()) != dir {
				t.Errorf("temporary file is %s", f.Name())
			}
			return f.Sync()
		},
		rename: func(from, to string) error {
			steps = append(steps, "rename to "+filepath.Base(to))
			return os.Rename(from, to)
		},
		syncDir: func(folder string) error {
			steps = append(steps, fmt.Sprintf("sync folder %v with %s", folder == dir, read(t, path)))
			return syncDir(folder)
		},
	}
	if err := d.write(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"sync content", "rename to nsqd.dat", "sync folder true with content"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// When a step fails the caller hears of it, no temporary file stays, and the old content does,
// except after the rename.
func TestWriteFailure(t *testing.T) {
	broken := errors.New("no space left")
	tests := []struct {
		name    string
		breakIt func(*disk)
		want    string
	}{
		{"fsync", func(d *disk) { d.sync = func(*os.File) error { return broken } }, "old"},
		{"rename", func(d *disk) { d.rename = func(string, string) error { return broken } }, "old"},
		{"fsync of the folder", func(d *disk) { d.syncDir = func(string) error { return broken } }, "new"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "nsqd.dat")
			if err := Write(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			d := osDisk
			test.breakIt(&d)
			if err := d.write(path, []byte("new"), 0o600); !errors.Is(err, broken) {
				t.Errorf("error %v, want %v", err, broken)
			}
			if got := read(t, path); got != test.want {
				t.Errorf("content %q, want %q", got, test.want)
			}
			if diff := cmp.Diff([]string{"nsqd.dat"}, names(t, dir)); diff != "" {
				t.Errorf("folder (-want +got):\n%s", diff)
			}
		})
	}
}

// Failures of the system itself: no folder, and a name that a folder has already.
func TestWriteImpossible(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "missing", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	taken := filepath.Join(dir, "taken")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(taken, nil, 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if diff := cmp.Diff([]string{"taken"}, names(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
}

// A probe fails where a write would, and changes nothing.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nsqd.dat")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Probe(path, []byte("new"), 0o600); err != nil {
		t.Error(err)
	}
	if got := read(t, path); got != "old" {
		t.Errorf("content %q", got)
	}
	if diff := cmp.Diff([]string{"nsqd.dat"}, names(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	if err := Probe(filepath.Join(dir, "missing", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

// Writers of one path do not mix their contents, and a reader never sees a part of one.
func TestWriteConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nsqd.dat")
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 10_000) }
	whole := func(data string) bool { return len(data) == 10_000 && strings.Count(data, data[:1]) == len(data) }
	if err := Write(path, content(0), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 5 {
				if err := Write(path, content(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		if data := read(t, path); !whole(data) {
			t.Fatalf("read %d bytes that are not of one writer", len(data))
		}
	}
	writers.Wait()
}

// hasFlock says whether folders can be locked here.
var hasFlock = runtime.GOOS != "windows" && runtime.GOOS != "illumos" && runtime.GOOS != "solaris"

// A folder has one owner at a time; a second one is refused with NSQ's words.
func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockDir(dir)
	want := "cannot flock directory " + dir + " - resource temporarily unavailable (possibly in use by another instance of nsqd)"
	if hasFlock && (err == nil || err.Error() != want) {
		t.Errorf("second lock: error %v\nwant %s", err, want)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := LockDir(dir)
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	if err := again.Unlock(); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("the lock left %q", left)
	}
}

// The empty path is the working directory, under its full name in errors.
func TestLockDirEmptyPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	lock, err := LockDir("")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if _, err := LockDir(dir); hasFlock && err == nil {
		t.Error("the working directory is not locked")
	}
}

// Only a folder that exists can be locked.
func TestLockDirRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	for path, want := range map[string]string{
		missing: "open " + missing + ": no such file or directory",
		file:    "open " + file + ": not a directory",
	} {
		if _, err := LockDir(path); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
