package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"
)

// Permission is one thing that a client may do; an entry of an answer has a set of them.
type Permission uint8

// The permissions.
const (
	Subscribe Permission = 1 << iota // to SUB
	Publish                          // to PUB, MPUB and DPUB
)

// permissions lists them by the name that they have in an answer.
var permissions = map[string]Permission{"subscribe": Subscribe, "publish": Publish}

// maxTTL is the longest time that a Duration holds, in seconds.
const maxTTL = math.MaxInt64 / int64(time.Second)

// Grant is the answer of an auth server. It never changes and is safe for concurrent use.
type Grant struct {
	identity, identityURL string
	expires               time.Time
	entries               int    // as many as were in the answer
	rules                 []rule // of them, those that permit anything
}

// rule is an entry of the answer.
type rule struct {
	permissions Permission
	topic       *regexp.Regexp
	channels    []*regexp.Regexp
}

// Identity is the name of the client.
func (g *Grant) Identity() string { return g.identity }

// IdentityURL is where more is told of the client.
func (g *Grant) IdentityURL() string { return g.identityURL }

// Entries is how many authorizations the answer has. A client without any is refused.
func (g *Grant) Entries() int { return g.entries }

// Expires is when the servers are to be asked again.
func (g *Grant) Expires() time.Time { return g.expires }

// Expired says whether the servers are to be asked again at now.
func (g *Grant) Expired(now time.Time) bool { return now.After(g.expires) }

// Allows says whether an entry of the answer has the permission, a topic expression with a match in
// topic and a channel expression with a match in channel. The channel that Publish is tried with is
// always the empty one. The time it takes is linear in the size of the answer: a caller with many
// messages for a topic remembers what it was told.
func (g *Grant) Allows(permission Permission, topic, channel string) bool {
	if permission == Publish {
		channel = ""
	}
	for i := range g.rules {
		if g.rules[i].allows(permission, topic, channel) {
			return true
		}
	}
	return false
}

func (r *rule) allows(permission Permission, topic, channel string) bool {
	if r.permissions&permission == 0 || !r.topic.MatchString(topic) {
		return false
	}
	for _, expression := range r.channels {
		if expression.MatchString(channel) {
			return true
		}
	}
	return false
}

// authorization is an entry as the servers write it.
type authorization struct {
	Topic       string   `json:"topic"`
	Channels    []string `json:"channels"`
	Permissions []string `json:"permissions"`
}

// decode reads the answer of an auth server that was received at the given time. Its errors show
// nothing of the answer.
func decode(answer []byte, received time.Time) (*Grant, error) {
	var fields struct {
		TTL            int64           `json:"ttl"` // seconds
		Identity       string          `json:"identity"`
		IdentityURL    string          `json:"identity_url"`
		Authorizations []authorization `json:"authorizations"`
	}
	if err := json.Unmarshal(answer, &fields); err != nil {
		var mistyped *json.UnmarshalTypeError
		if errors.As(err, &mistyped) {
			return nil, fmt.Errorf("answer has a wrong type at %q", mistyped.Field)
		}
		return nil, errors.New("answer is not JSON")
	}
	if fields.TTL <= 0 {
		return nil, fmt.Errorf("answer has ttl %d, want more than 0", fields.TTL)
	}
	g := &Grant{
		identity:    fields.Identity,
		identityURL: fields.IdentityURL,
		expires:     received.Add(time.Duration(min(fields.TTL, maxTTL)) * time.Second),
		entries:     len(fields.Authorizations),
	}
	expressions := newCompiler()
	for i, entry := range fields.Authorizations {
		r, err := entry.rule(expressions)
		if err != nil {
			return nil, fmt.Errorf("entry %d of answer: %w", i+1, err)
		}
		if r.permissions != 0 && len(r.channels) > 0 {
			g.rules = append(g.rules, r)
		}
	}
	return g, nil
}

func (a *authorization) rule(expressions *compiler) (rule, error) {
	var r rule
	for _, name := range a.Permissions {
		permission, ok := permissions[name]
		if !ok {
			return rule{}, errors.New("unknown permission")
		}
		r.permissions |= permission
	}
	var err error
	if r.topic, err = expressions.compile(a.Topic); err != nil {
		return rule{}, fmt.Errorf("topic: %w", err)
	}
	for _, text := range a.Channels {
		expression, err := expressions.compile(text)
		if err != nil {
			return rule{}, fmt.Errorf("channel: %w", err)
		}
		r.channels = append(r.channels, expression)
	}
	return r, nil
}
