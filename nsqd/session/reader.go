package session

import (
	"encoding/binary"
	"errors"
	"io"

	"nsq/internal/protocol"
)

const (
	leastReadBuffer = 4 << 10
	maxReadBuffer   = 64 << 10
	// trustedSize is how much memory a peer's word alone makes us reserve. For what is announced to
	// be larger, that much must have arrived first.
	trustedSize = maxReadBuffer

	sizeLength = 4 // bytes of the length of what follows
)

var errLineTooLong = errors.New("command line too long")

// reader is the input side of a connection: a buffer that begins small and grows with the traffic.
// It belongs to the connection's read loop. Slices that it returns are valid until the next call
// that may read.
type reader struct {
	source io.Reader
	// beforeRead is called before each read, which may block: nothing that the peer waits for may
	// be held back then.
	beforeRead func() error
	// arrived is how many bytes lie ready in a layer below the source, nil without one. A layer that
	// unpacks gives back one piece a read, and pieces that came together are acted on together.
	arrived func() int

	buf  []byte
	r, w int // buf[r:w] has been read and not taken
}

func (in *reader) buffered() int { return in.w - in.r }

// waits says whether the next read may have to wait for the peer.
func (in *reader) waits() bool { return in.arrived == nil || in.arrived() == 0 }

// prepare is beforeRead, where it is needed.
func (in *reader) prepare() error {
	if !in.waits() {
		return nil
	}
	return in.beforeRead()
}

// line takes a whole line out of the buffer. It returns false where the buffer holds none yet.
func (in *reader) line() (line []byte, ok bool, err error) {
	line, n := protocol.CutLine(in.buf[in.r:in.w])
	if n > protocol.MaxLineLength || n == 0 && in.buffered() >= protocol.MaxLineLength {
		return nil, false, errLineTooLong
	}
	in.r += n
	return line, n > 0, nil
}

// fill reads once, for at least one byte more.
func (in *reader) fill() error {
	if err := in.prepare(); err != nil {
		return err
	}
	filled := in.w == len(in.buf) // by the last read: more is to come
	switch {
	case in.r == in.w:
		in.r, in.w = 0, 0
	case filled:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	if filled && len(in.buf) < maxReadBuffer {
		in.grow()
	}
	n, err := in.source.Read(in.buf[in.w:])
	in.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// grow makes more room in a buffer that the last read had filled.
func (in *reader) grow() {
	size := min(max(2*len(in.buf), leastReadBuffer), maxReadBuffer)
	in.buf = append(make([]byte, 0, size), in.buf[:in.w]...)[:size]
}

// await returns when n bytes are buffered; n is at most maxReadBuffer.
func (in *reader) await(n int) error {
	for in.buffered() < n {
		if err := in.fill(); err != nil {
			return err
		}
	}
	return nil
}

// ReadSize takes a signed 32-bit number.
func (in *reader) ReadSize() (int32, error) {
	n, err := in.peekSize()
	if err == nil {
		in.r += sizeLength
	}
	return n, err
}

// peekSize is ReadSize that leaves the number where it is.
func (in *reader) peekSize() (int32, error) {
	if err := in.await(sizeLength); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(in.buf[in.r:])), nil
}

// Await returns when it is safe to reserve memory for n bytes that the peer has announced.
func (in *reader) Await(n int) error {
	if n <= trustedSize {
		return nil
	}
	return in.await(trustedSize)
}

// ReadFull fills p; what is not buffered yet goes straight to its place where it is large.
func (in *reader) ReadFull(p []byte) error {
	for {
		n := copy(p, in.buf[in.r:in.w])
		in.r += n
		p = p[n:]
		if len(p) == 0 {
			return nil
		}
		if len(p) >= len(in.buf) && len(in.buf) > 0 {
			return in.readInto(p)
		}
		if err := in.fill(); err != nil {
			return err
		}
	}
}

// readInto fills p from the source; the buffer is empty.
func (in *reader) readInto(p []byte) error {
	for len(p) > 0 {
		if err := in.prepare(); err != nil {
			return err
		}
		n, err := in.source.Read(p)
		p = p[n:]
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return err
		}
	}
	return nil
}

// takeBuffered returns a copy of what is buffered and forgets it.
func (in *reader) takeBuffered() []byte {
	left := append([]byte(nil), in.buf[in.r:in.w]...)
	in.r, in.w = 0, 0
	return left
}
