package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"nsq/internal/protocol"
)

// ok is the frame of the most frequent response, as it is on the wire.
const ok = "\x00\x00\x00\x06\x00\x00\x00\x00OK"

// conn is a client's end of a connection, and the words in which tests talk about it. What arrives is
// read at once, by a goroutine of its own.
type conn struct {
	t    testing.TB
	node *node
	raw  net.Conn  // below all layers
	out  io.Writer // what is written arrives without a flush
	in   *inbox
}

// raw connects without a magic and without layers.
func (n *node) raw() *conn {
	n.t.Helper()
	raw, err := n.connect()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { raw.Close() })
	c := &conn{t: n.t, node: n, raw: raw, out: raw}
	return c
}

// dial connects and goes through the upgrades of the transport. The members go into the
// IDENTIFY; without any, and without an upgrade, none is sent.
func (n *node) dial(members ...string) *conn {
	n.t.Helper()
	c := n.raw()
	c.send(protocol.Magic)
	if n.transport.upgrades() {
		c.upgrade(members)
	}
	c.listen()
	if len(members) > 0 && !n.transport.upgrades() {
		c.send(identify("{" + strings.Join(members, ",") + "}"))
		c.wantOK(1)
	}
	return c
}

// subscribe is dial, SUB and RDY.
func (n *node) subscribe(topic, channel string, ready int, members ...string) *conn {
	n.t.Helper()
	c := n.dial(members...)
	c.send("SUB " + topic + " " + channel + "\n")
	c.wantOK(1)
	c.send(fmt.Sprintf("RDY %d\n", ready))
	c.node.eventuallyReady(topic, channel, ready)
	return c
}

// eventuallyReady waits until a client of the channel has this window.
func (n *node) eventuallyReady(topic, channel string, ready int) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("RDY %d", ready), func() bool {
		for _, client := range n.sessions.Clients() {
			if client.Topic == topic && client.Channel == channel && client.ReadyCount == int64(ready) {
				return true
			}
		}
		return false
	})
}

// listen begins to read.
func (c *conn) listen() *conn { return c.listenTo(c.raw) }

func (c *conn) listenTo(source io.Reader) *conn {
	c.in = &inbox{more: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.in.readFrom(source)
	}()
	c.t.Cleanup(func() {
		c.raw.Close()
		<-done
	})
	return c
}

func (c *conn) send(text string) {
	c.t.Helper()
	if err := c.trySend(text); err != nil {
		c.t.Fatalf("send %.60q: %v", text, err)
	}
}

func (c *conn) trySend(text string) error {
	if err := c.raw.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := io.WriteString(c.out, text)
	return err
}

// wantBytes takes exactly these bytes.
func (c *conn) wantBytes(want string) {
	c.t.Helper()
	got, err := c.in.take(len(want), patience)
	if err != nil || got != want {
		c.t.Fatalf("got  %q, %v\nwant %q", got, err, want)
	}
}

// wantFrame takes a frame with these data.
func (c *conn) wantFrame(kind protocol.FrameType, data string) {
	c.t.Helper()
	c.wantBytes(frame(kind, data))
}

func (c *conn) wantOK(n int) {
	c.t.Helper()
	c.wantBytes(strings.Repeat(ok, n))
}

func (c *conn) wantResponse(data string) {
	c.t.Helper()
	c.wantFrame(protocol.FrameResponse, data)
}

func (c *conn) wantError(data string) {
	c.t.Helper()
	c.wantFrame(protocol.FrameError, data)
}

// wantFatal takes an error and the end of the connection.
func (c *conn) wantFatal(data string) {
	c.t.Helper()
	c.wantError(data)
	c.wantClosed()
}

// wantMessage takes a message, of which time and id are not known, and returns the id.
func (c *conn) wantMessage(attempts uint16, body string) (id string) {
	c.t.Helper()
	whole := frame(protocol.FrameMessage, strings.Repeat("-", 8)+string(binary.BigEndian.AppendUint16(nil, attempts))+strings.Repeat("-", 16)+body)
	got, err := c.in.take(len(whole), patience)
	if err != nil {
		c.t.Fatalf("waiting for message %.60q: got %.200q, %v", body, got, err)
	}
	if got[:8] != whole[:8] || got[16:18] != whole[16:18] || got[34:] != body {
		c.t.Fatalf("got  %.200q\nwant message %.60q, attempts %d", got, body, attempts)
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64([]byte(got[8:16]))))
	if age := time.Since(at); age < 0 || age > time.Hour {
		c.t.Errorf("message %.60q is from %v", body, at)
	}
	id = got[18:34]
	if strings.Trim(id, "0123456789abcdef") != "" {
		c.t.Errorf("message %.60q has the id %q", body, id)
	}
	return id
}

