package protocol

import "encoding/binary"

// The body of an MPUB, over TCP as over HTTP:
//
//	count      4 bytes   signed
//	count times:
//	  size     4 bytes   signed
//	  message  size bytes
//
// Source: nsqd-tcp spec, section 14.3; nsqd-http spec, section 8.2.
const (
	mpubCountSize   = 4
	mpubLeastRecord = 4 + 1 // a size and a message of one byte
)

// MPubSource is where the bytes of an MPUB body come from.
type MPubSource interface {
	// ReadSize reads a signed 32-bit number.
	ReadSize() (int32, error)
	// Await returns when enough has arrived that memory may be reserved for n bytes more.
	Await(n int) error
	// ReadFull fills p.
	ReadFull(p []byte) error
}

// MPubLimits bound what an MPUB may ask for.
type MPubLimits struct {
	MaxBody    int64 // bytes of the whole body; bounds the count
	MaxMessage int64 // bytes of one message
}

// ReadMPub reads the body of an MPUB of size bytes, count first, and returns how many bytes it
// took. For each message it asks place for room of the message's length and fills it; nothing is
// asked for that the rest of the body could not hold. The errors are those of the table; whether
// bytes of the body may be left over is the caller's to say.
func ReadMPub(source MPubSource, size int64, limits MPubLimits, place func(size int) []byte) (taken int64, fault *Error) {
	name := OpMPub.String()
	if size < mpubCountSize {
		return 0, FaultReadMessageCount.With(name)
	}
	count, err := source.ReadSize()
	if err != nil {
		return 0, FaultReadMessageCount.With(name)
	}
	if count <= 0 || int64(count) > (limits.MaxBody-mpubCountSize)/mpubLeastRecord {
		return mpubCountSize, FaultMessageCount.With(name, count)
	}
	taken = mpubCountSize
	for i := range count {
		if size-taken < 4 {
			return taken, FaultBodySizeMismatch.With(name, size, count)
		}
		length, err := source.ReadSize()
		if err != nil {
			return taken, FaultReadMPubSize.With(name, i)
		}
		taken += 4
		switch {
		case length <= 0:
			return taken, FaultMPubMessageSize.With(name, i, length)
		case int64(length) > limits.MaxMessage:
			return taken, FaultMessageTooBig.With(name, length, limits.MaxMessage)
		case int64(length) > size-taken:
			return taken, FaultBodySizeMismatch.With(name, size, count)
		}
		if err := source.Await(int(length)); err != nil {
			return taken, FaultReadMessage.With(name)
		}
		if err := source.ReadFull(place(int(length))); err != nil {
			return taken, FaultReadMessage.With(name)
		}
		taken += int64(length)
	}
	return taken, nil
}

// AppendMPub appends the body of an MPUB of these messages to dst, as a client does.
func AppendMPub(dst []byte, messages [][]byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(messages)))
	for _, m := range messages {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(m)))
		dst = append(dst, m...)
	}
	return dst
}
