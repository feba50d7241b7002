package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t testing.TB, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, folder, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func fileNames(t testing.TB, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// stored is a record as the format of disk queues has it.
type stored struct {
	timestamp int64
	attempts  uint16
	id        string
	body      string
}

// encode is the record with its length before it.
func (s stored) encode() string {
	frame := frameOf(s.timestamp, s.attempts, s.id, []byte(s.body))
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(frame)-8))) + string(frame[8:])
}

// writeQueue writes a disk queue with these records, and a first one that was consumed already.
func writeQueue(t testing.TB, folder, queue string, records ...stored) {
	t.Helper()
	consumed := stored{1, 0, "00000000000000aa", "consumed"}.encode()
	var rest strings.Builder
	for _, r := range records {
		rest.WriteString(r.encode())
	}
	write(t, folder, queue+".diskqueue.000003.dat", consumed+rest.String())
	write(t, folder, queue+".diskqueue.meta.dat",
		fmt.Sprintf("%d\n3,%d\n3,%d\n", len(records), len(consumed), len(consumed)+rest.Len()))
}

// readQueue decodes what a stopped daemon left of a queue, by the description of the format alone.
func readQueue(t testing.TB, folder, queue string) []stored {
	t.Helper()
	var depth, readFile, readAt, writeFile, writeAt int
	meta := read(t, folder, queue+".diskqueue.meta.dat")
	if n, err := fmt.Sscanf(meta, "%d\n%d,%d\n%d,%d\n", &depth, &readFile, &readAt, &writeFile, &writeAt); n != 5 || err != nil {
		t.Fatalf("metadata %q: %v", meta, err)
	}
	var all []stored
	for file := readFile; file <= writeFile; file++ {
		name := fmt.Sprintf("%s.diskqueue.%06d.dat", queue, file)
		if file == writeFile && writeAt == 0 {
			break
		}
		data := read(t, folder, name)
		if file == writeFile {
			data = data[:writeAt]
		}
		if file == readFile {
			data = data[readAt:]
		}
		for len(data) > 0 {
			size := int(binary.BigEndian.Uint32([]byte(data)))
			record := []byte(data[4 : 4+size])
			all = append(all, stored{
				int64(binary.BigEndian.Uint64(record)), binary.BigEndian.Uint16(record[8:]),
				string(record[10:26]), string(record[26:]),
			})
			data = data[4+size:]
		}
	}
	if len(all) != depth {
		t.Fatalf("queue %s: %d records, and the metadata says %d", queue, len(all), depth)
	}
	return all
}

func storedBodies(all []stored) []string {
	var bodies []string
	for _, s := range all {
		bodies = append(bodies, s.body)
	}
	slices.Sort(bodies)
	return bodies
}
