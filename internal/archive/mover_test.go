package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// crossDevice is what os.Link says between two file systems, and then within the second one too,
// unless that has hard links.
func crossDevice(hardLinks bool) func(from, to string) error {
	return func(from, to string) error {
		if filepath.Dir(from) == filepath.Dir(to) && hardLinks {
			return os.Link(from, to)
		}
		return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EXDEV}
	}
}

// moving is an archive with a work folder.
type moving struct {
	*sut
	work  string
	mover *Mover
}

func newMoving(t *testing.T, work, out string, c Config) *moving {
	t.Helper()
	m := NewMover(work, out)
	if m == nil {
		t.Fatal("no mover")
	}
	c.Mover, c.OutputDir = m, out
	return &moving{sut: newArchive(t, c), work: work, mover: m}
}

// otherFileSystem is a folder in another file system than the usual temporary one.
func otherFileSystem(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "archive")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	here := t.TempDir()
	put(t, filepath.Join(here, "x"), "")
	if err := os.Link(filepath.Join(here, "x"), filepath.Join(folder, "x")); !errors.Is(err, syscall.EXDEV) {
		t.Skipf("link to /dev/shm: %v", err)
	}
	return folder
}

// A finished file moves to the same path in the output folder, whatever lies between, and never on top
// of another file.
func TestMove(t *testing.T) {
	links := map[string]func(from, to string) error{
		"same file system":  os.Link,
		"other file system": crossDevice(true),
		"no hard links":     crossDevice(false),
		"really other":      nil,
	}
	for name, link := range links {
		t.Run(name, func(t *testing.T) {
			work, out := t.TempDir(), ""
			if link == nil {
				out, link = otherFileSystem(t), os.Link
			} else {
				out = t.TempDir()
			}
			m := newMoving(t, work, out, Config{Naming: Naming{Format: "<REV>/<DATETIME>/<TOPIC><REV>.log"}})
			m.mover.link = link
			m.write(noon, "a")
			wantTree(t, work, map[string]string{"-000000/1200/t-000000.log": "a\n"})
			wantTree(t, out, map[string]string{})
			put(t, filepath.Join(out, "-000000/1200/t-000000.log"), "another")
			put(t, filepath.Join(out, "-000001/1200/t-000001.log"), "another")
			must(t, m.Close())
			must(t, m.mover.Drain())
			wantTree(t, work, map[string]string{})
			wantTree(t, out, map[string]string{
				"-000000/1200/t-000000.log": "another", "-000001/1200/t-000001.log": "another",
				"-000002/1200/t-000002.log": "a\n",
			})
			for _, line := range []string{
				fmt.Sprintf("info: moving finished file %[1]s/-000000/1200/t-000000.log to %[2]s/-000000/1200/t-000000.log", work, out),
				fmt.Sprintf("warn: destination file already exists: %s/-000001/1200/t-000001.log", out),
				fmt.Sprintf("warn: renamed finished file %s/-000000/1200/t-000000.log to %s/-000002/1200/t-000002.log to avoid overwrite", work, out),
			} {
				if !strings.Contains(m.log.String(), line) {
					t.Errorf("%q is not in the log", line)
				}
			}
			m.write(noon, "b") // and the archive goes on, beside what is in the output folder
			must(t, m.Close())
			must(t, m.mover.Drain())
			if got := tree(t, out)["-000003/1200/t-000003.log"]; got != "b\n" {
				t.Errorf("next file has %q", got)
			}
		})
	}
}

// What was interrupted at any point is done when it is tried again, and no file has two copies where
// that can be known.
func TestInterruptedMove(t *testing.T) {
	t.Run("after the link", func(t *testing.T) {
		m := newMoving(t, t.TempDir(), t.TempDir(), Config{})
		m.write(noon, "a")
		must(t, m.Close())
		must(t, os.Link(filepath.Join(m.work, "t-000000.1200.log"), filepath.Join(m.out, "t-000000.1200.log")))
		must(t, m.mover.Drain())
		wantTree(t, m.work, map[string]string{})
		wantTree(t, m.out, map[string]string{"t-000000.1200.log": "a\n"})
	})
	t.Run("while copying", func(t *testing.T) {
		m := newMoving(t, t.TempDir(), t.TempDir(), Config{})
		m.mover.link = crossDevice(true)
		m.write(noon, "a")
		must(t, m.Close())
		put(t, filepath.Join(m.out, ".t-000000.1200.log.partial"), "half of it and much longer")
		must(t, m.mover.Drain())
		wantTree(t, m.work, map[string]string{})
		wantTree(t, m.out, map[string]string{"t-000000.1200.log": "a\n"})
	})
}

