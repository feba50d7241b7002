package diskq

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Two records, hello and A, as NSQ 1.3 wrote them.
const captured = "0000001f18ed05f75a3cf5a70000" + "31386165663439636434633031303030" + "68656c6c6f" +
	"0000001b18ed05f75bce7d130000" + "31386165663439636462303031303030" + "41"

func capturedRecords(t testing.TB) (file []byte, records [][]byte) {
	t.Helper()
	file, err := hex.DecodeString(captured)
	if err != nil {
		t.Fatal(err)
	}
	return file, [][]byte{file[4:35], file[39:]}
}

func TestWritesTheFormatOfNSQ(t *testing.T) {
	file, records := capturedRecords(t)
	c, _ := testConfig(t.TempDir())
	q := open(t, c, "orders:billing")
	put(t, q, records...)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	got := readFolder(t, c.Path)
	want := folder{
		"orders:billing.diskqueue.000000.dat": file,
		"orders:billing.diskqueue.meta.dat":   []byte("2\n0,0\n0,66\n"),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("wrote %q", got)
	}
	for name := range got {
		if info, err := os.Stat(filepath.Join(c.Path, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// What NSQ 1.3 leaves after a clean stop is taken up as it is, without a word.
func TestReadsWhatNSQWrites(t *testing.T) {
	file, two := capturedRecords(t)
	attempted := slices.Clone(two[0])
	attempted[9] = 3 // delivered three times
	var eight [][]byte
	for i := range 8 {
		eight = append(eight, record(i))
	}
	for name, c := range map[string]struct {
		folder folder
		want   [][]byte
	}{
		"captured":           {folder{"a.diskqueue.meta.dat": []byte("2\n0,0\n0,66\n"), "a.diskqueue.000000.dat": file}, two},
		"half taken":         {folder{"a.diskqueue.meta.dat": []byte("1\n0,35\n0,66\n"), "a.diskqueue.000000.dat": file}, two[1:]},
		"attempts":           {folder{"a.diskqueue.meta.dat": []byte("1\n7,0\n7,35\n"), "a.diskqueue.000007.dat": onDisk(attempted)}, [][]byte{attempted}},
		"never used":         {folder{"a.diskqueue.meta.dat": []byte("0\n0,0\n0,0\n")}, nil},
		"emptied":            {folder{"a.diskqueue.meta.dat": []byte("0\n4,0\n4,0\n")}, nil},
		"consumed":           {folder{"a.diskqueue.meta.dat": []byte("0\n0,80000\n0,80000\n"), "a.diskqueue.000000.dat": make([]byte, 80000)}, nil},
		"rolled, then ended": {folder{"a.diskqueue.meta.dat": []byte("2\n0,0\n1,0\n"), "a.diskqueue.000000.dat": file}, two},
		"consumed to the end of a rolled file": {folder{
			"a.diskqueue.meta.dat": []byte("2\n0,80\n1,66\n"), "a.diskqueue.000000.dat": onDisk(record(0)), "a.diskqueue.000001.dat": file}, two},
		"files beyond the limit": {folder{
			"a.diskqueue.meta.dat": []byte("8\n0,0\n1,160\n"), "a.diskqueue.000000.dat": onDisk(eight[:6]...), "a.diskqueue.000001.dat": onDisk(eight[6:]...)}, eight},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, j := testConfig(c.folder.write(t))
			cfg.MaxBytesPerFile = 200
			q := open(t, cfg, "a")
			if q.Depth() != int64(len(c.want)) {
				t.Errorf("depth %d", q.Depth())
			}
			wantRecords(t, drain(t, q), c.want)
			put(t, q, records(100, 105)...)
			wantRecords(t, drain(t, q), records(100, 105))
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if lines := append(j.Logged("ERROR"), j.Logged("WARNING")...); len(lines) > 0 {
				t.Errorf("logged %q", lines)
			}
		})
	}
}

// backlog is 250 records in files of 100, 100 and 50.
func backlog() folder {
	return folder{
		"a.diskqueue.meta.dat":   []byte("250\n0,0\n2,4000\n"),
		"a.diskqueue.000000.dat": onDisk(records(0, 100)...),
		"a.diskqueue.000001.dat": onDisk(records(100, 200)...),
		"a.diskqueue.000002.dat": onDisk(records(200, 250)...),
	}
}

// What of a damaged queue survives, that its depth becomes right, and that new records always do.
func TestDamage(t *testing.T) {
	const (
		metaName = "a.diskqueue.meta.dat"
		file0    = "a.diskqueue.000000.dat"
		file1    = "a.diskqueue.000001.dat"
		file2    = "a.diskqueue.000002.dat"
	)
	setLength := func(file string, record int, length string) func(folder) {
		return func(f folder) { copy(f[file][80*record:], length) }
	}
	cut := func(file string, size int) func(folder) {
		return func(f folder) { f[file] = f[file][:size] }
	}
	write := func(file, content string) func(folder) {
		return func(f folder) { f[file] = []byte(content) }
	}
	appendTo := func(file string, content []byte) func(folder) {
		return func(f folder) { f[file] = append(f[file], content...) }
	}
	rename := func(from, to string) func(folder) {
		return func(f folder) { f[to] = f[from]; delete(f, from) }
	}
	remove := func(files ...string) func(folder) {
		return func(f folder) {
			for _, file := range files {
				delete(f, file)
			}
		}
	}
	all := records(0, 250)
	for name, c := range map[string]struct {
		damage func(folder)
		want   [][]byte
		depth  int   // at once; damage inside a file is found only later
		bad    int64 // number of the file set aside, -1 for none
		quiet  bool  // nothing to warn of
	}{
		"none":                     {func(folder) {}, all, 250, -1, true},
		"length zero":              {setLength(file1, 40, "\x00\x00\x00\x00"), slices.Concat(all[:140], all[200:]), 250, 1, false},
		"length huge":              {setLength(file1, 40, "\x7f\xff\xff\xff"), slices.Concat(all[:140], all[200:]), 250, 1, false},
		"length negative":          {setLength(file1, 40, "\xff\xff\xff\xff"), slices.Concat(all[:140], all[200:]), 250, 1, false},
		"length of first":          {setLength(file0, 0, "\x00\x00\x00\x00"), all[100:], 250, 0, false},
		"length in last":           {setLength(file2, 10, "\x00\x00\x00\x00"), all[:210], 250, 2, false},
		"full file cut":            {cut(file1, 40*80+20), slices.Concat(all[:140], all[200:]), 250, 1, false},
		"full file cut even":       {cut(file1, 40*80), slices.Concat(all[:140], all[200:]), 250, -1, false},
		"last file cut":            {cut(file2, 10*80+20), all[:210], 210, 2, false},
		"last file cut even":       {cut(file2, 10*80), all[:210], 210, -1, false},
		"first missing":            {remove(file0), all[100:], 150, -1, false},
		"middle missing":           {remove(file1), slices.Concat(all[:100], all[200:]), 150, -1, false},
		"last missing":             {remove(file2), all[:200], 200, -1, false},
		"all missing":              {remove(file0, file1, file2), nil, 0, -1, false},
		"everything gone":          {remove(metaName, file0, file1, file2), nil, 0, -1, true},
		"garbage appended":         {appendTo(file2, []byte("8 bytes!")), all, 250, 2, false},
		"zeroes appended":          {appendTo(file2, make([]byte, 5000)), all, 250, 2, false},
		"records appended":         {appendTo(file2, onDisk(records(250, 260)...)), records(0, 260), 260, -1, false},
		"record half there":        {appendTo(file2, onDisk(records(250, 252)...)[:150]), records(0, 251), 251, 2, false},
		"file beyond":              {func(f folder) { f["a.diskqueue.000003.dat"] = onDisk(records(250, 260)...) }, records(0, 260), 260, -1, false},
		"file far beyond":          {rename(file2, "a.diskqueue.1000000000000.dat"), all, 250, -1, false},
		"no metadata":              {remove(metaName), all, 250, -1, false},
		"no metadata, later files": {remove(metaName, file0), all[100:], 150, -1, false},
		"metadata empty":           {write(metaName, ""), all, 250, -1, false},
		"metadata garbage":         {write(metaName, "\x00\xff\x00\x00"), all, 250, -1, false},
		"metadata cut":             {write(metaName, "250\n0,0\n2,400"), all, 250, -1, false},
		"metadata huge":            {write(metaName, strings.Repeat("1", 1<<20)), all, 250, -1, false},
		"metadata alone":           {func(f folder) { clear(f); f[metaName] = []byte("junk") }, nil, 0, -1, false},
		"read file too new":        {write(metaName, "250\n7,0\n2,4000\n"), all, 250, -1, false},
		"read beyond write":        {write(metaName, "250\n2,4080\n2,4000\n"), all, 250, -1, false},
		"read beyond file":         {write(metaName, "250\n0,9000\n2,4000\n"), all[100:], 150, 0, false},
		"write file far":           {write(metaName, "250\n0,0\n900000000000,0\n"), all, 250, -1, false},
		"write at the end of time": {write(metaName, fmt.Sprintf("250\n0,0\n2,%d\n", math.MaxInt64)), all, 250, -1, false},
		"negative position":        {write(metaName, "250\n-1,0\n2,4000\n"), all, 250, -1, false},
		"negative depth":           {write(metaName, "-7\n0,0\n2,4000\n"), all, 250, -1, false},
		"depth zero":               {write(metaName, "0\n0,0\n2,4000\n"), all, 250, -1, false},
		"depth huge":               {write(metaName, fmt.Sprintf("%d\n0,0\n2,4000\n", math.MaxInt64)), all, 250, -1, false},
		"depth of nothing":         {write(metaName, "5\n2,4000\n2,4000\n"), nil, 0, -1, false},
		"depth too low":            {write(metaName, "190\n0,0\n2,4000\n"), all, 190, -1, false},
		"depth too high":           {write(metaName, "260\n0,0\n2,4000\n"), all, 260, -1, false},
		"body changed":             {func(f folder) { f[file0][40] = 'y' }, append([][]byte{changed(record(0), 36)}, all[1:]...), 250, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := backlog()
			c.damage(f)
			cfg, j := testConfig(f.write(t))
			q := open(t, cfg, "a")
			if q.Depth() != int64(c.depth) {
				t.Errorf("depth %d at once, want %d", q.Depth(), c.depth)
			}
			put(t, q, records(1000, 1003)...)
			wantRecords(t, drain(t, q), append(slices.Clone(c.want), records(1000, 1003)...))
			for i := range 3 { // still sound
				put(t, q, record(2000+i))
				wantRecords(t, drain(t, q), records(2000+i, 2001+i))
			}
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			left, err := listQueue(cfg.Path, "a")
			if err != nil {
				t.Fatal(err)
			}
			var bad []string
			if c.bad >= 0 {
				bad = []string{cfg.dataPath("a", c.bad) + ".bad"}
			}
			if !slices.Equal(left.bad, bad) {
				t.Errorf("set aside %v, want %v", left.bad, bad)
			}
			if warned := len(j.Logged("WARNING")) > 0; warned == c.quiet {
				t.Errorf("warnings %q", j.Logged("WARNING"))
			}
			if q = open(t, cfg, "a"); q.Depth() != 0 {
				t.Errorf("depth %d after restart", q.Depth())
			}
		})
	}
}

func changed(record []byte, at int) []byte {
	record[at] = 'y'
	return record
}

// A file of the queue that cannot be read at the moment is no reason to rebuild anything.
func TestUnreadableMetadataIsAnErrorNotDamage(t *testing.T) {
	f := backlog()
	delete(f, "a.diskqueue.meta.dat")
	path := f.write(t)
	blocked := filepath.Join(path, "a.diskqueue.meta.dat")
	// Following a link to itself fails, also for root.
	if err := os.Symlink(blocked, blocked); err != nil {
		t.Skip(err)
	}
	c, _ := testConfig(path)
	if _, err := c.Open("a"); err == nil {
		t.Fatal("opened")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocked, []byte("200\n0,4000\n2,4000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, _ := testConfig(path)
	wantRecords(t, drain(t, open(t, again, "a")), records(50, 250))
}

func TestRecordsStoredUnderALargerLimitAreRead(t *testing.T) {
	large := [][]byte{bytes.Repeat([]byte("a"), 900), bytes.Repeat([]byte("b"), 1000), record(0)}
	c, _ := testConfig(t.TempDir())
	q := open(t, c, "a")
	put(t, q, large...)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	c, j := testConfig(c.Path)
	c.MaxRecord = 100
	q = open(t, c, "a")
	if _, err := q.Put(large[:1]); err == nil {
		t.Error("the new limit does not hold for Put")
	}
	wantRecords(t, drain(t, q), large)
	if lines := j.Logged("ERROR"); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
}

// The memory that a damaged length may cost is bounded by the size of the file and absolutely.
func TestReadLimit(t *testing.T) {
	for _, c := range []struct {
		max  int32
		size int64
		want int32
	}{
		{1000, 0, 1000}, {1000, 500, 1000}, {1000, 5000, 4996}, {1000, 1 << 40, maxDistrusted}, {math.MaxInt32, 0, math.MaxInt32 - 4},
	} {
		cfg := &Config{MaxRecord: c.max}
		if got := cfg.limit([]segment{{0, c.size}}); got != c.want {
			t.Errorf("%d, file of %d: %d, want %d", c.max, c.size, got, c.want)
		}
	}
}

// A process killed at any moment loses no record of which Put has returned, and counts them.
func TestCrash(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*testing.T, Queue)
		want   [][]byte
	}{
		"new queue":     {func(t *testing.T, q Queue) { put(t, q, records(0, 5)...) }, records(0, 5)},
		"several files": {func(t *testing.T, q Queue) { put(t, q, records(0, 45)...) }, records(0, 45)},
		"emptied": {func(t *testing.T, q Queue) {
			put(t, q, records(0, 45)...)
			if err := q.Empty(); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"emptied and used": {func(t *testing.T, q Queue) {
			put(t, q, records(0, 45)...)
			if err := q.Empty(); err != nil {
				t.Fatal(err)
			}
			put(t, q, records(45, 60)...)
		}, records(45, 60)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := testConfig(t.TempDir())
			cfg.MaxBytesPerFile = 800
			c.before(t, open(t, cfg, "a"))
			path := cfg.Path
			for range 3 { // and killed again right after the start
				path = crash(t, path)
				again, _ := testConfig(path)
				again.MaxBytesPerFile = 800
				q := open(t, again, "a")
				if q.Depth() != int64(len(c.want)) {
					t.Errorf("depth %d, want %d", q.Depth(), len(c.want))
				}
			}
			again, _ := testConfig(path)
			q := open(t, again, "a")
			put(t, q, records(900, 905)...)
			wantRecords(t, drain(t, q), append(slices.Clone(c.want), records(900, 905)...))
		})
	}
}

func TestUncleanStopIsLoggedAsEver(t *testing.T) {
	c, _ := testConfig(t.TempDir())
	put(t, open(t, c, "a"), records(0, 5)...)
	c, j := testConfig(crash(t, c.Path))
	open(t, c, "a")
	want := []string{fmt.Sprintf("DISKQUEUE(a) %s metadata writePos 0 < file size of 400, skipping to new file",
		filepath.Join(c.Path, "a.diskqueue.000000.dat"))}
	if got := j.Logged("WARNING"); !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestStaleMetadataIsRemovedAtOpen(t *testing.T) {
	other := "b.diskqueue.meta.dat.5.tmp"
	c, _ := testConfig(folder{"a.diskqueue.meta.dat.5.tmp": nil, "a.diskqueue.meta.dat.8674665223082153551.tmp": []byte("x"), other: nil}.write(t))
	open(t, c, "a")
	if got := readFolder(t, c.Path).names(); !slices.Equal(got, []string{other}) {
		t.Errorf("left %v", got)
	}
}
