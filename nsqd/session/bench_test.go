package session

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"nsq/internal/protocol"
)

// BenchmarkDelivery is the way of a message from the broker through the layers of a connection to a
// client that finishes it. Bytes are those of the bodies, of which half can be compressed away.
func BenchmarkDelivery(b *testing.B) {
	for _, size := range []int{200, 10_000} {
		for _, by := range []transport{
			overTCP, overTLS, overSnappy, overDeflate,
			{network: "tcp", tls: true, compression: "snappy"}, {network: "tcp", tls: true, compression: "deflate"},
		} {
			b.Run(fmt.Sprintf("%s/%dB", strings.ReplaceAll(by.String(), " ", "+"), size), func(b *testing.B) { deliver(b, by, size) })
		}
	}
}

const (
	benchBatch = 100 // messages that are published, and finished, together
	benchAhead = 50  // batches that may wait in the channel
)

func deliver(b *testing.B, by transport, size int) {
	n := start(b, by, defaults(), nil)
	c := n.raw()
	c.send(protocol.Magic)
	if by.upgrades() {
		c.upgrade(nil)
	}
	in := bufio.NewReaderSize(c.raw, 64<<10)
	c.send("SUB t ch\n")
	if _, data, err := protocol.ReadFrame(in, 1<<16); err != nil || string(data) != "OK" {
		b.Fatalf("SUB is answered by %q, %v", data, err)
	}
	c.send("RDY 2500\n")

	b.SetBytes(int64(size))
	b.ResetTimer()
	room, published := make(chan struct{}, benchAhead), make(chan struct{})
	go func() {
		defer close(published)
		batch := bodies(size)
		for left := b.N; left > 0; left -= benchBatch {
			room <- struct{}{}
			n.publish("t", batch[:min(left, benchBatch)]...)
		}
	}()
	finish(b, c, in, room)
	<-published
}

// finish takes all messages and finishes each.
func finish(b *testing.B, c *conn, in io.Reader, room <-chan struct{}) {
	var frame []byte
	var fins []byte
	for taken := 1; taken <= b.N; taken++ {
		var header [8]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			b.Fatal(err)
		}
		length := int(binary.BigEndian.Uint32(header[:])) - 4
		frame = append(frame[:0], make([]byte, length)...)
		if _, err := io.ReadFull(in, frame); err != nil {
			b.Fatal(err)
		}
		if kind := header[7]; kind != byte(protocol.FrameMessage) {
			if string(frame) != protocol.ResponseHeartbeat {
				b.Fatalf("got %d %q", kind, frame)
			}
			taken--
			continue
		}
		fins = append(append(append(fins, "FIN "...), frame[10:26]...), '\n')
		if taken%benchBatch == 0 || taken == b.N {
			c.send(string(fins))
			fins = fins[:0]
			<-room
		}
	}
}

// bodies are a batch of messages that look like JSON with numbers.
func bodies(size int) []string {
	batch := make([]string, benchBatch)
	for i := range batch {
		var body strings.Builder
		for field := 0; body.Len() < size; field++ {
			fmt.Fprintf(&body, `{"field":%d,"value":%d},`, field, uint32(i*7919+field)*2654435761)
		}
		batch[i] = body.String()[:size]
	}
	return batch
}
