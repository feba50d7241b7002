package session

import (
	"time"

	"nsq/internal/log"
	"nsq/internal/protocol"
)

// The states of a connection, with their numbers in statistics. Source: nsqd-tcp spec, section 4.
const (
	stateInit       int32 = 0
	stateSubscribed int32 = 3
	stateClosing    int32 = 4
)

// in is a set of states.
func in(states ...int32) (set [stateClosing + 1]bool) {
	for _, s := range states {
		set[s] = true
	}
	return set
}

// command is a row of the table of commands.
type command struct {
	states [stateClosing + 1]bool // in which it may come
	// collected commands are acted on together with others of their kind; before any other
	// command they are settled.
	collected bool
	run       func(*client, *protocol.Command) error
}

var commands = [protocol.NumOps]command{
	protocol.OpIdentify: {states: in(stateInit), run: (*client).identify},
	protocol.OpAuth:     {states: in(stateInit), run: (*client).auth},
	protocol.OpSub:      {states: in(stateInit), run: (*client).sub},
	protocol.OpRdy:      {states: in(stateSubscribed, stateClosing), run: (*client).rdy},
	protocol.OpFin:      {states: in(stateSubscribed, stateClosing), run: (*client).fin, collected: true},
	protocol.OpReq:      {states: in(stateSubscribed, stateClosing), run: (*client).req},
	protocol.OpTouch:    {states: in(stateSubscribed, stateClosing), run: (*client).touch},
	protocol.OpCls:      {states: in(stateSubscribed), run: (*client).cls},
	protocol.OpNop:      {states: in(stateInit, stateSubscribed, stateClosing), run: (*client).nop},
	protocol.OpPub:      {states: in(stateInit, stateSubscribed, stateClosing), run: (*client).pub, collected: true},
	protocol.OpMPub:     {states: in(stateInit, stateSubscribed, stateClosing), run: (*client).mpub},
	protocol.OpDPub:     {states: in(stateInit, stateSubscribed, stateClosing), run: (*client).pub, collected: true},
}

// dispatch acts on a command, or collects it.
func (c *client) dispatch(cmd *protocol.Command) error {
	if logger := c.server.config.Logger; logger.Enabled(log.Debug) {
		logger.Debugf("client(%s) command %q", c.addr, cmd.Name)
	}
	if c.server.config.TLSRequired && cmd.Op != protocol.OpIdentify && c.tls.Load() == nil {
		return c.settled(protocol.FaultTLSRequired.With(cmd.Name))
	}
	row := &commands[cmd.Op]
	if !row.collected {
		if err := c.settle(); err != nil {
			return err
		}
	}
	switch {
	case row.run == nil:
		return c.settled(protocol.FaultUnknownCommand.With(cmd.Name))
	case !row.states[c.state.Load()]:
		return c.settled(protocol.FaultState.With(cmd.Op))
	}
	return row.run(c, cmd)
}

// settled returns a fatal error, after what came before it was acted on and answered.
func (c *client) settled(fault *protocol.Error) error {
	if err := c.settle(); err != nil {
		return err
	}
	return fault
}

// nop does nothing: that it came is enough.
func (c *client) nop(*protocol.Command) error { return nil }

// identify negotiates the settings, once.
func (c *client) identify(cmd *protocol.Command) error {
	if c.named.Load() {
		return protocol.FaultState.With(cmd.Op)
	}
	body, err := c.readBody(protocol.OpIdentify)
	if err != nil {
		return err
	}
	request, err := protocol.DecodeIdentify(body)
	if err != nil {
		return protocol.FaultIdentifyJSON.With()
	}
	limits := &c.server.config.Limits
	agreed, fault := negotiate(request, limits, c.server.config.TLS != nil)
	if fault != nil {
		return fault
	}
	c.out.setQuiet(true) // the next frames after the answer are those of the upgrades
	c.settings.Store(agreed)
	c.named.Store(true)
	c.heard, c.deadline = true, time.Time{} // the next one is by the new interval
	c.out.configure(agreed.bufferLimit(), agreed.heartbeat)
	if agreed.heartbeat == 0 {
		if err := c.conn.SetDeadline(time.Time{}); err != nil {
			return err
		}
	}
	if request.FeatureNegotiation {
		response := agreed.response(limits)
		response.AuthRequired = c.server.config.Auth != nil
		err = c.respondJSON(response)
	} else {
		err = c.respond(protocol.ResponseOK)
	}
	if err != nil {
		return err
	}
	if err := c.upgrade(agreed); err != nil {
		return err
	}
	c.out.setQuiet(false)
	if agreed.heartbeat > 0 {
		c.heartbeat.Reset(agreed.heartbeat)
	} else {
		c.heartbeat.Stop()
	}
	return nil
}
