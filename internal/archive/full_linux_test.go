package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A full disk takes whole records or nothing, each failure is told, and all is well once there is room.
func TestFullDisk(t *testing.T) {
	for _, compression := range []Compression{Plain, Gzip, Zstd} {
		out := t.TempDir()
		if err := syscall.Mount("tmpfs", out, "tmpfs", 0, "size=128k"); err != nil {
			t.Skipf("mount: %v", err)
		}
		t.Cleanup(func() { must(t, syscall.Unmount(out, 0)) })
		ballast := filepath.Join(out, "ballast")
		put(t, ballast, strings.Repeat("x", 64<<10))
		s := newArchive(t, Config{OutputDir: out, Compression: compression, Naming: Naming{Format: "<TOPIC><REV>"}})
		noise := noise(3000)
		want := ""
		var failure error
		must(t, s.Next(noon))
		for range 100 {
			if failure = errors.Join(s.Write([]byte(noise)), s.Sync()); failure != nil {
				break
			}
			want += noise + "\n"
		}
		if !errors.Is(failure, syscall.ENOSPC) || want == "" {
			t.Fatalf("failure %v after %d bytes", failure, len(want))
		}
		must(t, s.Abandon())
		for range 3 {
			err := s.Next(noon)
			if err == nil {
				err = errors.Join(s.Write([]byte(noise)), s.Sync())
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("on a full disk: %v", err)
			}
			must(t, s.Abandon())
		}
		must(t, os.Remove(ballast))
		if compression == Plain {
			wantTree(t, out, map[string]string{"t": want})
		} else {
			wantTree(t, out, map[string]string{"t-000000" + compression.suffix(): want})
		}
		s.write(noon, "after")
		must(t, s.Close())
		if compression == Plain {
			wantTree(t, out, map[string]string{"t": want + "after\n"})
		} else {
			wantTree(t, out, map[string]string{
				"t-000000" + compression.suffix(): want, "t-000001" + compression.suffix(): "after\n",
			})
		}
	}
}
