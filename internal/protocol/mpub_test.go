package protocol

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// body is a source that holds all that will ever come, and notes what was asked of it.
type body struct {
	rest    []byte
	awaited []int
}

func (b *body) ReadSize() (int32, error) {
	var size [4]byte
	if err := b.ReadFull(size[:]); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(size[:])), nil
}

func (b *body) Await(n int) error {
	b.awaited = append(b.awaited, n)
	return nil
}

func (b *body) ReadFull(p []byte) error {
	if len(b.rest) < len(p) {
		return io.ErrUnexpectedEOF
	}
	b.rest = b.rest[copy(p, b.rest):]
	return nil
}

// collect is a place for messages.
type collect struct{ messages [][]byte }

func (c *collect) place(size int) []byte {
	c.messages = append(c.messages, make([]byte, size))
	return c.messages[len(c.messages)-1]
}

func (c *collect) texts() (all []string) {
	for _, m := range c.messages {
		all = append(all, string(m))
	}
	return all
}

var bounds = MPubLimits{MaxBody: 5242880, MaxMessage: 1048576}

func TestReadMPub(t *testing.T) {
	// As recorded on the wire, behind the size of the body.
	const golden = "\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x02bc"
	if got := AppendMPub([]byte("x"), [][]byte{[]byte("a"), []byte("bc")}); string(got) != "x"+golden {
		t.Errorf("appended %q", got)
	}
	source, found := &body{rest: []byte(golden + "NOP\n")}, new(collect)
	taken, fault := ReadMPub(source, int64(len(golden)), bounds, found.place)
	if fault != nil || taken != int64(len(golden)) || string(source.rest) != "NOP\n" {
		t.Errorf("took %d bytes, %q are left, %v", taken, source.rest, fault)
	}
	if got := found.texts(); !slices.Equal(got, []string{"a", "bc"}) {
		t.Errorf("messages %q", got)
	}
	if !slices.Equal(source.awaited, []int{1, 2}) {
		t.Errorf("memory was reserved for messages of which only %v had been awaited", source.awaited)
	}
}

// Bytes behind the last message are the caller's to judge: they are not taken.
func TestReadMPubLeavesTheRest(t *testing.T) {
	taken, fault := ReadMPub(&body{rest: []byte("\x00\x00\x00\x01\x00\x00\x00\x01aXX")}, 11, bounds, new(collect).place)
	if fault != nil || taken != 9 {
		t.Errorf("took %d bytes, %v", taken, fault)
	}
}

