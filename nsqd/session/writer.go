package session

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

const (
	outputBufferSize = 64 << 10
	// gatherSize is the body size from which on a message is sent from where it is, without a copy.
	gatherSize = 8 << 10
)

var (
	errWriterShut = errors.New("connection is closing")
	errNotTaken   = errors.New("client did not take what was sent in time")
)

// outputBuffers holds buffers that no connection needs at the moment: one has a buffer only while
// it has output.
var outputBuffers = sync.Pool{New: func() any { return new([outputBufferSize]byte) }}

// writer is the output side of a connection, shared by its read loop, the pump of its subscription
// and its heartbeat. Frames are never mixed. The first failure is kept and returned ever after.
type writer struct {
	mu     sync.Mutex // guards the following, and is held while writing
	conn   net.Conn   // the transport below all layers, for deadlines
	sink   io.Writer
	packer flusher // of a compressing sink; nil without one
	store  *[outputBufferSize]byte
	buf    []byte // in store
	limit  int    // bytes that may be buffered
	// timeout is how long a write may take; 0 is for ever.
	timeout time.Duration
	quiet   bool // no heartbeat may be written: the client waits for the answers of an upgrade
	err     error
}

// flusher is a layer that compresses: what was written to it leaves it at Flush.
type flusher interface{ Flush() error }

func (out *writer) init(conn net.Conn, timeout time.Duration) {
	out.conn, out.sink, out.limit, out.timeout = conn, conn, outputBufferSize, timeout
}

// configure sets what was negotiated.
func (out *writer) configure(limit int, timeout time.Duration) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.limit, out.timeout = min(max(limit, 1), outputBufferSize), timeout
}

// upgrade puts a layer between frames and connection. What is buffered has been flushed.
func (out *writer) upgrade(sink io.Writer, packer flusher) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.sink, out.packer = sink, packer
}

// frame appends a frame to the output. It is not sent before flush.
func (out *writer) frame(kind protocol.FrameType, data string) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.frameLocked(kind, data)
}

func (out *writer) frameLocked(kind protocol.FrameType, data string) error {
	if err := out.roomLocked(protocol.FrameHeaderSize + len(data)); err != nil {
		return err
	}
	out.buf = protocol.AppendFrame(out.buf, kind, data)
	return nil
}

// send is frame and flush.
func (out *writer) send(kind protocol.FrameType, data string) error {
	if err := out.frame(kind, data); err != nil {
		return err
	}
	return out.flush()
}

// beat writes and sends a heartbeat.
func (out *writer) beat() error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.quiet {
		return nil
	}
	if err := out.frameLocked(protocol.FrameResponse, protocol.ResponseHeartbeat); err != nil {
		return err
	}
	return out.writeLocked(nil)
}

// setQuiet holds heartbeats back, or lets them go again.
func (out *writer) setQuiet(quiet bool) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.quiet = quiet
}

// messages appends the frames of a batch to the output.
func (out *writer) messages(batch []broker.Message) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	for i := range batch {
		m := &batch[i]
		size := m.FrameSize()
		if size <= gatherSize {
			if err := out.roomLocked(size); err != nil {
				return err
			}
			out.buf = m.AppendFrame(out.buf)
			continue
		}
		if err := out.roomLocked(size - len(m.Body())); err != nil {
			return err
		}
		out.buf = m.AppendHead(out.buf)
		if err := out.writeLocked(m.Body()); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what is buffered.
func (out *writer) flush() error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.err != nil || out.store == nil {
		return out.err
	}
	return out.writeLocked(nil)
}

// roomLocked makes room for n bytes of a frame. A frame that can never fit has the buffer for
// itself and makes it grow.
func (out *writer) roomLocked(n int) error {
	if out.err == nil && len(out.buf) > 0 && len(out.buf)+n > out.limit {
		out.writeLocked(nil)
	}
	if out.err == nil && out.store == nil {
		out.store = outputBuffers.Get().(*[outputBufferSize]byte)
		out.buf = out.store[:0]
	}
	return out.err
}

// writeLocked sends what is buffered and a body behind it, and gives the buffer back.
func (out *writer) writeLocked(body []byte) error {
	if out.err == nil && out.timeout > 0 {
		out.err = out.conn.SetWriteDeadline(time.Now().Add(out.timeout))
	}
	if out.err == nil {
		out.err = out.sinkLocked(body)
	}
	if errors.Is(out.err, os.ErrDeadlineExceeded) && !errors.Is(out.err, errNotTaken) {
		out.err = fmt.Errorf("%w: %w", errNotTaken, out.err)
	}
	if out.store != nil {
		outputBuffers.Put(out.store)
	}
	out.store, out.buf = nil, nil
	return out.err
}

func (out *writer) sinkLocked(body []byte) error {
	if len(body) > 0 && out.sink == io.Writer(out.conn) {
		buffers := net.Buffers{out.buf, body}
		_, err := buffers.WriteTo(out.conn) // one system call
		return err
	}
	if _, err := out.sink.Write(out.buf); err != nil {
		return err
	}
	if len(body) > 0 {
		if _, err := out.sink.Write(body); err != nil {
			return err
		}
	}
	if out.packer != nil {
		return out.packer.Flush()
	}
	return nil
}

// shut lets nothing more be written, and ends a write that is under way.
func (out *writer) shut() error {
	err := out.conn.SetWriteDeadline(time.Unix(1, 0))
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.err == nil {
		out.err = errWriterShut
	}
	return err
}
