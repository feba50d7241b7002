package session

import (
	"errors"
	"time"

	"nsq/internal/auth"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// sub makes the connection a consumer of a channel.
func (c *client) sub(cmd *protocol.Command) error {
	agreed := c.settings.Load()
	if agreed.heartbeat == 0 {
		return protocol.FaultSubNoHeartbeats.With()
	}
	topicName, _ := cmd.Next()
	channelName, ok := cmd.Next()
	if !ok {
		return protocol.FaultTooFewParameters.With(cmd.Op)
	}
	topic, channel := string(topicName), string(channelName)
	if !protocol.ValidName(topic) {
		return protocol.FaultTopicName.With(cmd.Op, topic)
	}
	if !protocol.ValidName(channel) {
		return protocol.FaultChannelName.With(cmd.Op, channel)
	}
	if err := c.authorize(cmd.Op, auth.Subscribe, topic, channel); err != nil {
		return err
	}
	if err := c.out.flush(); err != nil { // to create them can take a while
		return err
	}
	subscription, err := c.server.config.Broker.Subscribe(topic, channel, c, broker.SubscriptionConfig{
		MsgTimeout: agreed.msgTimeout,
		SampleRate: agreed.sampleRate,
		FlushDelay: agreed.flushDelay,
		Proximity:  c.proximity(agreed),
	})
	switch {
	case errors.Is(err, broker.ErrTooManyConsumers):
		return protocol.FaultTooManyConsumers.With(topic, channel, c.server.config.Limits.MaxChannelConsumers)
	case errors.Is(err, broker.ErrExiting) && (protocol.IsEphemeral(topic) || protocol.IsEphemeral(channel)):
		return protocol.FaultSubFailed.With("to deleted topic/channel")
	case err != nil:
		return protocol.FaultSubFailed.With(c.reasonOf(err))
	}
	c.consumer.Store(subscription)
	c.state.Store(stateSubscribed)
	c.watchRights(topic, channel)
	return c.respond(protocol.ResponseOK)
}

// rdy sets the window.
func (c *client) rdy(cmd *protocol.Command) error {
	if c.state.Load() == stateClosing {
		return nil
	}
	count := int64(1)
	if digits, ok := cmd.Next(); ok {
		if count, ok = protocol.ParseDecimal(digits); !ok {
			return protocol.FaultReadyCount.With(digits)
		}
		if limit := c.server.config.Limits.MaxRdyCount; count > limit {
			return protocol.FaultReadyRange.With(digits, limit)
		}
	}
	c.consumer.Load().SetReady(count)
	return nil
}

// fin collects a finished message.
func (c *client) fin(cmd *protocol.Command) error {
	id, fault := messageID(cmd, 1)
	if fault != nil {
		return c.settled(fault)
	}
	if c.batch.Len() > 0 || len(c.fins) == maxBatch {
		if err := c.settle(); err != nil {
			return err
		}
	}
	c.fins = append(c.fins, id)
	return nil
}

func (c *client) settleFins() error {
	failed := c.consumer.Load().Finish(c.fins)
	c.fins = c.fins[:0]
	for _, id := range failed {
		if err := c.refuse(protocol.FaultFinFailed, id, broker.ErrNotFound); err != nil {
			return err
		}
	}
	return nil
}

// req gives a message back.
func (c *client) req(cmd *protocol.Command) error {
	id, fault := messageID(cmd, 2)
	if fault != nil {
		return fault
	}
	digits, _ := cmd.Next()
	delay, ok := protocol.ParseDecimal(digits)
	if !ok {
		return protocol.FaultDelay.With(cmd.Op, digits)
	}
	longest := c.server.config.Limits.MaxReqTimeout
	wait := time.Duration(min(delay, longest.Milliseconds())) * time.Millisecond
	if err := c.consumer.Load().Requeue(id, wait); err != nil {
		return c.refuse(protocol.FaultReqFailed, id, err)
	}
	return nil
}

// touch gives a message its whole timeout anew.
func (c *client) touch(cmd *protocol.Command) error {
	id, fault := messageID(cmd, 1)
	if fault != nil {
		return fault
	}
	if !c.consumer.Load().Touch(id) {
		return c.refuse(protocol.FaultTouchFailed, id, broker.ErrNotFound)
	}
	return nil
}

// cls ends the deliveries; the client finishes what it has and closes.
func (c *client) cls(*protocol.Command) error {
	c.consumer.Load().SetReady(0)
	c.state.Store(stateClosing)
	return c.respond(protocol.ResponseCloseWait)
}

// messageID takes the first parameter of FIN, REQ or TOUCH, which have want parameters at least.
func messageID(cmd *protocol.Command, want int) (id protocol.ID, fault *protocol.Error) {
	param, ok := cmd.Next()
	if !ok || want > 1 && !cmd.Any() {
		return id, protocol.FaultTooFewParams.With(cmd.Op)
	}
	if len(param) != len(id) {
		return id, protocol.FaultMessageID.With()
	}
	return protocol.ID(param), nil
}

// refuse answers that FIN, REQ or TOUCH failed, which is not fatal.
func (c *client) refuse(form protocol.Fault, id protocol.ID, err error) error {
	reason := "ID not in flight"
	switch {
	case errors.Is(err, broker.ErrExiting):
		reason = broker.ErrExiting.Error()
	case c.consumer.Load().HeldByOther(id):
		reason = "client does not own message"
	}
	return c.out.frame(protocol.FrameError, form.With(id[:], reason).Error())
}
