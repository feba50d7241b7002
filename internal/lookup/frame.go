package lookup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// lengthSize is that of the length before a body or an answer.
const lengthSize = 4

// AppendFrame appends length and data to dst; that is how answers and bodies look on the wire.
func AppendFrame[T string | []byte](dst []byte, data T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	return append(dst, data...)
}

// ReadAnswer reads one answer of a nsqlookupd, of at most limit bytes. Memory grows with what arrives,
// not with what is promised.
func ReadAnswer(r io.Reader, limit int) ([]byte, error) {
	size, err := readLength(r)
	if err != nil {
		return nil, fmt.Errorf("read answer length: %w", err)
	}
	if size < 0 {
		return nil, fmt.Errorf("response body size (%d) is negative", size)
	}
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("response body size (%d) is greater than limit (%d)", size, limit)
	}
	var answer bytes.Buffer
	if _, err := io.CopyN(&answer, r, int64(size)); err != nil {
		return nil, fmt.Errorf("read answer: %w", unexpected(err))
	}
	return answer.Bytes(), nil
}

func readLength(r io.Reader) (int32, error) {
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(length[:])), nil
}

// unexpected is for an end in the middle of something announced.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
