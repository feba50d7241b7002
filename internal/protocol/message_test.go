package protocol

import (
	"bytes"
	"math"
	"testing"
)

// A record as it was recorded on the wire.
const goldenRecord = "\x18\xed\x04\x3a\x31\x05\xd2\x64\x00\x0118aeeda830001000hello"

func TestDecodeMessage(t *testing.T) {
	m, err := DecodeMessage([]byte(goldenRecord))
	if err != nil {
		t.Fatal(err)
	}
	if m.Timestamp != 0x18ed043a3105d264 || m.Attempts != 1 || string(m.ID[:]) != "18aeeda830001000" || string(m.Body) != "hello" {
		t.Errorf("got %d %d %s %q", m.Timestamp, m.Attempts, m.ID[:], m.Body)
	}
	for n := range MessageHeaderSize {
		if _, err := DecodeMessage([]byte(goldenRecord)[:n]); err == nil {
			t.Errorf("%d bytes are accepted", n)
		}
	}
	if m, err := DecodeMessage([]byte(goldenRecord)[:MessageHeaderSize]); err != nil || len(m.Body) != 0 {
		t.Errorf("a header alone: %q, %v", m.Body, err)
	}
}

func TestMessageHeaderBytes(t *testing.T) {
	record := append(make([]byte, MessageHeaderSize), "hello"...)
	PutMessageHeader(record, 0x18ed043a3105d264, 1, 0x18aeeda830001000)
	if string(record) != goldenRecord {
		t.Errorf("got %q", record)
	}
	PutAttempts(record, 0x1234)
	want := "\x18\xed\x04\x3a\x31\x05\xd2\x64\x12\x3418aeeda830001000hello"
	if string(record) != want {
		t.Errorf("with other attempts: %q", record)
	}
}

func TestPutID(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0000000000000000", 1: "0000000000000001", 0xabcdef: "0000000000abcdef",
		0x18aeebb2a0c01000: "18aeebb2a0c01000", math.MaxUint64: "ffffffffffffffff",
	} {
		var id ID
		if PutID(id[:], n); string(id[:]) != want {
			t.Errorf("%d: %s, want %s", n, id[:], want)
		}
	}
}

// Every record is either refused or, put together again, the same. Ids need not be hex.
func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte(goldenRecord))
	f.Add([]byte(goldenRecord)[:MessageHeaderSize])
	f.Add([]byte(goldenRecord)[:MessageHeaderSize-1])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, record []byte) {
		m, err := DecodeMessage(record)
		if (err != nil) != (len(record) < MessageHeaderSize) {
			t.Fatalf("%d bytes: %v", len(record), err)
		}
		if err != nil {
			return
		}
		again := make([]byte, MessageHeaderSize)
		PutMessageHeader(again, m.Timestamp, m.Attempts, 0)
		copy(again[idOffset:], m.ID[:])
		if again = append(again, m.Body...); !bytes.Equal(again, record) {
			t.Fatalf("%q became %q", record, again)
		}
	})
}
