package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A new name, the age and the size each end a file; names repeat with the next revision.
func TestRotation(t *testing.T) {
	minute := noon.Add(time.Minute)
	for _, test := range []struct {
		name   string
		config Config
		do     func(s *sut)
		want   map[string]string
		log    string
	}{
		{"name", Config{}, func(s *sut) {
			s.write(noon, "a", "b")
			s.write(minute, "c")
		}, map[string]string{"t.1200.log": "a\nb\n", "t.1201.log": "c\n"}, "info: new filename t.1201.log, rotating..."},
		{"interval", Config{RotateInterval: 10 * time.Second}, func(s *sut) {
			s.write(noon, "a")
			s.write(noon.Add(10*time.Second), "b")
			s.write(noon.Add(11*time.Second), "c")
			s.write(minute, "d")
		}, map[string]string{"t-000000.1200.log": "a\nb\n", "t-000001.1200.log": "c\n", "t-000000.1201.log": "d\n"},
			"info: 11s since last open, rotating..."},
		{"size", Config{RotateSize: 4}, func(s *sut) {
			s.write(noon, "a", "b", "c", "d")
		}, map[string]string{"t-000000.1200.log": "a\nb\nc\n", "t-000001.1200.log": "d\n"}, "currently 6 bytes (> 4), rotating..."},
		{"size before compression", Config{RotateSize: 1000, Compression: Gzip}, func(s *sut) {
			s.write(noon, strings.Repeat("x", 1000), "b")
		}, map[string]string{
			"t-000000.1200.log.gz": strings.Repeat("x", 1000) + "\n", "t-000001.1200.log.gz": "b\n",
		}, "currently 1001 bytes (> 1000), rotating..."},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newArchive(t, test.config)
			test.do(s)
			must(t, s.Close())
			wantTree(t, s.out, test.want)
			if !strings.Contains(s.log.String(), test.log) {
				t.Errorf("%q is not in the log", test.log)
			}
			if open := descriptors(t, s.out); len(open) > 0 {
				t.Errorf("still open: %v", open)
			}
		})
	}
}

// After a restart plain files go on, in the first revision that is not full; any other kind never
// touches what is there. Nothing that was skipped stays open.
func TestRestart(t *testing.T) {
	there := map[string]string{"t.1200.log": "old\n"}
	for i := range 3 {
		there[fmt.Sprintf("t-%06d.1200.log", i)] = "old\n"
		there[fmt.Sprintf("t-%06d.1200.log.gz", i)] = "" // made below
	}
	there["t-000002.1200.log"] = ""
	for _, test := range []struct {
		name    string
		config  Config
		changed string
		content string
	}{
		{"plain", Config{}, "t.1200.log", "old\nnew\n"},
		{"size", Config{RotateSize: 3}, "t-000002.1200.log", "new\n"},
		{"size not reached", Config{RotateSize: 4}, "t-000000.1200.log", "old\nnew\n"},
		{"interval", Config{RotateInterval: time.Hour}, "t-000003.1200.log", "new\n"},
		{"gzip", Config{Compression: Gzip}, "t-000003.1200.log.gz", "new\n"},
		{"zstd", Config{Compression: Zstd}, "t-000000.1200.log.zst", "new\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := t.TempDir()
			for name, content := range there {
				if filepath.Ext(name) != ".gz" {
					put(t, filepath.Join(out, name), content)
				}
			}
			for range 3 {
				other := newArchive(t, Config{OutputDir: out, Compression: Gzip})
				other.write(noon)
				must(t, other.Next(noon))
				must(t, other.Close())
			}
			test.config.OutputDir = out
			s := newArchive(t, test.config)
			s.write(noon, "new")
			if open := descriptors(t, out); len(open) != 1 {
				t.Errorf("open are %v", open)
			}
			must(t, s.Close())
			want := make(map[string]string)
			for name, content := range there {
				want[name] = content
			}
			want[test.changed] = test.content
			wantTree(t, out, want)
		})
	}
}

// Two archives with the same names do not share a file where names have revisions.
func TestTwoArchives(t *testing.T) {
	for _, c := range []Config{{RotateSize: 100}, {RotateInterval: time.Hour}, {Compression: Gzip}} {
		c.OutputDir = t.TempDir()
		a, b := newArchive(t, c), newArchive(t, c)
		a.write(noon, "a")
		b.write(noon, "b")
		a.write(noon, "a")
		must(t, a.Close())
		must(t, b.Close())
		suffix := c.Compression.suffix()
		wantTree(t, c.OutputDir, map[string]string{
			"t-000000.1200.log" + suffix: "a\na\n", "t-000001.1200.log" + suffix: "b\n",
		})
	}
}

