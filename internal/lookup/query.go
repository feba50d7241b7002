package lookup

import (
	"context"
	"net"
	"net/url"
	"strconv"

	"nsq/internal/api"
	"nsq/internal/httpx"
)

// HTTPAddress is where the nsqlookupd answers look-ups, or empty if it did not say.
func (p PeerInfo) HTTPAddress() string {
	if p.BroadcastAddress == "" {
		return ""
	}
	return net.JoinHostPort(p.BroadcastAddress, strconv.Itoa(p.HTTPPort))
}

// ChannelsURL is the look-up of a topic's channels at address, a "host:port".
func ChannelsURL(address, topic string) string { return queryURL(address, "/channels", topic) }

// ProducersURL is the look-up of a topic's producers and channels at address, a "host:port".
func ProducersURL(address, topic string) string { return queryURL(address, "/lookup", topic) }

// Channels asks the nsqlookupd at address for the known channels of the topic.
func Channels(ctx context.Context, client *httpx.Client, address, topic string) ([]string, error) {
	var answer api.ChannelList
	if err := client.Get(ctx, ChannelsURL(address, topic), &answer); err != nil {
		return nil, err
	}
	return answer.Channels, nil
}

// Producers asks the nsqlookupd at address who produces the topic. An unknown topic is an
// *httpx.StatusError with code 404.
func Producers(ctx context.Context, client *httpx.Client, address, topic string) (api.Lookup, error) {
	var answer api.Lookup
	err := client.Get(ctx, ProducersURL(address, topic), &answer)
	return answer, err
}

func queryURL(address, path, topic string) string {
	u := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: url.Values{"topic": {topic}}.Encode()}
	return u.String()
}
