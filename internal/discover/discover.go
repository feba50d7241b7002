// Package discover asks several daemons the same question at once and unites their answers: which
// topics there are, who produces a topic. One daemon that fails takes away only its own answer.
//
// It knows the questions of nsqlookupd, not what the answers are for; connecting to what was found is
// the business of internal/consume.
//
// Source: apps spec, sections 2.1, 7.9 and 11.3.
package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"nsq/internal/api"
	"nsq/internal/httpx"
	"nsq/internal/lookup"
	"nsq/internal/protocol"
)

// Answer is what one daemon said: a value or an error.
type Answer[T any] struct {
	Address string
	Value   T
	Err     error
}

// Ask asks each address at the same time and returns the answers in the order of the addresses.
func Ask[T any](ctx context.Context, addresses []string, ask func(ctx context.Context, address string) (T, error)) []Answer[T] {
	answers := make([]Answer[T], len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() {
			answers[i].Address = address
			answers[i].Value, answers[i].Err = ask(ctx, address)
		})
	}
	all.Wait()
	return answers
}

// Failures returns the errors among the answers.
func Failures[T any](answers []Answer[T]) (errs []error) {
	for _, answer := range answers {
		if answer.Err != nil {
			errs = append(errs, answer.Err)
		}
	}
	return errs
}

// Topics finds topics through nsqlookupds. It is safe for concurrent use.
type Topics struct {
	Client    *httpx.Client
	Addresses []string       // of the nsqlookupds: host:port or URL, of which scheme and host count
	Pattern   *regexp.Regexp // that a topic has to match somewhere; nil: all do
}

// Find returns the topics that at least one nsqlookupd knows, sorted, each once. The error tells of
// the nsqlookupds that failed; the topics of the others are returned none the less.
func (t *Topics) Find(ctx context.Context) ([]string, error) {
	answers := Ask(ctx, t.Addresses, func(ctx context.Context, address string) ([]string, error) {
		var list api.TopicList
		err := t.Client.Get(ctx, baseURL(address)+"/topics", &list)
		return list.Topics, err
	})
	found := make(map[string]bool)
	for _, answer := range answers {
		for _, topic := range answer.Value {
			if protocol.ValidName(topic) && (t.Pattern == nil || t.Pattern.MatchString(topic)) {
				found[topic] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), errors.Join(Failures(answers)...)
}

// baseURL is scheme and host of an address.
func baseURL(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "http", address
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// Producers asks the nsqlookupds at the addresses, each a host:port, who produces the topic. It
// returns the producers that at least one of them knows, each once, and one error for each that failed.
func Producers(ctx context.Context, client *httpx.Client, addresses []string, topic string) ([]api.Producer, []error) {
	answers := Ask(ctx, addresses, func(ctx context.Context, address string) (api.Lookup, error) {
		return lookup.Producers(ctx, client, address, topic)
	})
	var lists [][]api.Producer
	for _, answer := range answers {
		lists = append(lists, answer.Value.Producers)
	}
	return Union(lists...), Failures(answers)
}

// Union returns the producers of all lists, each once: two with the same address for TCP and HTTP are
// one. What can be no address is left out.
func Union(lists ...[]api.Producer) []api.Producer {
	union := []api.Producer{}
	seen := make(map[string]bool)
	for _, p := range slices.Concat(lists...) {
		key := fmt.Sprintf("%s %d", TCPAddress(p), p.HTTPPort)
		if p.BroadcastAddress == "" || seen[key] {
			continue
		}
		seen[key] = true
		union = append(union, p)
	}
	return union
}

// TCPAddress is where clients of the TCP protocol reach the producer.
func TCPAddress(p api.Producer) string {
	return net.JoinHostPort(p.BroadcastAddress, strconv.Itoa(p.TCPPort))
}

// HTTPAddress is where the producer answers HTTP.
func HTTPAddress(p api.Producer) string {
	return net.JoinHostPort(p.BroadcastAddress, strconv.Itoa(p.HTTPPort))
}
