package broker

import (
	"encoding/binary"

	"nsq/internal/protocol"
)

// Message is one entry of a queue: a small value that points to a frame. The frame is built once,
// at publish, and shared by all channels; it is never written to after that. What differs from
// place to place is in the value: attempts, and the delay that a deferred publish still has to run.
//
// A frame is what goes to the consumer, and its tail is what goes to disk:
//
//	size 4 | type 4 | timestamp 8 | attempts 2 | id 16 | body
//	         record of the disk queue: ^^^^^^^^^^^^^^^^^^^^^
type Message struct {
	chunk    *chunk
	off      uint32
	size     uint32 // of the frame
	delay    uint32 // milliseconds, counted from the hand-over to a channel; 0 but for a deferred publish
	attempts uint16 // deliveries so far
}

// chunk is memory that the frames of one batch share.
type chunk struct{ buf []byte }

const (
	// FrameOverhead is how many bytes a frame has before the body.
	FrameOverhead = protocol.FrameHeaderSize + protocol.MessageHeaderSize

	maxChunk    = 64 << 10
	leastChunk  = 4 << 10
	maxAttempts = 1<<16 - 1
)

func (m *Message) frame() []byte { return m.chunk.buf[m.off : m.off+m.size] }

// record is the message as a disk queue holds it, with the attempts of the frame.
func (m *Message) record() []byte { return m.frame()[protocol.FrameHeaderSize:] }

// id returns the name of the message.
func (m *Message) id() protocol.ID {
	return protocol.ID(m.frame()[FrameOverhead-protocol.IDSize:])
}

// timestamp is when the message was published, in nanoseconds since the Unix epoch.
func (m *Message) timestamp() int64 { return int64(binary.BigEndian.Uint64(m.record())) }

// Attempts is how often the message has been delivered, this time included.
func (m *Message) Attempts() uint16 { return m.attempts }

// AppendHead appends the frame without the body, which Body returns: for one that is too large to copy.
func (m *Message) AppendHead(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, m.frame()[:FrameOverhead]...)
	protocol.PutAttempts(dst[start+protocol.FrameHeaderSize:], m.attempts)
	return dst
}

// Body is what the publisher sent. It must not be changed.
func (m *Message) Body() []byte { return m.frame()[FrameOverhead:] }

// FrameSize is the number of bytes that AppendFrame appends.
func (m *Message) FrameSize() int { return int(m.size) }

// AppendFrame appends the message as a frame of the V2 protocol, with its attempts.
func (m *Message) AppendFrame(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, m.frame()...)
	protocol.PutAttempts(dst[start+protocol.FrameHeaderSize:], m.attempts)
	return dst
}

// appendRecord appends the message as a record of a disk queue, with its attempts.
func (m *Message) appendRecord(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, m.record()...)
	protocol.PutAttempts(dst[start:], m.attempts)
	return dst
}

// alone returns the message in memory of its own, for one that is going to stay: it would keep
// the whole chunk of its batch alive.
func (m Message) alone() Message {
	if len(m.chunk.buf) < 2*int(m.size) {
		return m
	}
	m.chunk = &chunk{buf: append([]byte(nil), m.frame()...)}
	m.off = 0
	return m
}

// Batch collects messages that are published together. The zero Batch is empty and ready.
// It belongs to one goroutine; after Publish its messages belong to the topic, and Reset makes it
// ready for others.
type Batch struct {
	messages []Message
	bodies   int64  // bytes
	chunk    *chunk // the open one
	used     int    // bytes of it
	next     int    // size of the chunk after it
	onDisk   bool   // the messages were taken from an overflow
	taken    int    // messages that their queue counts until they have arrived elsewhere
}

// Len is the number of messages.
func (b *Batch) Len() int { return len(b.messages) }

// Expect says how many bytes of frames are going to come, to choose the size of chunks.
func (b *Batch) Expect(bytes int) { b.next = min(max(bytes, b.next), maxChunk) }

// Add appends a message of size bytes and returns the place for its body.
func (b *Batch) Add(size int) []byte {
	need := FrameOverhead + size
	if b.chunk == nil || len(b.chunk.buf)-b.used < need {
		b.open(need)
	}
	frame := b.chunk.buf[b.used : b.used+need : b.used+need]
	binary.BigEndian.PutUint32(frame, uint32(need-4))
	binary.BigEndian.PutUint32(frame[4:], uint32(protocol.FrameMessage))
	b.messages = append(b.messages, Message{chunk: b.chunk, off: uint32(b.used), size: uint32(need)})
	b.used += need
	b.bodies += int64(size)
	return frame[FrameOverhead:]
}

// open begins a chunk that has room for a frame of need bytes. Chunks begin at the size of a
// single message and grow while a batch does, so that a lone message never pins more than itself.
func (b *Batch) open(need int) {
	size := max(need, b.next)
	b.chunk, b.used = &chunk{buf: make([]byte, size)}, 0
	b.next = min(max(2*size, leastChunk), maxChunk)
}

// Defer gives the message added last a delay in milliseconds.
func (b *Batch) Defer(delay uint32) { b.messages[len(b.messages)-1].delay = delay }

// DropLast takes back the message added last, whose body did not come.
func (b *Batch) DropLast() {
	last := &b.messages[len(b.messages)-1]
	b.bodies -= int64(last.size) - FrameOverhead
	*last = Message{}
	b.messages = b.messages[:len(b.messages)-1]
}

// Reset forgets the messages.
func (b *Batch) Reset() {
	clear(b.messages)
	*b = Batch{messages: b.messages[:0]}
	if cap(b.messages) > 4096 {
		b.messages = nil
	}
}

// stamp gives every message a timestamp and an id.
func (b *Batch) stamp(timestamp int64, ids idRun) {
	for i := range b.messages {
		record := b.messages[i].record()
		protocol.PutMessageHeader(record, timestamp, 0, ids.next())
	}
}

// decodeRecord makes a message of a record that came from a disk queue.
func (b *Batch) decodeRecord(record []byte) error {
	decoded, err := protocol.DecodeMessage(record)
	if err != nil {
		return err
	}
	b.Add(len(decoded.Body))
	m := &b.messages[len(b.messages)-1]
	copy(m.record(), record)
	m.attempts = decoded.Attempts
	return nil
}
