// Package action does what admins ask for: it creates, deletes, empties, pauses and tombstones, at
// every daemon that is concerned, and tells the notification endpoint. Who is an admin is decided
// before; it knows no page and no route.
//
// Source: nsqadmin spec, sections 7 and 10.
package action

import (
	"net/url"
	"strings"

	"nsq/internal/api"
	"nsq/internal/cluster"
	"nsq/internal/protocol"
)

// Kind is what is to be done.
type Kind string

// The kinds. With a Channel all but Tombstone concern the channel, else the topic.
const (
	Create    Kind = "create"
	Delete    Kind = "delete"
	Pause     Kind = "pause"
	Unpause   Kind = "unpause"
	Empty     Kind = "empty"
	Tombstone Kind = "tombstone" // hides the topic on Node from look-ups and deletes it there
)

// Action is one thing to do.
type Action struct {
	Kind    Kind
	Topic   string
	Channel string // empty: the topic is meant
	Node    string // HTTP address of a nsqd, for Tombstone
}

// Invalid is the error of an action that cannot be.
type Invalid string

// The reasons.
const (
	BadTopic     Invalid = "INVALID_TOPIC"
	BadChannel   Invalid = "INVALID_CHANNEL"
	BadAction    Invalid = "INVALID_ACTION"
	NodeNotFound Invalid = "NODE_NOT_FOUND" // there is no such node
)

// Error is the code.
func (i Invalid) Error() string { return string(i) }

// Outcome is what became of an action: each request that was made for it, in order.
type Outcome struct {
	Results []api.AdminResult
	Report  cluster.Report // what failed, reads included
}

// Failed says whether requests were made and none of them succeeded.
func (o *Outcome) Failed() bool {
	for _, r := range o.Results {
		if r.Error == "" {
			return false
		}
	}
	return len(o.Results) > 0
}

// String is the action in words, for the log.
func (a Action) String() string {
	text := a.noun() + " " + a.Topic
	if a.Channel != "" {
		text += "/" + a.Channel
	}
	if a.Node != "" {
		text += " on " + a.Node
	}
	return text
}

// noun is the action as notifications name it.
func (a Action) noun() string {
	if a.Kind == Tombstone {
		return "tombstone_topic_producer"
	}
	return string(a.Kind) + "_" + strings.TrimPrefix(a.subject(), "/")
}

// subject is the first part of the daemons' paths.
func (a Action) subject() string {
	if a.Channel != "" {
		return "/channel"
	}
	return "/topic"
}

func (a Action) topicQuery() url.Values { return url.Values{"topic": {a.Topic}} }

func (a Action) query() url.Values {
	query := a.topicQuery()
	if a.Channel != "" {
		query.Set("channel", a.Channel)
	}
	return query
}

// validate checks what needs no other daemon.
func (a Action) validate() error {
	if !protocol.ValidName(a.Topic) {
		return BadTopic
	}
	if a.Channel != "" && !protocol.ValidName(a.Channel) {
		return BadChannel
	}
	switch a.Kind {
	case Create, Delete, Pause, Unpause, Empty, Tombstone:
		return nil
	}
	return BadAction
}
