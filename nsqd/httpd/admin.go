package httpd

import (
	"errors"
	"strings"

	"nsq/internal/httpx"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// The routes below /topic/ and /channel/. What a broker reports other than that a name is unknown
// is an internal error.
//
// Source: nsqd-http spec, sections 9 and 10.

func (a *API) createTopic(query httpx.Params) (any, error) {
	name, err := query.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic)
	if err != nil {
		return nil, err
	}
	_, err = a.config.Broker.Topic(strings.Clone(name))
	return nil, err
}

func (a *API) deleteTopic(query httpx.Params) (any, error) {
	name, err := query.Require("topic", errMissingTopic)
	if err != nil {
		return nil, err
	}
	return nil, unknown(a.config.Broker.DeleteTopic(name), errTopicNotFound)
}

// emptyTopic tells a bad name from an unknown one, as the others that need a topic do not.
func (a *API) emptyTopic(query httpx.Params) (any, error) {
	if _, err := query.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic); err != nil {
		return nil, err
	}
	return a.onTopic((*broker.Topic).Empty)(query)
}

// onTopic is a handler that does something to an existing topic.
func (a *API) onTopic(act func(*broker.Topic) error) httpx.QueryHandler {
	return func(query httpx.Params) (any, error) {
		name, err := query.Require("topic", errMissingTopic)
		if err != nil {
			return nil, err
		}
		topic, err := a.config.Broker.FindTopic(name)
		if err != nil {
			return nil, unknown(err, errTopicNotFound)
		}
		return nil, act(topic)
	}
}

func (a *API) createChannel(query httpx.Params) (any, error) {
	topic, name, err := a.channelParams(query)
	if err != nil {
		return nil, err
	}
	_, err = topic.Channel(strings.Clone(name))
	return nil, err
}

func (a *API) deleteChannel(query httpx.Params) (any, error) {
	topic, name, err := a.channelParams(query)
	if err != nil {
		return nil, err
	}
	return nil, unknown(topic.DeleteChannel(name), errChannelNotFound)
}

// onChannel is a handler that does something to an existing channel.
func (a *API) onChannel(act func(*broker.Channel) error) httpx.QueryHandler {
	return func(query httpx.Params) (any, error) {
		topic, name, err := a.channelParams(query)
		if err != nil {
			return nil, err
		}
		channel, err := topic.FindChannel(name)
		if err != nil {
			return nil, unknown(err, errChannelNotFound)
		}
		return nil, act(channel)
	}
}

// channelParams returns an existing topic and the valid name of a channel. Both names are checked
// before the topic is looked for.
func (a *API) channelParams(query httpx.Params) (topic *broker.Topic, channel string, err error) {
	name, err := query.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidArgTopic)
	if err != nil {
		return nil, "", err
	}
	channel, err = query.RequireValid("channel", protocol.ValidName, errMissingChannel, errInvalidArgChannel)
	if err != nil {
		return nil, "", err
	}
	topic, err = a.config.Broker.FindTopic(name)
	return topic, channel, unknown(err, errTopicNotFound)
}

// unknown replaces the broker's word for a name that does not exist.
func unknown(err error, notFound *httpx.Error) error {
	if errors.Is(err, broker.ErrNotFound) {
		return notFound
	}
	return err
}
