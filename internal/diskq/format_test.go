package diskq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	if got := TopicName("orders#x"); got != "orders#x" {
		t.Errorf("topic: %s", got)
	}
	want := "orders:billing"
	if runtime.GOOS == "windows" {
		want = "orders;billing"
	}
	if got := ChannelName("orders", "billing"); got != want {
		t.Errorf("channel: %s", got)
	}
}

func TestParseFileName(t *testing.T) {
	for _, c := range []struct {
		file, queue string
		what        kind
		number      int64
	}{
		{"orders.diskqueue.meta.dat", "orders", metaFile, 0},
		{"orders:billing.diskqueue.000012.dat", "orders:billing", dataFile, 12},
		{"orders.diskqueue.1234567.dat", "orders", dataFile, 1234567},
		{"orders.diskqueue.000003.dat.bad", "orders", badFile, 3},
		{"orders.diskqueue.meta.dat.8674665223082153551.tmp", "orders", tempFile, 0},
		{"a.diskqueue.000000.dat.diskqueue.000001.dat", "a.diskqueue.000000.dat", dataFile, 1},
		{"nsqd.dat", "", foreign, 0},
		{".diskqueue.000000.dat", "", foreign, 0},
		{"a.diskqueue.00000.dat", "", foreign, 0},
		{"a.diskqueue.0000001.dat", "", foreign, 0},
		{"a.diskqueue.-00001.dat", "", foreign, 0},
		{"a.diskqueue.+00001.dat", "", foreign, 0},
		{"a.diskqueue.9223372036854775807.dat", "", foreign, 0},
		{"a.diskqueue.99999999999999999999.dat", "", foreign, 0},
		{"a.diskqueue.meta.dat.x.tmp", "", foreign, 0},
		{"a.diskqueue.meta.dat.tmp", "", foreign, 0},
		{"a.diskqueue.meta.dat.bad", "", foreign, 0},
		{"a.diskqueue.000000.dat.bak", "", foreign, 0},
	} {
		queue, what, number := parseFileName(c.file)
		if what != c.what || what != foreign && (queue != c.queue || number != c.number) {
			t.Errorf("%s: %q, %d, %d", c.file, queue, what, number)
		}
	}
}

func TestParseMeta(t *testing.T) {
	for text, want := range map[string]meta{
		"0\n0,0\n0,0\n":         {},
		"1000\n0,0\n0,80000\n":  {1000, position{}, position{0, 80000}},
		"-5\n3,80\n4,0\n":       {-5, position{3, 80}, position{4, 0}},
		"0\n0,80000\n0,80000\n": {0, position{0, 80000}, position{0, 80000}},
	} {
		if got, err := parseMeta([]byte(text)); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "x", "5", "5\n0,0\n0,80", "5\n0,0\n0,80\nmore", "5\r\n0,0\r\n0,80\r\n", "+5\n0,0\n0,80\n", "05\n0,0\n0,80\n",
		"5\n0,0\n", "5\n-1,0\n0,80\n", "5\n0,-1\n0,80\n", "5\n0,81\n0,80\n", "5\n1,0\n0,80\n", "5\n0,0\n9223372036854775807,0\n",
		"99999999999999999999\n0,0\n0,80\n", "5\n0,0\n0,80\n" + strings.Repeat("\n", 300),
	} {
		if got, err := parseMeta([]byte(text)); !errors.Is(err, errMeta) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// What parses is what was written, to the byte, and can be counted on.
func FuzzParseMeta(f *testing.F) {
	f.Add([]byte("1000\n0,0\n0,80000\n"))
	f.Add([]byte("-1\n7,5\n7,5\n"))
	f.Add([]byte("5\n0,0\n0,80"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMeta(data)
		if err != nil {
			return
		}
		if !bytes.Equal(m.encode(), data) {
			t.Fatalf("%q parsed as %+v", data, m)
		}
		if m.read.file < 0 || m.read.offset < 0 || m.read.compare(m.write) > 0 || m.write.file+1 < 0 {
			t.Fatalf("impossible positions accepted: %+v", m)
		}
	})
}

// Any metadata that parse are judged without a panic, whatever files there are, and are not
// called intact where the library would look for a file that is missing.
func FuzzJudge(f *testing.F) {
	f.Add([]byte("1000\n0,0\n0,80000\n"), int64(0), int64(80000), int64(1), int64(0))
	f.Add([]byte("0\n0,80\n1,0\n"), int64(0), int64(80), int64(5), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, n1, s1, n2, s2 int64) {
		m, err := parseMeta(data)
		if err != nil || n1 < 0 || n2 <= n1 || n2 > maxFileNumber || s1 < 0 || s2 < 0 {
			return
		}
		live := segmentsFrom([]segment{{n1, s1 % (1 << 50)}, {n2, s2 % (1 << 50)}}, m.read.file)
		_, v := judge(m, live, 26)
		if v == intact && m.depth > 0 && (len(live) == 0 || live[0].number != m.read.file) {
			t.Fatalf("%+v with %v is not intact", m, live)
		}
	})
}

func TestCountRecords(t *testing.T) {
	three := onDisk(record(0), record(1), record(2))
	big := onDisk(bytes.Repeat([]byte("b"), 200_000), record(1))
	var many []byte
	for range 5000 { // far beyond what is read at once, records across the borders
		many = append(many, onDisk(record(0))...)
	}
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, c := range map[string]struct {
		data []byte
		from int64
		want int64
	}{
		"empty":           {nil, 0, 0},
		"whole":           {three, 0, 3},
		"from the middle": {three, 80, 2},
		"at the end":      {three, 240, 0},
		"beyond the end":  {three, 1000, 0},
		"large":           {big, 0, 2},
		"many":            {many, 0, 5000},
		"cut in length":   {three[:162], 0, 2},
		"cut in record":   {three[:200], 0, 2},
		"zero tail":       {append(slices.Clone(three), make([]byte, 4096)...), 0, 3},
		"negative":        {slices.Concat(three, length(math.MaxUint32), three), 0, 3},
		"huge":            {slices.Concat(three, length(math.MaxInt32), three), 0, 3},
		"too short":       {slices.Concat(three, length(25), three), 0, 3},
	} {
		got, err := countRecords(bytes.NewReader(c.data), c.from, int64(len(c.data)), 26, 1<<20)
		if got != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
}

type brokenReader struct{}

var errBroken = errors.New("broken")

func (brokenReader) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

func TestCountRecordsReportsReadErrors(t *testing.T) {
	if n, err := countRecords(brokenReader{}, 0, 1000, 26, 100); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("%d, %v", n, err)
	}
}

// The windowed count agrees with the plainest one.
func FuzzCountRecords(f *testing.F) {
	f.Add(onDisk(record(0), record(1)), uint16(0))
	f.Add(onDisk(record(0), record(1))[:100], uint16(80))
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, from uint16) {
		const shortest, longest = 1, 100
		var want int64
		if int(from) <= len(data) {
			for rest := data[from:]; len(rest) >= 4; want++ {
				n := int32(binary.BigEndian.Uint32(rest))
				if n < shortest || n > longest || int(n) > len(rest)-4 {
					break
				}
				rest = rest[4+n:]
			}
		}
		got, err := countRecords(bytes.NewReader(data), int64(from), int64(len(data)), shortest, longest)
		if got != want || err != nil {
			t.Fatalf("%d, %v, want %d", got, err, want)
		}
	})
}