func TestReadMPubErrors(t *testing.T) {
	const huge = math.MaxInt32
	for _, test := range []struct {
		name, body string
		size       int64 // 0 is that of the body
		messages   int   // that were read before
		want       string
	}{
		{"no room for a count", "", 3, 0, "E_BAD_BODY MPUB failed to read message count"},
		{"no count", "\x00\x00", 100, 0, "E_BAD_BODY MPUB failed to read message count"},
		{"count 0", "\x00\x00\x00\x00", 0, 0, "E_BAD_BODY MPUB invalid message count 0"},
		{"count -1", "\xff\xff\xff\xff", 0, 0, "E_BAD_BODY MPUB invalid message count -1"},
		{"least count", "\x80\x00\x00\x00", 0, 0, "E_BAD_BODY MPUB invalid message count -2147483648"},
		{"largest count", "\x7f\xff\xff\xff", 0, 0, "E_BAD_BODY MPUB invalid message count 2147483647"},
		{"one more than any body can hold", "\x00\x10\x00\x00", 0, 0, "E_BAD_BODY MPUB invalid message count 1048576"},
		{"as many as a full body can hold", "\x00\x0f\xff\xff", 0, 0, "E_BAD_BODY MPUB body size 4 does not match its 1048575 messages"},
		{"no size", "\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00", 20, 1, "E_BAD_MESSAGE MPUB failed to read message(1) body size"},
		{"size 0", "\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00", 0, 1, "E_BAD_MESSAGE MPUB invalid message(1) body size 0"},
		{"size -1", "\x00\x00\x00\x01\xff\xff\xff\xff", 0, 0, "E_BAD_MESSAGE MPUB invalid message(0) body size -1"},
		{"least size", "\x00\x00\x00\x01\x80\x00\x00\x00", 0, 0, "E_BAD_MESSAGE MPUB invalid message(0) body size -2147483648"},
		{"largest size", "\x00\x00\x00\x01\x7f\xff\xff\xff", 0, 0, "E_BAD_MESSAGE MPUB message too big 2147483647 > 1048576"},
		{"one over the limit", "\x00\x00\x00\x01\x00\x10\x00\x01", 2000000, 0, "E_BAD_MESSAGE MPUB message too big 1048577 > 1048576"},
		{"larger than the body", "\x00\x00\x00\x01\x00\x00\x00\x03ab", 0, 0, "E_BAD_BODY MPUB body size 10 does not match its 1 messages"},
		{"more messages than the body has", "\x00\x00\x00\x02\x00\x00\x00\x01a", 0, 1, "E_BAD_BODY MPUB body size 9 does not match its 2 messages"},
		{"half a size at the end of the body", "\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00", 0, 1, "E_BAD_BODY MPUB body size 11 does not match its 2 messages"},
		{"a body that does not come", "\x00\x00\x00\x01\x00\x00\x00\x05ab", 13, 1, "E_BAD_MESSAGE MPUB failed to read message body"},
	} {
		t.Run(test.name, func(t *testing.T) {
			size := test.size
			if size == 0 {
				size = int64(len(test.body))
			}
			found := new(collect)
			taken, fault := ReadMPub(&body{rest: []byte(test.body)}, size, bounds, found.place)
			if fault == nil || fault.Error() != test.want {
				t.Errorf("got  %v\nwant %s", fault, test.want)
			}
			if len(found.messages) != test.messages || taken > size {
				t.Errorf("%d messages, %d of %d bytes taken", len(found.messages), taken, size)
			}
		})
	}
	if _, fault := ReadMPub(&body{rest: []byte("\x00\x00\x00\x01")}, 4, MPubLimits{MaxBody: 3, MaxMessage: huge}, nil); fault == nil {
		t.Error("a limit below the size of the count admits a message")
	}
}

// A source that fails to wait for a body has no memory reserved for it.
func TestReadMPubAwaitsBeforeItReserves(t *testing.T) {
	source := &refusing{body{rest: []byte("\x00\x00\x00\x01\x00\x00\x00\x02ab")}}
	found := new(collect)
	_, fault := ReadMPub(source, 10, bounds, found.place)
	if fault == nil || fault.Error() != "E_BAD_MESSAGE MPUB failed to read message body" || len(found.messages) != 0 {
		t.Errorf("%v, %d messages placed", fault, len(found.messages))
	}
}

type refusing struct{ body }

func (*refusing) Await(int) error { return io.ErrUnexpectedEOF }

// Whatever arrives: what is read is within the body and its limits, room is asked for only within
// what the body could hold, and a body read without an error is made of its messages.
func FuzzReadMPub(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x02bc"), int64(15))
	f.Add([]byte("\x00\x00\x00\x01\x7f\xff\xff\xff"), int64(8))
	f.Add([]byte("\x00\x0f\xff\xff\x00\x00\x00\x01a"), int64(1<<20))
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x01aXX"), int64(11))
	f.Add([]byte(strings.Repeat("\x00\x00\x00\x01", 10)), int64(-1))
	f.Fuzz(func(t *testing.T, input []byte, size int64) {
		if size > bounds.MaxBody {
			return // refused before
		}
		source, found, asked := &body{rest: input}, new(collect), int64(0)
		taken, fault := ReadMPub(source, size, bounds, func(n int) []byte {
			if asked += int64(n) + 4; n <= 0 || int64(n) > bounds.MaxMessage || asked > size-4 {
				t.Fatalf("room for %d bytes, %d so far, of a body of %d", n, asked, size)
			}
			return found.place(n)
		})
		if taken > max(size, 0) {
			t.Fatalf("%d bytes taken of a body of %d", taken, size)
		}
		if fault == nil && !bytes.Equal(AppendMPub(nil, found.messages), input[:taken]) {
			t.Fatalf("%q was read from %q", found.texts(), input[:taken])
		}
	})
}