// A move that fails is told, loses nothing, and is tried again until it succeeds.
func TestFailedMove(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	put(t, out, "not a folder")
	m := newMoving(t, t.TempDir(), out, Config{})
	m.finish("t-000000.1200.log", "a\n")
	if err := m.mover.Drain(); err == nil || !strings.Contains(err.Error(),
		fmt.Sprintf("unable to move file from %s/t-000000.1200.log to %s/t-000000.1200.log: ", m.work, out)) {
		t.Fatalf("Drain = %v", err)
	}
	wantTree(t, m.work, map[string]string{"t-000000.1200.log": "a\n"})
	must(t, os.Remove(out))
	must(t, m.mover.Drain())
	wantTree(t, m.work, map[string]string{})
	wantTree(t, out, map[string]string{"t-000000.1200.log": "a\n"})
}

// finish puts a finished file into the work folder and into the hands of the mover.
func (m *moving) finish(file, content string) {
	m.t.Helper()
	put(m.t, filepath.Join(m.work, file), content)
	n, ok := m.names.parse(file)
	if !ok {
		m.t.Fatalf("%q is no name", file)
	}
	m.mover.add(n, m.log.logf)
}

// Files that a killed process has left are moved: those of the topic, but not one that somebody still
// writes to, nor one with nothing in it.
func TestOrphans(t *testing.T) {
	for _, c := range []Config{{RotateInterval: time.Hour}, {RotateSize: 100}, {}} {
		work, out := t.TempDir(), t.TempDir()
		put(t, filepath.Join(work, "t-000000.1159.log"), "a\n")
		put(t, filepath.Join(work, "t-000001.1159.log"), "")
		put(t, filepath.Join(work, "x-000000.1159.log"), "of another topic\n")
		other := newMoving(t, work, out, c)
		other.write(noon, "busy")
		m := newMoving(t, work, out, c)
		m.write(noon, "open")
		m.Adopt()
		must(t, m.mover.Drain())
		wantTree(t, out, map[string]string{"t-000000.1159.log": "a\n"})
		wantTree(t, work, map[string]string{
			"t-000000.1200.log": "busy\n", "t-000001.1200.log": "open\n", "x-000000.1159.log": "of another topic\n",
		})
		must(t, m.Close())
		must(t, other.Close())
		must(t, errors.Join(m.mover.Drain(), other.mover.Drain()))
		wantTree(t, work, map[string]string{"x-000000.1159.log": "of another topic\n"})
		wantTree(t, out, map[string]string{
			"t-000000.1159.log": "a\n", "t-000000.1200.log": "busy\n", "t-000001.1200.log": "open\n",
		})
	}
}

// Folders that are the same one by any spelling need no mover.
func TestSameFolder(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(folder, link))
	for _, work := range []string{"", folder, folder + "/", folder + "/./", link} {
		if NewMover(work, folder) != nil {
			t.Errorf("%q is not the same folder", work)
		}
	}
	t.Chdir(folder)
	if NewMover("./work", "out") == nil || NewMover(".", folder) != nil {
		t.Error("relative folders are taken for others")
	}
}

// Run moves what comes while it runs, and what could not be moved at first.
func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	m := newMoving(t, t.TempDir(), out, Config{})
	m.write(noon, "a")
	put(t, out, "not a folder")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.mover.Run(ctx) })
	defer running.Wait()
	defer stop()
	must(t, m.Close())
	await(t, func() bool { return strings.Contains(m.log.String(), "error: unable to move file") })
	must(t, os.Remove(out))
	await(t, func() bool {
		there, err := exists(filepath.Join(out, "t-000000.1200.log"))
		return there && err == nil
	})
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

// A finished file that somebody goes on with before it is moved is left to them.
func TestReopenedBeforeMove(t *testing.T) {
	work, out, c := t.TempDir(), t.TempDir(), Config{RotateSize: 100}
	m := newMoving(t, work, out, c)
	m.write(noon, "a")
	must(t, m.Close())
	next := newMoving(t, work, out, c)
	next.write(noon, "b")
	must(t, m.mover.Drain())
	wantTree(t, out, map[string]string{})
	wantTree(t, work, map[string]string{"t-000000.1200.log": "a\nb\n"})
	must(t, next.Close())
	must(t, next.mover.Drain())
	wantTree(t, out, map[string]string{"t-000000.1200.log": "a\nb\n"})
}