// At any moment a file on the disk is whole and has all that was synced, as if the process was killed
// there; also when it was opened for nothing.
func TestKilledAnywhere(t *testing.T) {
	for _, compression := range []Compression{Plain, Gzip, Zstd} {
		for _, level := range []int{1, 6, 9} {
			s := newArchive(t, Config{Compression: compression, Level: level})
			must(t, s.Next(noon))
			must(t, s.Sync())
			file := "t.1200.log"
			if compression != Plain {
				file = "t-000000.1200.log" + compression.suffix()
			}
			wantTree(t, s.out, map[string]string{file: ""})
			want, synced := "", ""
			for i := range 7 {
				record := noise(20000 + i)
				must(t, s.Write([]byte(record)))
				got := tree(t, s.out)[file]
				want += record + "\n"
				if !strings.HasPrefix(got, synced) || !strings.HasPrefix(want, got) || got != "" && got[len(got)-1] != '\n' {
					t.Fatalf("after record %d the file has %d bytes, want %d at least, and whole lines", i, len(got), len(synced))
				}
				if i%3 == 0 {
					must(t, s.Sync())
					synced = want
					wantTree(t, s.out, map[string]string{file: want})
				}
			}
			must(t, s.Close())
			wantTree(t, s.out, map[string]string{file: want})
		}
	}
}

// Lines can be seen after Flush, before any Sync.
func TestFlush(t *testing.T) {
	s := newArchive(t, Config{})
	must(t, s.Next(noon))
	must(t, s.Write([]byte("a")))
	must(t, s.Flush())
	wantTree(t, s.out, map[string]string{"t.1200.log": "a\n"})
}

// What a crash has left of a line does not become part of the next one.
func TestHalfLine(t *testing.T) {
	s := newArchive(t, Config{})
	put(t, filepath.Join(s.out, "t.1200.log"), "whole\nhal")
	s.write(noon, "new")
	wantTree(t, s.out, map[string]string{"t.1200.log": "whole\nhal\nnew\n"})
}

// A file that was removed while it was open is no place for a record: Sync says so, and the next file
// is there again, with its folder.
func TestRemovedFile(t *testing.T) {
	for _, c := range []Config{{}, {Compression: Gzip}, {RotateSize: 100}} {
		c.OutputDir = filepath.Join(t.TempDir(), "a", "b")
		s := newArchive(t, c)
		s.write(noon, "a")
		must(t, os.RemoveAll(filepath.Dir(c.OutputDir)))
		must(t, s.Write([]byte("b")))
		if err := s.Sync(); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Fatalf("Sync = %v", err)
		}
		must(t, s.Abandon())
		s.write(noon, "b")
		must(t, s.Close())
		for name, content := range tree(t, s.out) {
			if content != "b\n" {
				t.Errorf("%s has %q", name, content)
			}
		}
	}
}

// A file that was renamed is still a good one, as rotation from outside needs it.
func TestRenamedFile(t *testing.T) {
	s := newArchive(t, Config{})
	s.write(noon, "a")
	must(t, os.Rename(filepath.Join(s.out, "t.1200.log"), filepath.Join(s.out, "saved")))
	s.write(noon, "b")
	must(t, s.Close())
	s.write(noon, "c")
	wantTree(t, s.out, map[string]string{"saved": "a\nb\n", "t.1200.log": "c\n"})
}

// A failed attempt leaves no file behind, and uses up no revision.
func TestAbandonedFile(t *testing.T) {
	for _, c := range []Config{{Compression: Gzip}, {RotateInterval: time.Hour}} {
		s := newArchive(t, c)
		for range 3 {
			must(t, s.Next(noon))
			must(t, s.Write([]byte("a")))
			must(t, s.Abandon())
			wantTree(t, s.out, map[string]string{})
		}
		s.write(noon, "b")
		must(t, s.Write([]byte("lost"))) // a member that is begun and not finished
		must(t, s.Abandon())
		s.write(noon, "c")
		must(t, s.Close())
		suffix := c.Compression.suffix()
		wantTree(t, s.out, map[string]string{
			"t-000000.1200.log" + suffix: "b\n", "t-000001.1200.log" + suffix: "c\n",
		})
	}
}

// A folder that cannot be one is an error that names the file, and it is tried anew the next time.
func TestUnusableFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	put(t, out, "a file")
	s := newArchive(t, Config{OutputDir: out})
	for range 2 {
		if err := s.Next(noon); err == nil || !strings.Contains(err.Error(), "unable to open "+out+"/t.1200.log") {
			t.Fatalf("Next = %v", err)
		}
	}
	must(t, os.Remove(out))
	s.write(noon, "a")
	wantTree(t, out, map[string]string{"t.1200.log": "a\n"})
}
