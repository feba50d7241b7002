package statsd

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"
)

const (
	// defaultPacketSize is that of datagrams where none is configured.
	defaultPacketSize = 4096
	// writeTimeout bounds the sending of a datagram where the system has no room for it.
	writeTimeout = time.Second
	// spare is the part of an interval in which nothing is sent.
	spare = time.Second
)

// pack cuts lines into datagrams of at most size bytes, as few as there can be without splitting a
// line or changing the order. A line that is longer has a datagram of its own. A size of 0 or less is
// the default. Datagrams share the memory of the lines.
func pack(lines []byte, size int) [][]byte {
	if size <= 0 {
		size = defaultPacketSize
	}
	var datagrams [][]byte
	used := 0 // by the datagram at the start of lines
	for used < len(lines) {
		line := bytes.IndexByte(lines[used:], '\n') + 1
		if line == 0 { // not ended
			line = len(lines) - used
		}
		if used > 0 && used+line > size {
			datagrams = append(datagrams, lines[:used])
			lines, used = lines[used:], 0
		}
		used += line
	}
	if used > 0 {
		datagrams = append(datagrams, lines)
	}
	return datagrams
}

// send sends the datagrams spread evenly over an interval, less a second, the first at once. Once the
// context is done those that remain are sent without pauses. One that cannot be sent does not keep
// back the others; the error says how many there were.
func send(ctx context.Context, conn net.Conn, datagrams [][]byte, interval time.Duration) error {
	var firstErr error
	failed := 0
	for i, datagram := range datagrams {
		if i > 0 {
			pause(ctx, (interval-spare)/time.Duration(len(datagrams)))
		}
		if err := write(conn, datagram); err != nil {
			failed++
			if firstErr == nil {
				firstErr = err
			}
		}
	}
	if firstErr != nil {
		return fmt.Errorf("send %d of %d datagrams: %w", failed, len(datagrams), firstErr)
	}
	return nil
}

func write(conn net.Conn, datagram []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	_, err := conn.Write(datagram)
	return err
}

// pause waits for d, which may be negative, or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
