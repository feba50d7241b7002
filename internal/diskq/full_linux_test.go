package diskq

import (
	"errors"
	"syscall"
	"testing"
)

// On a full disk a Put tells exactly what it stored, what was stored before is kept and counted,
// and the queue works again once there is room.
func TestFullDisk(t *testing.T) {
	path := t.TempDir()
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	})
	c, _ := testConfig(path)
	c.MaxBytesPerFile, c.SyncEvery = 16<<10, 100
	var s sickbed
	c.Health = s.report
	q := open(t, c, "a")

	var stored int
	fill := func() {
		t.Helper()
		for failures := 0; failures < 5; {
			n, err := q.Put(records(stored, stored+7))
			stored += n
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			if (n == 7) != (err == nil) {
				t.Fatalf("Put = %d, %v", n, err)
			}
			if err != nil {
				failures++
			}
		}
	}
	fill()
	if stored < 2000 || !s.ill() || q.Depth() != int64(stored) {
		t.Fatalf("stored %d, depth %d, reports %v", stored, q.Depth(), s.all())
	}
	eventually(t, "no unfinished metadata", func() bool {
		files, err := listQueue(path, "a")
		return err == nil && len(files.temps) == 0
	})
	half := take(t, q, stored/2) // makes room
	fill()
	got := append(half, drain(t, q)...)
	wantRecords(t, got, records(0, stored))

	put(t, q, records(stored, stored+100)...)
	eventually(t, "recovery", s.well)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, drain(t, open(t, c, "a")), records(stored, stored+100))
}
