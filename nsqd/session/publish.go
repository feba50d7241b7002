package session

import (
	"errors"
	"io/fs"
	"math"
	"sync/atomic"
	"syscall"

	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// pub collects the message of a PUB or DPUB.
func (c *client) pub(cmd *protocol.Command) error {
	op := cmd.Op
	name, ok := cmd.Next()
	if !ok || op == protocol.OpDPub && !cmd.Any() {
		return c.settled(protocol.FaultTooFewParameters.With(op))
	}
	topic, unopened, fault := c.topicNamed(op, name)
	if fault != nil {
		return c.settled(fault)
	}
	kind := batchKind{op: op}
	delay := int64(0)
	if op == protocol.OpDPub {
		digits, _ := cmd.Next()
		if delay, fault = c.delay(op, digits); fault != nil {
			return c.settled(fault)
		}
		kind.deferred = delay > 0
	}
	if err := c.authorizePublish(op, topic, unopened); err != nil {
		return err
	}
	if topic == nil || kind != c.batchKind || c.batch.Len() == maxBatch || len(c.fins) > 0 {
		if err := c.settle(); err != nil {
			return err
		}
	}
	if err := c.readMessage(op); err != nil {
		return err
	}
	if kind.deferred {
		c.batch.Defer(uint32(min(delay, math.MaxUint32)))
	}
	c.batchKind = kind
	if topic == nil {
		return c.openTopic(unopened)
	}
	return nil
}

// topicNamed returns the topic to publish to if it is at hand, else its name, which is valid.
func (c *client) topicNamed(op protocol.Op, name []byte) (topic *broker.Topic, unopened string, fault *protocol.Error) {
	if topic = c.lastTopic(name); topic != nil {
		return topic, "", nil
	}
	unopened = string(name) // the bytes are gone after the next read
	if !protocol.ValidName(unopened) {
		return nil, "", protocol.FaultTopicName.With(op, unopened)
	}
	return nil, unopened, nil
}

// lastTopic returns the topic that the connection has published to last, if it is the one named
// and still there.
func (c *client) lastTopic(name []byte) *broker.Topic {
	if c.topic == nil || string(name) != c.topic.Name() || c.topic.Exiting() {
		return nil
	}
	return c.topic
}

// delay reads the delay of a DPUB in milliseconds.
func (c *client) delay(op protocol.Op, digits []byte) (int64, *protocol.Error) {
	delay, ok := protocol.ParseDecimal(digits)
	if !ok {
		return 0, protocol.FaultDelay.With(op, digits)
	}
	if longest := c.server.config.Limits.MaxReqTimeout.Milliseconds(); delay > longest {
		return 0, protocol.FaultDelayRange.With(op, digits, longest)
	}
	return delay, nil
}

// readMessage reads size and body of a message into the batch. Before it has to wait for them, what
// was collected is settled: the client may be waiting for that.
func (c *client) readMessage(op protocol.Op) error {
	if c.in.buffered() < 4 {
		if err := c.settle(); err != nil {
			return err
		}
	}
	limit := c.server.config.Limits.MaxMsgSize
	size, err := c.in.ReadSize()
	switch {
	case err != nil:
		return c.short(err, protocol.FaultReadMessageSize.With(op))
	case size <= 0:
		return c.settled(protocol.FaultMessageSize.With(op, size))
	case int64(size) > limit:
		return c.settled(protocol.FaultMessageTooBig.With(op, size, limit))
	}
	if c.in.buffered() < int(size) {
		if err := c.settle(); err != nil {
			return err
		}
		if err := c.in.Await(int(size)); err != nil {
			return c.short(err, protocol.FaultReadMessage.With(op))
		}
	}
	if err := c.in.ReadFull(c.batch.Add(int(size))); err != nil {
		c.batch.DropLast()
		return c.short(err, protocol.FaultReadMessage.With(op))
	}
	return nil
}

// openTopic makes the named topic the one of the batch.
func (c *client) openTopic(name string) error {
	topic, err := c.server.config.Broker.Topic(name)
	if err != nil {
		c.batch.Reset()
		return c.publishFault(err)
	}
	c.topic = topic
	c.published = c.pubCount(name)
	return nil
}

// publishBatch publishes the batch and empties it; n is how many messages it had.
func (c *client) publishBatch() (n int, err error) {
	n = c.batch.Len()
	err = c.topic.Publish(&c.batch)
	c.batch.Reset()
	if err != nil {
		return 0, c.publishFault(err)
	}
	c.published.Add(uint64(n))
	return n, nil
}

// settlePublishes publishes the batch and answers each of its commands.
func (c *client) settlePublishes() error {
	n, err := c.publishBatch()
	if err != nil {
		return err
	}
	for range n {
		if err := c.respond(protocol.ResponseOK); err != nil {
			return err
		}
	}
	return nil
}

// mpub publishes the messages of one body, all or none.
func (c *client) mpub(cmd *protocol.Command) error {
	name, ok := cmd.Next()
	if !ok {
		return protocol.FaultTooFewParameters.With(cmd.Op)
	}
	topic, unopened, fault := c.topicNamed(cmd.Op, name)
	if fault != nil {
		return fault
	}
	if err := c.authorizePublish(cmd.Op, topic, unopened); err != nil {
		return err
	}
	c.batchKind = batchKind{op: cmd.Op}
	if err := c.readMPub(); err != nil {
		c.batch.Reset()
		return err
	}
	if topic == nil {
		if err := c.openTopic(unopened); err != nil {
			return err
		}
	}
	if _, err := c.publishBatch(); err != nil {
		return err
	}
	return c.respond(protocol.ResponseOK)
}

// readMPub reads the body of an MPUB into the batch. The messages must fill it exactly.
func (c *client) readMPub() error {
	name, limits := protocol.OpMPub.String(), &c.server.config.Limits
	size, err := c.in.ReadSize()
	switch {
	case err != nil:
		return c.short(err, protocol.FaultReadBodySize.With(name))
	case size <= 0:
		return protocol.FaultBodySize.With(name, size)
	case int64(size) > limits.MaxBodySize:
		return protocol.FaultBodyTooBig.With(name, size, limits.MaxBodySize)
	}
	if size >= sizeLength {
		count, err := c.in.peekSize()
		if err != nil {
			return c.short(err, protocol.FaultReadMessageCount.With(name))
		}
		c.batch.Expect(mpubFrames(size, count))
	}
	bounds := protocol.MPubLimits{MaxBody: limits.MaxBodySize, MaxMessage: limits.MaxMsgSize}
	taken, fault := protocol.ReadMPub(&c.in, int64(size), bounds, c.batch.Add)
	if fault != nil {
		return fault
	}
	if taken != int64(size) {
		return protocol.FaultBodySizeMismatch.With(name, size, c.batch.Len())
	}
	return nil
}

// mpubFrames is how many bytes the messages of an MPUB body of that size and count take as frames.
func mpubFrames(size, count int32) int {
	return int(size) + int(max(min(count, size), 0))*(broker.FrameOverhead-sizeLength)
}

// publishFault words the failure of the command that the batch is of.
func (c *client) publishFault(err error) error {
	fault := map[protocol.Op]protocol.Fault{
		protocol.OpPub:  protocol.FaultPubFailed,
		protocol.OpMPub: protocol.FaultMPubFailed,
		protocol.OpDPub: protocol.FaultDPubFailed,
	}[c.batchKind.op]
	return fault.With(c.reasonOf(err))
}

// reasonOf words a failure of the broker for a client: without the paths of our files, which are
// for the log.
func (c *client) reasonOf(err error) string {
	if errors.Is(err, broker.ErrExiting) {
		return broker.ErrExiting.Error()
	}
	c.server.config.Logger.Errorf("client(%s) - %s", c.addr, err)
	var path *fs.PathError
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &path):
		return path.Err.Error()
	}
	return "storage error"
}

// pubCount is the counter of what the client has published to a topic.
func (c *client) pubCount(topic string) *atomic.Uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pubCounts == nil {
		c.pubCounts = make(map[string]*atomic.Uint64)
	}
	count, ok := c.pubCounts[topic]
	if !ok {
		count = new(atomic.Uint64)
		c.pubCounts[topic] = count
	}
	return count
}
