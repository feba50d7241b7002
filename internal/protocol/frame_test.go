package protocol

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// Frames as they were recorded on the wire.
var goldenFrames = []struct {
	name  string
	kind  FrameType
	data  string
	bytes string
}{
	{"OK", FrameResponse, ResponseOK, "\x00\x00\x00\x06\x00\x00\x00\x00OK"},
	{"heartbeat", FrameResponse, ResponseHeartbeat, "\x00\x00\x00\x0f\x00\x00\x00\x00_heartbeat_"},
	{"CLOSE_WAIT", FrameResponse, ResponseCloseWait, "\x00\x00\x00\x0e\x00\x00\x00\x00CLOSE_WAIT"},
	{"bad protocol", FrameError, FaultBadProtocol.With().Error(), "\x00\x00\x00\x12\x00\x00\x00\x01E_BAD_PROTOCOL"},
	{"unknown command", FrameError, FaultUnknownCommand.With("ASDF").Error(), "\x00\x00\x00\x22\x00\x00\x00\x01E_INVALID invalid command ASDF"},
	{
		"message", FrameMessage,
		"\x18\xed\x04\x3a\x31\x05\xd2\x64\x00\x0118aeeda830001000hello",
		"\x00\x00\x00\x23\x00\x00\x00\x02\x18\xed\x04\x3a\x31\x05\xd2\x64\x00\x0118aeeda830001000hello",
	},
	{"empty", FrameResponse, "", "\x00\x00\x00\x04\x00\x00\x00\x00"},
}

func TestFramesOnTheWire(t *testing.T) {
	for _, test := range goldenFrames {
		t.Run(test.name, func(t *testing.T) {
			if got := AppendFrame([]byte("before"), test.kind, test.data); string(got) != "before"+test.bytes {
				t.Errorf("of a string: %q", got)
			}
			if got := AppendFrame(nil, test.kind, []byte(test.data)); string(got) != test.bytes {
				t.Errorf("of bytes: %q", got)
			}
			rest := strings.NewReader(test.bytes + "next")
			kind, data, err := ReadFrame(rest, len(test.data))
			if err != nil || kind != test.kind || string(data) != test.data || rest.Len() != len("next") {
				t.Errorf("read %v %q, %v, %d bytes left", kind, data, err, rest.Len())
			}
		})
	}
}

// A size that can not be is refused before anything is read or allocated for it.
func TestReadFrameRefusesSizes(t *testing.T) {
	for name, size := range map[string]uint32{
		"zero": 0, "less than the type": 3, "one over the limit": 4 + 101,
		"largest": math.MaxInt32, "negative": 1 << 31, "minus one": math.MaxUint32,
	} {
		source := bytes.NewReader(append([]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, 0, 0}, make([]byte, 200)...))
		if _, data, err := ReadFrame(source, 100); err == nil || data != nil || source.Len() != 200 {
			t.Errorf("%s: %d bytes of data, error %v, %d bytes not read", name, len(data), err, source.Len())
		}
	}
}

func TestReadFrameCutShort(t *testing.T) {
	const whole = "\x00\x00\x00\x06\x00\x00\x00\x00OK"
	if _, _, err := ReadFrame(strings.NewReader(""), 100); err != io.EOF {
		t.Errorf("between frames: %v, want io.EOF", err)
	}
	for n := 1; n < len(whole); n++ {
		if _, _, err := ReadFrame(strings.NewReader(whole[:n]), 100); err == nil || errors.Is(err, io.EOF) && n > FrameHeaderSize {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// A frame that is read is within the limit and, appended, the bytes that were read.
func FuzzReadFrame(f *testing.F) {
	for _, golden := range goldenFrames {
		f.Add([]byte(golden.bytes), 64)
	}
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), 1<<20)
	f.Add([]byte("\x7f\xff\xff\xff\x00\x00\x00\x00"), 1<<10)
	f.Fuzz(func(t *testing.T, input []byte, limit int) {
		limit &= 1<<16 - 1
		source := bytes.NewReader(input)
		kind, data, err := ReadFrame(source, limit)
		if err != nil {
			return
		}
		taken := input[:len(input)-source.Len()]
		if len(data) > limit || !bytes.Equal(AppendFrame(nil, kind, data), taken) {
			t.Fatalf("frame %v of %d bytes, limit %d, from %q", kind, len(data), limit, taken)
		}
	})
}
