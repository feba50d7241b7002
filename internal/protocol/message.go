package protocol

import (
	"encoding/binary"
	"fmt"
)

// The data of a message frame, which is also the record of a message in a disk queue:
//
//	timestamp   8 bytes   nanoseconds since the Unix epoch, signed, taken at publish
//	attempts    2 bytes   deliveries so far
//	id         16 bytes   lower-case hex
//	body        n bytes
//
// Source: nsqd-tcp spec, section 2.3; nsqd-storage spec, section 6.
const (
	IDSize            = 16
	MessageHeaderSize = 8 + 2 + IDSize

	attemptsOffset = 8
	idOffset       = 10
)

// ID names a message within an nsqd. Clients treat it as opaque bytes.
type ID [IDSize]byte

const hexDigits = "0123456789abcdef"

// hexPairs holds the two digits of every byte.
var hexPairs = func() (pairs [256][2]byte) {
	for i := range pairs {
		pairs[i] = [2]byte{hexDigits[i>>4], hexDigits[i&15]}
	}
	return pairs
}()

// PutID writes the 16 hex digits of n to dst, which must have room for them.
func PutID(dst []byte, n uint64) {
	_ = dst[IDSize-1]
	for i := range 8 {
		pair := hexPairs[byte(n>>(56-8*i))]
		dst[2*i], dst[2*i+1] = pair[0], pair[1]
	}
}

// PutMessageHeader writes timestamp, attempts and id to the first MessageHeaderSize bytes of dst.
func PutMessageHeader(dst []byte, timestamp int64, attempts uint16, id uint64) {
	_ = dst[MessageHeaderSize-1]
	binary.BigEndian.PutUint64(dst, uint64(timestamp))
	binary.BigEndian.PutUint16(dst[attemptsOffset:], attempts)
	PutID(dst[idOffset:], id)
}

// PutAttempts overwrites the attempts of a record.
func PutAttempts(record []byte, attempts uint16) {
	binary.BigEndian.PutUint16(record[attemptsOffset:], attempts)
}

// Message is a decoded record; Body points into it.
type Message struct {
	Timestamp int64 // nanoseconds since the Unix epoch
	Attempts  uint16
	ID        ID
	Body      []byte
}

// DecodeMessage reads a record. One without at least a whole header is an error.
func DecodeMessage(record []byte) (Message, error) {
	if len(record) < MessageHeaderSize {
		return Message{}, fmt.Errorf("invalid message buffer size (%d)", len(record))
	}
	return Message{
		Timestamp: int64(binary.BigEndian.Uint64(record)),
		Attempts:  binary.BigEndian.Uint16(record[attemptsOffset:]),
		ID:        ID(record[idOffset:]),
		Body:      record[MessageHeaderSize:],
	}, nil
}
