package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"time"

	"nsq/internal/api"
	"nsq/internal/discover"
	"nsq/internal/httpx"
)

// poller asks all nsqd for the channel. It belongs to one goroutine.
type poller struct {
	client         *httpx.Client
	topic, channel string
	nsqds          []string // asked if there are any
	lookupds       []string // asked for nsqd otherwise
	log            *log.Logger

	found  []string // nsqd of the last look-up that succeeded
	logged string   // the failures that were logged last
}

// failure is a nsqd that did not answer.
type failure struct {
	Address string `json:"address"`
	Error   string `json:"error"`
}

// sample is what one poll has found.
type sample struct {
	taken    time.Time
	channels map[string]api.ChannelStats // by address of the nsqd
	nodes    int                         // nsqd that were asked
	failed   []failure                   // those of them without an answer
	err      error                       // there is nothing to show
}

// poll asks for the statistics. Failures of single daemons are in the log, once as long as they last.
func (p *poller) poll(ctx context.Context) sample {
	addresses, failures, err := p.nodes(ctx)
	if err != nil {
		return sample{taken: time.Now(), err: err}
	}
	answers := discover.Ask(ctx, addresses, p.ask)
	s := sample{taken: time.Now(), nodes: len(addresses), channels: make(map[string]api.ChannelStats)}
	for _, answer := range answers {
		if answer.Err != nil {
			s.failed = append(s.failed, failure{answer.Address, answer.Err.Error()})
			failures = append(failures, fmt.Errorf("ERROR: failed to get nsqd stats - %w", answer.Err))
		}
		if _, channel := p.pick(answer.Value); channel != nil {
			s.channels[answer.Address] = *channel
		}
	}
	if len(s.channels) == 0 {
		s.err = p.nothing(ctx, addresses)
	}
	if ctx.Err() == nil && s.err == nil {
		p.report(failures)
	}
	return s
}

// nodes returns the addresses of the nsqd to ask, and the nsqlookupds' errors that can be borne. When
// no nsqlookupd answers, the nsqd that were found before have to do.
func (p *poller) nodes(ctx context.Context) (addresses []string, failures []error, err error) {
	if len(p.nsqds) > 0 {
		return p.nsqds, nil, nil
	}
	producers, errs := discover.Producers(ctx, p.client, p.lookupds, p.topic)
	allFailed := len(errs) == len(p.lookupds)
	if allFailed && p.found == nil {
		return nil, nil, fmt.Errorf("ERROR: failed to get topic producers - failed to query any nsqlookupd: %w", errors.Join(errs...))
	}
	for _, err := range errs {
		refused, ok := errors.AsType[*httpx.StatusError](err)
		if unknown := ok && refused.Code == http.StatusNotFound; !unknown || allFailed {
			failures = append(failures, fmt.Errorf("ERROR: failed to get topic producers - %w", err))
		}
	}
	if !allFailed {
		p.found = []string{}
		for _, producer := range producers {
			p.found = append(p.found, discover.HTTPAddress(producer))
		}
	}
	return p.found, failures, nil
}

// ask gets the statistics of the channel from one nsqd.
func (p *poller) ask(ctx context.Context, address string) (api.Stats, error) {
	return p.stats(ctx, address, "&channel="+url.QueryEscape(p.channel))
}

// askTopic gets the statistics of all channels of the topic from one nsqd.
func (p *poller) askTopic(ctx context.Context, address string) (api.Stats, error) {
	return p.stats(ctx, address, "")
}

func (p *poller) stats(ctx context.Context, address, filter string) (stats api.Stats, err error) {
	err = p.client.Get(ctx, "http://"+address+"/stats?format=json&topic="+url.QueryEscape(p.topic)+filter+"&include_clients=false", &stats)
	return stats, err
}

// pick finds the topic and the channel in the statistics of a nsqd.
func (p *poller) pick(stats api.Stats) (topic bool, channel *api.ChannelStats) {
	for _, t := range stats.Topics {
		if t.TopicName != p.topic {
			continue
		}
		topic = true
		for i := range t.Channels {
			if t.Channels[i].ChannelName == p.channel {
				channel = &t.Channels[i]
			}
		}
	}
	return topic, channel
}

// nothing says why no nsqd has the channel. A nsqd that is asked for a channel which it has not got does
// not say whether it has the topic.
func (p *poller) nothing(ctx context.Context, addresses []string) error {
	answers := discover.Ask(ctx, addresses, p.askTopic)
	topics := 0
	for _, answer := range answers {
		if topic, _ := p.pick(answer.Value); topic {
			topics++
		}
	}
	failures := discover.Failures(answers)
	const anyNSQD = "failed to query any nsqd: "
	switch {
	case len(p.nsqds) > 0 && topics == 0 && len(failures) == 0:
		return errors.New("ERROR: failed to get topic producers - " + anyNSQD)
	case len(p.nsqds) > 0 && topics == 0:
		return fmt.Errorf("ERROR: failed to get topic producers - "+anyNSQD+"%w", errors.Join(failures...))
	case len(failures) > 0 && len(failures) == len(answers):
		return fmt.Errorf("ERROR: failed to get nsqd stats - "+anyNSQD+"%w", errors.Join(failures...))
	}
	return fmt.Errorf("ERROR: failed to find channel(%s) in stats metadata for topic(%s)", p.channel, p.topic)
}

// report logs failures when they change.
func (p *poller) report(failures []error) {
	text := fmt.Sprint(failures)
	if text == p.logged {
		return
	}
	p.logged = text
	for _, failure := range failures {
		p.log.Print(failure)
	}
}
