//go:build unix

package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nsqio/go-nsq"
)

// What is here reads and writes the files of NSQ 1.3 by their description alone, and shares nothing
// with the daemons.
//
//	<queue>.diskqueue.meta.dat     "depth\nread file,read offset\nwrite file,write offset\n"
//	<queue>.diskqueue.000000.dat   records: size int32 | timestamp int64 | attempts uint16 | id 16 bytes | body
const recordHead = 8 + 2 + 16

// record is a message in a queue file.
type record struct {
	timestamp int64
	attempts  uint16
	id, body  string
}

func recordOf(m *nsq.Message) record {
	return record{timestamp: m.Timestamp, attempts: m.Attempts, id: string(m.ID[:]), body: string(m.Body)}
}

func encode(records []record) []byte {
	var data []byte
	for _, r := range records {
		data = binary.BigEndian.AppendUint32(data, uint32(recordHead+len(r.body)))
		data = binary.BigEndian.AppendUint64(data, uint64(r.timestamp))
		data = binary.BigEndian.AppendUint16(data, r.attempts)
		data = append(append(data, r.id...), r.body...)
	}
	return data
}

func decode(data []byte) ([]record, error) {
	var records []record
	for len(data) > 0 {
		if len(data) < 4 {
			return nil, fmt.Errorf("%d bytes after the last record", len(data))
		}
		size := int64(binary.BigEndian.Uint32(data))
		if data = data[4:]; size < recordHead || size > int64(len(data)) {
			return nil, fmt.Errorf("record of %d bytes where %d are left", size, len(data))
		}
		records = append(records, record{
			timestamp: int64(binary.BigEndian.Uint64(data)),
			attempts:  binary.BigEndian.Uint16(data[8:]),
			id:        string(data[10:recordHead]),
			body:      string(data[recordHead:size]),
		})
		data = data[size:]
	}
	return records, nil
}

func dataFile(folder, queue string, number int64) string {
	return filepath.Join(folder, fmt.Sprintf("%s.diskqueue.%06d.dat", queue, number))
}

func metaFile(folder, queue string) string {
	return filepath.Join(folder, queue+".diskqueue.meta.dat")
}

// writeQueue makes a queue of which the first records are read already. Each slice of records is a
// file; first is the number of the first one.
func writeQueue(t *testing.T, folder, queue string, first, read int, files ...[]record) {
	t.Helper()
	depth := -read
	var size int
	for i, records := range files {
		depth += len(records)
		data := encode(records)
		size = len(data)
		writeFile(t, dataFile(folder, queue, int64(first+i)), string(data))
	}
	meta := fmt.Sprintf("%d\n%d,%d\n%d,%d\n", depth, first, len(encode(files[0][:read])), first+len(files)-1, size)
	writeFile(t, metaFile(folder, queue), meta)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var metaPattern = regexp.MustCompile(`^(\d+)\n(\d+),(\d+)\n(\d+),(\d+)\n$`)

// readQueue returns what waits in a queue that was closed cleanly, and insists on all that is to be
// true of one.
func readQueue(folder, queue string) ([]record, error) {
	meta, err := os.ReadFile(metaFile(folder, queue))
	if err != nil {
		return nil, err
	}
	fields := metaPattern.FindSubmatch(meta)
	if fields == nil {
		return nil, fmt.Errorf("metadata of queue %s: %q", queue, meta)
	}
	var numbers [5]int64
	for i, field := range fields[1:] {
		if numbers[i], err = strconv.ParseInt(string(field), 10, 64); err != nil {
			return nil, err
		}
	}
	depth, readNumber, readOffset, writeNumber, writeOffset := numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
	var waiting []record
	for number := readNumber; number <= writeNumber; number++ {
		data, err := os.ReadFile(dataFile(folder, queue, number))
		if os.IsNotExist(err) && number == writeNumber && writeOffset == 0 {
			break // it is created by the first write
		}
		if err != nil {
			return nil, err
		}
		if number == writeNumber && int64(len(data)) != writeOffset {
			return nil, fmt.Errorf("queue %s ends at %d, its file at %d", queue, writeOffset, len(data))
		}
		if number == readNumber {
			if readOffset > int64(len(data)) {
				return nil, fmt.Errorf("queue %s is read to %d in a file of %d", queue, readOffset, len(data))
			}
			data = data[readOffset:]
		}
		records, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("queue %s, file %d: %w", queue, number, err)
		}
		waiting = append(waiting, records...)
	}
	if int64(len(waiting)) != depth {
		return nil, fmt.Errorf("queue %s has depth %d and %d records", queue, depth, len(waiting))
	}
	return waiting, nil
}

// readFolder returns what waits in each queue of a folder that has something, by the queue's name.
func readFolder(t *testing.T, folder string) map[string][]record {
	t.Helper()
	const suffix = ".diskqueue.meta.dat"
	found, err := filepath.Glob(filepath.Join(folder, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	queues := map[string][]record{}
	for _, name := range found {
		queue := strings.TrimSuffix(filepath.Base(name), suffix)
		records, err := readQueue(folder, queue)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) > 0 {
			queues[queue] = records
		}
	}
	return queues
}

// knownFiles are those that NSQ 1.3 knows, and the delays beside them, which it leaves alone.
var knownFiles = regexp.MustCompile(`^(nsqd\.dat|[^:]+(:[^:]+)?\.(diskqueue\.(meta|\d{6})\.dat|deferred\.dat))$`)

// checkFiles insists that a folder has no other files, and that nobody else can read them.
func checkFiles(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if !knownFiles.MatchString(entry.Name()) || info.Mode() != 0o600 {
			t.Errorf("file %s with mode %v", entry.Name(), info.Mode())
		}
	}
}
