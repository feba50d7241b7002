package broker

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nsq/internal/protocol"
)

// frameOf is the frame of the V2 protocol, put together by its specification.
func frameOf(timestamp int64, attempts uint16, id string, body []byte) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, uint32(4+26+len(body)))
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint64(b, uint64(timestamp))
	b = binary.BigEndian.AppendUint16(b, attempts)
	b = append(b, id...)
	return append(b, body...)
}

// Whatever sizes are added, dropped and added again, each message keeps its own frame, and what
// consumers and disks get are the bytes of the specification, with the attempts of the value.
func TestBatchKeepsFramesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Batch
		var model [][]byte
		total := int64(0)
		for round := range rapid.IntRange(1, 3).Draw(t, "rounds") {
			b.Reset()
			model, total = nil, 0
			if b.Len() != 0 || b.bodies != 0 {
				t.Fatal("Reset keeps messages")
			}
			if rapid.Bool().Draw(t, "expect") {
				b.Expect(rapid.IntRange(0, 1<<20).Draw(t, "expected"))
			}
			for i := range rapid.IntRange(1, 60).Draw(t, "n") {
				size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 70_000)).Draw(t, "size")
				body := b.Add(size)
				if len(body) != size || cap(body) != size {
					t.Fatalf("room for %d of %d bytes", cap(body), size)
				}
				for at := range body {
					body[at] = byte(i + round)
				}
				if rapid.IntRange(0, 8).Draw(t, "drop") == 0 {
					b.DropLast()
					continue
				}
				model = append(model, bytes.Repeat([]byte{byte(i + round)}, size))
				total += int64(size)
			}
		}
		b.stamp(77, idRun{unit: 1, node: 2, sequence: 3})
		if b.Len() != len(model) || b.bodies != total {
			t.Fatalf("%d messages of %d bytes, want %d of %d", b.Len(), b.bodies, len(model), total)
		}
		ids := idRun{unit: 1, node: 2, sequence: 3}
		for i := range b.messages {
			m := b.messages[i]
			m.attempts = uint16(i * 1000)
			var id [16]byte
			protocol.PutID(id[:], ids.next())
			want := frameOf(77, m.attempts, string(id[:]), model[i])
			if got := m.AppendFrame([]byte("x")); !bytes.Equal(got[1:], want) || got[0] != 'x' {
				t.Fatalf("frame %d: %.60x, want %.60x", i, got, want)
			}
			if got := append(m.AppendHead(nil), m.Body()...); !bytes.Equal(got, want) || m.FrameSize() != len(want) {
				t.Fatalf("head and body of %d differ from the frame", i)
			}
			if got := records([]Message{m})[0]; !bytes.Equal(got, want[8:]) {
				t.Fatalf("record %d: %.60x, want %.60x", i, got, want[8:])
			}
			if m.id() != id || m.Attempts() != m.attempts {
				t.Fatalf("id %s, want %s", m.id(), id)
			}
		}
	})
}

// A record read from disk becomes the message that was written, and one that is too short an error
// that leaves the batch as it was.
func TestDecodeRecord(t *testing.T) {
	whole := frameOf(-5, 300, "0123456789abcdef", []byte("body"))[8:]
	var b Batch
	if err := b.decodeRecord(whole); err != nil {
		t.Fatal(err)
	}
	m := b.messages[0]
	if string(m.Body()) != "body" || m.Attempts() != 300 || m.id() != protocol.ID([]byte("0123456789abcdef")) {
		t.Fatalf("decoded %q, %d, %s", m.Body(), m.Attempts(), m.id())
	}
	m.attempts++
	if got, want := m.AppendFrame(nil), frameOf(-5, 301, "0123456789abcdef", []byte("body")); !bytes.Equal(got, want) {
		t.Fatalf("frame %x, want %x", got, want)
	}
	for n := range protocol.MessageHeaderSize {
		err := b.decodeRecord(whole[:n])
		if err == nil || !strings.Contains(err.Error(), "invalid message buffer size") || b.Len() != 1 {
			t.Fatalf("%d bytes: %v, %d messages", n, err, b.Len())
		}
	}
	if err := b.decodeRecord(whole[:protocol.MessageHeaderSize]); err != nil || b.Len() != 2 {
		t.Fatalf("a record without a body: %v", err)
	}
}

// FuzzDecodeRecord proves that no record makes trouble: it is refused, or comes out as it went in.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(frameOf(1, 2, "0123456789abcdef", []byte("body"))[8:])
	f.Fuzz(func(t *testing.T, record []byte) {
		var b Batch
		if err := b.decodeRecord(record); err != nil {
			if len(record) >= protocol.MessageHeaderSize || b.Len() != 0 {
				t.Fatalf("%d bytes refused: %v", len(record), err)
			}
			return
		}
		if got := records(b.messages)[0]; !bytes.Equal(got, record) {
			t.Fatalf("%x came out as %x", record, got)
		}
	})
}

// A message that stays lets go of the memory of its batch, without changing.
func TestAloneLetsGoOfTheBatch(t *testing.T) {
	batch := messages(1, 100)
	m := batch[50]
	m.attempts, m.delay = 3, 4
	lone := m.alone()
	if lone.chunk == m.chunk || len(lone.chunk.buf) != int(lone.size) {
		t.Fatalf("it keeps %d bytes for a frame of %d", len(lone.chunk.buf), lone.size)
	}
	if !bytes.Equal(lone.frame(), m.frame()) || lone.attempts != 3 || lone.delay != 4 {
		t.Fatal("the message has changed")
	}
	if again := lone.alone(); again.chunk != lone.chunk {
		t.Fatal("a lone message is copied again")
	}
}

// A single message pins no more memory than its frame.
func TestLoneMessageIsSmall(t *testing.T) {
	var b Batch
	b.Add(100)
	if got, want := len(b.chunk.buf), FrameOverhead+100; got != want {
		t.Fatalf("chunk of %d bytes, want %d", got, want)
	}
}
