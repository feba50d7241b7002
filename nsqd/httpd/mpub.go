package httpd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// readLines adds a message for every line that is not empty.
//
// Source: nsqd-http spec, section 8.1.
func readLines(batch *broker.Batch, r *bufio.Reader, limits protocol.MPubLimits) error {
	lines := lineReader{src: r, limits: limits}
	for {
		line, last, err := lines.next()
		if err != nil {
			return err
		}
		if len(line) > 0 {
			copy(batch.Add(len(line)), line)
		}
		if last {
			return nil
		}
	}
}

// lineReader splits a body at its newlines.
type lineReader struct {
	src    *bufio.Reader
	limits protocol.MPubLimits
	taken  int64  // bytes, newlines included
	long   []byte // the line that src's buffer could not hold
}

// next returns a line without its newline, valid until the next call. The limits are looked at
// where a line ends, as that decides which one is reported; a line that is too long is read to its
// end but not kept.
func (l *lineReader) next() (line []byte, last bool, err error) {
	l.long = l.long[:0]
	length := int64(0)
	for {
		part, err := l.src.ReadSlice('\n')
		l.taken += int64(len(part))
		part = bytes.TrimSuffix(part, []byte("\n"))
		inPieces := length > 0 || errors.Is(err, bufio.ErrBufferFull)
		length += int64(len(part))
		if inPieces && length <= l.limits.MaxMessage {
			l.long = append(l.long, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, false, fmt.Errorf("read request body: %w", err)
		case l.taken > l.limits.MaxBody:
			return nil, false, errBodyTooBig
		case length > l.limits.MaxMessage:
			return nil, false, errMsgTooBig
		}
		if inPieces {
			part = l.long
		}
		return part, err != nil, nil
	}
}

// readBinary adds the messages of a body that has the form of a MPUB, and returns how many bytes it
// took. What follows the last message is ignored.
//
// Source: nsqd-http spec, section 8.2.
func readBinary(batch *broker.Batch, r *bufio.Reader, limits protocol.MPubLimits) (taken int64, err error) {
	// The body ends where it ends: its length may not be known.
	source := mpubSource{r, scratch.Get().(*bytes.Buffer)}
	defer releaseScratch(source.arrived)
	taken, fault := protocol.ReadMPub(source, math.MaxInt64, limits, batch.Add)
	switch {
	case fault == nil:
		return taken, nil
	case fault.Code == protocol.CodeBadBody: // the count
		return taken, errBadBody
	}
	return taken, errBadMessage
}

// mpubSource is a protocol.MPubSource that believes no size above trusted: a larger message has to
// arrive before it gets its place in the batch.
type mpubSource struct {
	*bufio.Reader
	arrived *bytes.Buffer // the larger message, empty if there is none
}

// ReadSize implements protocol.MPubSource.
func (s mpubSource) ReadSize() (int32, error) {
	size, err := s.Peek(4)
	if err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(size))
	_, err = s.Discard(4)
	return n, err
}

// Await implements protocol.MPubSource.
func (s mpubSource) Await(n int) error {
	if n <= trusted {
		return nil
	}
	_, err := io.CopyN(s.arrived, s.Reader, int64(n))
	return err
}

// ReadFull implements protocol.MPubSource.
func (s mpubSource) ReadFull(p []byte) error {
	if s.arrived.Len() > 0 {
		_, err := io.ReadFull(s.arrived, p) // all of it: the buffer is empty again
		return err
	}
	_, err := io.ReadFull(s.Reader, p)
	return err
}
