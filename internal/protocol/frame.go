package protocol

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Magic is what a V2 client sends first.
const Magic = "  V2"

// FrameType says what a frame from nsqd carries.
type FrameType int32

// The frame types of V2.
const (
	FrameResponse FrameType = 0
	FrameError    FrameType = 1
	FrameMessage  FrameType = 2
)

// The responses that are not JSON.
const (
	ResponseOK        = "OK"
	ResponseHeartbeat = "_heartbeat_"
	ResponseCloseWait = "CLOSE_WAIT"
)

// FrameHeaderSize is the length of what stands before a frame's data: size and type.
//
//	size      4 bytes   4 + length of the data
//	type      4 bytes
//	data
//
// Source: nsqd-tcp spec, section 2.2.
const FrameHeaderSize = 8

// AppendFrame appends a whole frame to dst.
func AppendFrame[T string | []byte](dst []byte, kind FrameType, data T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)+4))
	dst = binary.BigEndian.AppendUint32(dst, uint32(kind))
	return append(dst, data...)
}

// ReadFrame reads one frame, as a client does. A frame whose data would be longer than limit bytes,
// or whose size is less than its type's 4 bytes, is an error, and none of it is read or allocated.
func ReadFrame(r io.Reader, limit int) (FrameType, []byte, error) {
	var header [FrameHeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	size := int64(int32(binary.BigEndian.Uint32(header[:4]))) - 4
	if size < 0 || size > int64(limit) {
		return 0, nil, fmt.Errorf("frame of %d bytes of data, want 0 to %d", size, limit)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, fmt.Errorf("read frame data: %w", err)
	}
	return FrameType(binary.BigEndian.Uint32(header[4:])), data, nil
}