// wantNothing says that nothing comes: in a bubble for a while, else before the answer to a
// publish, which is possible in every state.
func (c *conn) wantNothing() {
	c.t.Helper()
	if c.node.transport.network == "pipe" {
		time.Sleep(400 * time.Millisecond)
		c.wantQuiet()
		return
	}
	c.send("PUB probe\n\x00\x00\x00\x01x")
	c.wantOK(1)
}

// wantQuiet says that nothing is there, in a bubble.
func (c *conn) wantQuiet() {
	c.t.Helper()
	settled()
	if rest, err := c.in.peek(); rest != "" || err != nil {
		c.t.Fatalf("got %.200q, %v, want nothing", rest, err)
	}
}

// wantClosed says that the connection ends, with nothing before its end, and not by a reset.
func (c *conn) wantClosed() {
	c.t.Helper()
	got, err := c.in.take(1, patience)
	switch {
	case err == nil, got != "":
		c.t.Fatalf("got %q, want the end of the connection", got)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // what the end looks like through a layer
	default:
		c.t.Fatalf("got %v, want the end of the connection", err)
	}
}

// frame takes any frame.
func (c *conn) frame() (kind protocol.FrameType, data string) {
	c.t.Helper()
	header, err := c.in.take(8, patience)
	if err != nil {
		c.t.Fatalf("waiting for a frame: %v", err)
	}
	size := binary.BigEndian.Uint32([]byte(header))
	if data, err = c.in.take(int(size)-4, patience); err != nil {
		c.t.Fatalf("waiting for %d bytes of a frame: %v", size-4, err)
	}
	return protocol.FrameType(header[7]), data
}

// frame is built here by hand, so that the one under test is not compared with itself.
func frame(kind protocol.FrameType, data string) string {
	return sized("\x00\x00\x00" + string(rune(kind)) + data)
}

// sized puts its size before a text.
func sized(text string) string {
	n := len(text)
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + text
}

func identify(body string) string { return "IDENTIFY\n" + sized(body) }

func pub(topic, body string) string { return "PUB " + topic + "\n" + sized(body) }

func dpub(topic, delay, body string) string {
	return "DPUB " + topic + " " + delay + "\n" + sized(body)
}

// mpub is a correct MPUB.
func mpub(topic string, bodies ...string) string {
	all := sized(strings.Repeat("x", len(bodies)))[:4]
	for _, body := range bodies {
		all += sized(body)
	}
	return "MPUB " + topic + "\n" + sized(all)
}

var errNotInTime = errors.New("not in time")

// inbox is what has arrived and was not taken.
type inbox struct {
	more chan struct{} // one slot: something changed

	mu  sync.Mutex
	buf []byte
	err error
}

func (in *inbox) readFrom(source io.Reader) {
	p := make([]byte, 64<<10)
	for {
		n, err := source.Read(p)
		in.mu.Lock()
		in.buf = append(in.buf, p[:n]...)
		if err != nil {
			in.err = err
		}
		in.mu.Unlock()
		select {
		case in.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// take waits for n bytes. With an error it returns what there was.
func (in *inbox) take(n int, limit time.Duration) (string, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		in.mu.Lock()
		have, err := min(n, len(in.buf)), in.err
		if len(in.buf) >= n {
			err = nil
		}
		if have == n || err != nil {
			defer in.mu.Unlock()
			taken := string(in.buf[:have])
			in.buf = in.buf[have:]
			return taken, err
		}
		in.mu.Unlock()
		select {
		case <-in.more:
		case <-timer.C:
			rest, _ := in.peek()
			return rest, fmt.Errorf("%w: %w", errNotInTime, os.ErrDeadlineExceeded)
		}
	}
}

// peek returns what can be taken.
func (in *inbox) peek() (string, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return string(in.buf), in.err
}

// wantAfter says how much time has passed since then, which is exact in a bubble.
func wantAfter(t testing.TB, since time.Time, least, most time.Duration) {
	t.Helper()
	if passed := time.Since(since); passed < least || passed > most {
		t.Errorf("after %v, want %v to %v", passed, least, most)
	}
}
