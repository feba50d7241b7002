package session

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"nsq/internal/auth"
	"nsq/internal/log"
	"nsq/internal/netserver"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// lastWords is how long the frame of a fatal error may take to be written.
const lastWords = time.Second

// maxBatch is how many commands are acted on together at most.
const maxBatch = 256

// client is one connection. Fields without a word belong to its read loop.
type client struct {
	server  *Server
	conn    net.Conn // the transport below all layers
	addr    string
	started time.Time

	in  reader
	out writer // shared

	deadline time.Time // when the read deadline was set
	heard    bool      // a command came since then

	state     atomic.Int32             // written by the read loop, see states
	settings  atomic.Pointer[settings] // written by the read loop
	named     atomic.Bool              // IDENTIFY came; written by the read loop
	consumer  atomic.Pointer[broker.Subscription]
	tls       atomic.Pointer[tls.ConnectionState] // nil without TLS
	rights    atomic.Pointer[auth.Keeper]         // nil without AUTH; written by the read loop
	permitted permitted
	heartbeat *time.Timer // its callback writes the frame
	unwatch   func()      // ends the checks of a subscription's rights; nil without them

	ending  atomic.Bool                    // the read loop is closing the connection
	reason  atomic.Value                   // closeReason: why another part has closed it
	revoked atomic.Pointer[protocol.Error] // what the read loop is to end with; nil without

	// Commands that came together and are acted on together: publishes to one topic, or FINs.
	batch     broker.Batch
	batchKind batchKind
	topic     *broker.Topic // of the batch and, as long as it is there, of the next PUB
	published *atomic.Uint64
	fins      []protocol.ID

	mu        sync.Mutex // guards the following
	pubCounts map[string]*atomic.Uint64
}

type closeReason struct{ error }

// batchKind is what the publishes of one batch have in common.
type batchKind struct {
	op       protocol.Op
	deferred bool
}

// errPanic is why the connection ends where the loop does not return.
var errPanic = errors.New("panic")

// run serves the connection until its end, which a panic does not prevent.
func (c *client) run() {
	err := errPanic
	defer func() { c.end(err) }()
	err = c.loop()
}

// end closes the connection and gives back what the client had in flight.
func (c *client) end(err error) {
	c.ending.Store(true)
	c.heartbeat.Stop()
	if c.unwatch != nil {
		c.unwatch()
	}
	if revoked := c.revoked.Load(); revoked != nil {
		err = revoked
	}

	var fault *protocol.Error
	if errors.As(err, &fault) {
		c.say(fault)
	} else {
		c.conn.Close() // ends whatever the pump is writing
	}
	if s := c.consumer.Load(); s != nil {
		if err := s.Close(); err != nil {
			c.server.config.Logger.Errorf("client(%s) failed to leave channel - %s", c.addr, err)
		}
	}
	if fault != nil {
		netserver.HangUp(c.conn)
	}
	c.logEnd(err)
}

// say writes the frame of a fatal error, the last one of the connection.
func (c *client) say(fault *protocol.Error) {
	c.conn.SetWriteDeadline(time.Now().Add(lastWords)) // for a write that is under way
	c.out.configure(outputBufferSize, lastWords)
	if err := c.out.send(protocol.FrameError, fault.Error()); err != nil {
		c.server.config.Logger.Debugf("client(%s) failed to send error - %s", c.addr, err)
	}
	c.out.shut()
}

// logEnd says why the connection ended.
func (c *client) logEnd(err error) {
	if reason, ok := c.reason.Load().(closeReason); ok {
		err = reason.error
	}
	level := log.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, broker.ErrExiting):
		level = log.Info
	case errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errNotTaken):
		err = fmt.Errorf("nothing heard for two heartbeat intervals: %w", err)
	}
	c.server.config.Logger.Logf(level, "client(%s) - %s", c.addr, err)
}

