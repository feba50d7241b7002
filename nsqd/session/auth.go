package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"nsq/internal/auth"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

const (
	// recheckRetry is the time between tries to ask for a live subscription's rights again while no
	// auth server answers, and recheckGrace how long after its expiry a grant is lived with for that.
	recheckRetry = 5 * time.Second
	recheckGrace = time.Minute
	// recheckSpread spreads the questions for grants that expire together.
	recheckSpread = time.Second
)

// authResponse is the answer to an AUTH. Source: nsqd-tcp spec, section 9.
type authResponse struct {
	Identity        string `json:"identity"`
	IdentityURL     string `json:"identity_url"`
	PermissionCount int    `json:"permission_count"`
}

// permitted remembers what was allowed last, for publishers who send many messages to one topic.
type permitted struct {
	grant *auth.Grant
	topic string
}

// auth asks the auth servers what the client may do.
func (c *client) auth(cmd *protocol.Command) error {
	if cmd.Any() {
		return protocol.FaultAuthParams.With()
	}
	secret, err := c.readBody(protocol.OpAuth)
	if err != nil {
		return err
	}
	switch {
	case c.rights.Load() != nil:
		return protocol.FaultAuthAgain.With()
	case c.server.config.Auth == nil:
		return protocol.FaultAuthDisabled.With()
	}
	if err := c.out.flush(); err != nil { // to ask takes a while
		return err
	}
	keeper, err := c.server.config.Auth.Keep(c.server.config.Context, c.authRequest(secret))
	if err != nil {
		return c.unanswered(err)
	}
	grant := keeper.Grant()
	if grant.Entries() == 0 {
		return protocol.FaultNoAuthorizations.With()
	}
	c.rights.Store(keeper)
	return c.respondJSON(authResponse{grant.Identity(), grant.IdentityURL(), grant.Entries()})
}

func (c *client) authRequest(secret []byte) auth.Request {
	request := auth.Request{Secret: string(secret)}
	if host, _, err := net.SplitHostPort(c.addr); err == nil { // a unix socket has none
		request.RemoteIP = host
	}
	if secure := c.tls.Load(); secure != nil {
		request.TLS = true
		if len(secure.PeerCertificates) > 0 {
			request.CommonName = secure.PeerCertificates[0].Subject.CommonName
		}
	}
	return request
}

// authorizePublish is authorize for a topic that is at hand, or else only named. It comes before the
// body: nobody without rights makes us read one.
func (c *client) authorizePublish(op protocol.Op, topic *broker.Topic, unopened string) error {
	if c.server.config.Auth == nil {
		return nil
	}
	if topic != nil {
		unopened = topic.Name()
	}
	return c.authorize(op, auth.Publish, unopened, "")
}

// authorize returns nil if the client may use the topic, and for SUB the channel, with that command.
func (c *client) authorize(op protocol.Op, permission auth.Permission, topic, channel string) error {
	if c.server.config.Auth == nil {
		return nil
	}
	rights := c.rights.Load()
	if rights == nil {
		return protocol.FaultAuthFirst.With(op)
	}
	now := time.Now()
	if c.permitted.topic == topic && permission == auth.Publish && c.permitted.grant == rights.Grant() && !rights.Grant().Expired(now) {
		return nil
	}
	// The servers may have to be asked, and what came before is not to wait for that.
	if err := errors.Join(c.settle(), c.out.flush()); err != nil {
		return err
	}
	grant, err := rights.Valid(c.server.config.Context, now)
	if err != nil {
		return c.unanswered(err)
	}
	if !grant.Allows(permission, topic, channel) {
		return protocol.FaultUnauthorized.With(op, topic, channel)
	}
	if permission == auth.Publish {
		c.permitted = permitted{grant, topic}
	}
	return nil
}

// unanswered words the failure of a question to the auth servers. One that was given up because
// nsqd stops says nothing of the client.
func (c *client) unanswered(err error) error {
	if c.server.config.Context.Err() != nil {
		return broker.ErrExiting
	}
	c.server.config.Logger.Errorf("client(%s) AUTH failed - %s", c.addr, err)
	return protocol.FaultAuthFailed.With()
}

// watchRights looks again whether the client may consume what it is subscribed to whenever its
// grant has expired, and ends the connection when it may no more.
func (c *client) watchRights(topic, channel string) {
	rights := c.rights.Load()
	if rights == nil {
		return
	}
	ctx, cancel := context.WithCancel(c.server.config.Context)
	// The callback reads the variable: the timer begins after it is set.
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() {
		wait, fault := c.recheckRights(ctx, rights, topic, channel)
		switch {
		case ctx.Err() != nil:
		case fault != nil:
			c.revoke(fault)
		default:
			timer.Reset(wait)
			if ctx.Err() != nil { // by now
				timer.Stop()
			}
		}
	})
	timer.Reset(untilExpiry(rights.Grant()))
	c.unwatch = func() {
		cancel()
		timer.Stop()
	}
}

// untilExpiry is the time until a grant is to be asked for again.
func untilExpiry(grant *auth.Grant) time.Duration {
	return max(time.Until(grant.Expires()), 0) + rand.N(recheckSpread)
}

// recheckRights returns when to look the next time, or why the subscription has to end.
func (c *client) recheckRights(ctx context.Context, rights *auth.Keeper, topic, channel string) (time.Duration, *protocol.Error) {
	ctx, cancel := context.WithTimeout(ctx, recheckGrace)
	defer cancel()
	expires := rights.Grant().Expires()
	grant, err := rights.Valid(ctx, time.Now())
	switch {
	case errors.Is(err, context.Canceled): // the connection ends, or all do
		return 0, nil
	case errors.Is(err, auth.ErrRefused), err != nil && time.Since(expires) > recheckGrace:
		c.server.config.Logger.Errorf("client(%s) AUTH failed - %s", c.addr, err)
		return 0, protocol.FaultAuthFailed.With()
	case err != nil:
		c.server.config.Logger.Warnf("client(%s) AUTH to be tried again - %s", c.addr, err)
		return recheckRetry, nil
	case !grant.Allows(auth.Subscribe, topic, channel):
		return 0, protocol.FaultUnauthorized.With(protocol.OpSub, topic, channel)
	}
	return untilExpiry(grant), nil
}

// proximity is how near the client is, by what it said in IDENTIFY.
//
// Source: nsqd-tcp spec, section 22.4.
func (c *client) proximity(agreed *settings) broker.Proximity {
	limits := &c.server.config.Limits
	if !limits.TopologyAware || !c.named.Load() {
		return broker.Anywhere
	}
	sameRegion := agreed.topologyRegion == limits.TopologyRegion
	switch {
	case limits.TopologyZone != "" && sameRegion && agreed.topologyZone == limits.TopologyZone:
		return broker.SameZone
	case limits.TopologyRegion != "" && sameRegion:
		return broker.SameRegion
	}
	return broker.Anywhere
}
