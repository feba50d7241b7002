package diskq

import (
	"path/filepath"
	"testing"
	"time"
)

// Each Put and each closing that went well is timed once; of a queue that never wrote there is nothing.
func TestMeterTimes(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.Meter = NewMeter()
	open(t, c, "idle").Close()
	q := open(t, c, "a")
	put(t, q, records(0, 3)...)
	put(t, q, records(3, 4)...)
	if n := c.Meter.Writes().Count; n != 2 {
		t.Errorf("%d writes timed, want 2", n)
	}
	if n := c.Meter.Syncs().Count; n != 0 {
		t.Errorf("%d syncs timed, want none", n)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if n := c.Meter.Syncs().Count; n != 1 {
		t.Errorf("%d syncs timed, want 1", n)
	}
	if w, s := c.Meter.WriteErrors(), c.Meter.SyncErrors(); w != 0 || s != 0 {
		t.Errorf("%d write and %d sync errors", w, s)
	}
	if _, err := q.Put(records(4, 5)); err == nil {
		t.Error("a closed queue takes records")
	}
	if w := c.Meter.WriteErrors(); w != 0 {
		t.Errorf("%d write errors, though the disk did not fail", w)
	}
}

// Failures are counted, with and without somebody who asks for health, and not timed.
func TestMeterErrors(t *testing.T) {
	for name, report := range map[string]func(string, error){"reported": func(string, error) {}, "unreported": nil} {
		t.Run(name, func(t *testing.T) {
			c, _ := testConfig(t.TempDir())
			c.Meter, c.Health, c.MaxBytesPerFile = NewMeter(), report, 80
			q := open(t, c, "a")
			put(t, q, record(0))
			unblock := block(t, filepath.Join(c.Path, "a.diskqueue.000001.dat"))
			if _, err := q.Put(records(1, 2)); err == nil {
				t.Fatal("stored")
			}
			if n, timed := c.Meter.WriteErrors(), c.Meter.Writes().Count; n != 1 || timed != 1 {
				t.Errorf("%d write errors and %d timed, want 1 and 1", n, timed)
			}
			unblock()
		})
	}
}

// Failed syncs of the library are counted, which only logs them.
func TestMeterSyncErrors(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	c.Meter, c.SyncTimeout = NewMeter(), 5*time.Millisecond
	q := open(t, c, "a")
	metadata := filepath.Join(c.Path, "a.diskqueue.meta.dat")
	put(t, q, record(0))
	eventually(t, "first sync", func() bool {
		m, err := readMeta(metadata)
		return err == nil && m.depth == 1
	})
	if err := remove(metadata); err != nil {
		t.Fatal(err)
	}
	unblock := block(t, metadata)
	put(t, q, record(1))
	eventually(t, "a failure is counted", func() bool { return c.Meter.SyncErrors() > 0 })
	unblock()
}