// loop acts on commands until the connection ends, and returns why. A *protocol.Error is to be
// told to the client.
func (c *client) loop() error {
	for {
		line, ok, err := c.in.line()
		if errors.Is(err, errLineTooLong) {
			return c.settled(protocol.FaultLineTooLong.With(protocol.MaxLineLength))
		}
		if err != nil {
			return err
		}
		if !ok {
			if c.in.waits() {
				if err := c.settle(); err != nil {
					return err
				}
			}
			if err := c.in.fill(); err != nil {
				return err
			}
			continue
		}
		c.heard = true
		cmd := protocol.ParseCommand(line)
		if err := c.dispatch(&cmd); err != nil {
			return err
		}
	}
}

// beforeRead sends everything that the client may be waiting for, and moves the read deadline. The
// deadline counts from a command, not from a part of one, and is not moved for each.
func (c *client) beforeRead() error {
	if err := c.out.flush(); err != nil {
		return err
	}
	if err := c.moveDeadline(); err != nil {
		return err
	}
	if revoked := c.revoked.Load(); revoked != nil { // its deadline has just been replaced, perhaps
		return revoked
	}
	return nil
}

func (c *client) moveDeadline() error {
	interval := c.settings.Load().heartbeat
	if !c.heard || interval == 0 {
		return nil
	}
	now, slack := time.Now(), min(interval/8, time.Second)
	if now.Sub(c.deadline) < slack {
		return nil
	}
	c.heard, c.deadline = false, now
	return c.conn.SetReadDeadline(now.Add(2*interval + slack))
}

// settle acts on the commands that were collected, and answers them in order.
func (c *client) settle() error {
	if c.batch.Len() > 0 {
		return c.settlePublishes()
	}
	if len(c.fins) > 0 {
		return c.settleFins()
	}
	return nil
}

// respond writes a response that is sent before the next read.
func (c *client) respond(data string) error { return c.out.frame(protocol.FrameResponse, data) }

func (c *client) respondJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	return c.respond(string(data))
}

// readBody reads the body of a command that is not a message. Memory is reserved as it comes.
func (c *client) readBody(op protocol.Op) ([]byte, error) {
	name, limit := op.String(), c.server.config.Limits.MaxBodySize
	size, err := c.in.ReadSize()
	switch {
	case err != nil:
		return nil, c.short(err, protocol.FaultReadBodySize.With(name))
	case int64(size) > limit:
		return nil, protocol.FaultBodyTooBig.With(name, size, limit)
	case size <= 0:
		return nil, protocol.FaultBodySize.With(name, size)
	}
	if err := c.in.Await(int(size)); err != nil {
		return nil, c.short(err, protocol.FaultReadBody.With(name))
	}
	body := make([]byte, size)
	if err := c.in.ReadFull(body); err != nil {
		return nil, c.short(err, protocol.FaultReadBody.With(name))
	}
	return body, nil
}

// short tells a body that did not come, which the client hears of, from a connection that another
// part has closed.
func (c *client) short(err error, fault *protocol.Error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return fault
}

// beat sends a heartbeat and sets the timer for the next.
func (c *client) beat() {
	interval := c.settings.Load().heartbeat
	if interval == 0 || c.ending.Load() {
		return
	}
	c.heartbeat.Reset(interval)
	if err := c.out.beat(); err != nil {
		c.Close(fmt.Errorf("send heartbeat: %w", err))
	}
}

// Deliver writes messages; the pump of the subscription calls it.
func (c *client) Deliver(batch []broker.Message) error { return c.out.messages(batch) }

// Flush sends what was written; the pump of the subscription calls it.
func (c *client) Flush() error { return c.out.flush() }

// revoke ends the connection from outside of its read loop, which tells the client why: it is woken
// from a read that waits, and from a write that a client without interest holds up.
func (c *client) revoke(fault *protocol.Error) {
	c.revoked.Store(fault)
	err := errors.Join(c.conn.SetReadDeadline(time.Unix(1, 0)), c.conn.SetWriteDeadline(time.Now().Add(lastWords)))
	if err != nil {
		c.Close(err)
	}
}

// Close ends the connection from outside of its read loop, which then sees to the rest.
func (c *client) Close(reason error) {
	if c.ending.Load() {
		return
	}
	c.reason.CompareAndSwap(nil, closeReason{reason})
	c.conn.Close()
}
