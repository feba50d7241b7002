// Command nsq_to_nsq publishes the messages of topics again, at other nsqd.
//
// A message is finished when a destination has confirmed it. If one is lost the others are tried at
// once; what none of them takes is requeued, for as long as it takes, while the consumer backs off.
// Messages that a filter keeps back are finished. With --dead-letter-topic those that a filter cannot
// judge, and those that a destination refuses, move to that topic; without one, what is no JSON object is
// logged and finished, and the others are requeued.
//
// Source: apps spec, section 9.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"nsq/internal/clientopt"
	"nsq/internal/consume"
	"nsq/internal/destination"
	"nsq/internal/latency"
	"nsq/internal/protocol"
	"nsq/internal/publish"
	"nsq/internal/touch"
	"nsq/internal/utility"
)

const name = "nsq_to_nsq"

func main() { utility.Main(newCopier().program()) }

// copier is the program with its flags.
type copier struct {
	topics       utility.List
	channel      string
	target       string // topic at the destination; empty: that of the source
	destinations utility.List
	mode         string
	statusEvery  int
	batch        int // most messages in a command
	filter       filter
	options      *clientopt.Options // of the destination's side
	consume      *consume.Flags
}

func newCopier() *copier {
	flags := consume.NewFlags(name)
	flags.Rejects = true
	return &copier{options: clientopt.New(name), consume: flags}
}

func (c *copier) program() *utility.Program {
	return &utility.Program{Name: name, Flags: c.define, Check: c.check, Run: c.run}
}

func (c *copier) define(set *flag.FlagSet) {
	set.Var(&c.topics, "topic", "topic to read (may be given multiple times)")
	set.StringVar(&c.channel, "channel", name, "channel to read, of every topic")
	set.StringVar(&c.target, "destination-topic", "", "topic to publish to; by default the one that a message comes from")
	set.Var(&c.destinations, "destination-nsqd-tcp-address", "TCP address of a nsqd to publish to, host:port (may be given multiple times)")
	set.StringVar(&c.mode, "mode", string(destination.HostPool), "which nsqd gets a message: hostpool, round-robin or epsilon-greedy")
	set.IntVar(&c.statusEvery, "status-every", 250, "messages between two lines of latencies in the log; 0 is no line")
	set.IntVar(&c.batch, "batch-size", 200, "most messages to publish at once; none waits for others")
	set.StringVar(&c.filter.field, "require-json-field", "", "key that a message, a JSON object, must have to be published")
	set.StringVar(&c.filter.value, "require-json-value", "", "text or number that --require-json-field must be")
	set.Var(&c.filter.whitelist, "whitelist-json-field", "key to publish, without all that are not listed (may be given multiple times)")
	set.Var(c.options, "producer-opt", clientopt.Help)
	c.consume.Define(set)
}

func (c *copier) check() error {
	if len(c.topics) == 0 || c.channel == "" {
		return errors.New("--topic and --channel are required")
	}
	for _, topic := range c.topics {
		if !protocol.ValidName(topic) {
			return errors.New("--topic is invalid")
		}
	}
	if c.target != "" && !protocol.ValidName(c.target) {
		return errors.New("--destination-topic is invalid")
	}
	if !protocol.ValidName(c.channel) {
		return errors.New("--channel is invalid")
	}
	if err := c.consume.CheckSources(); err != nil {
		return err
	}
	if len(c.destinations) == 0 {
		return errors.New("--destination-nsqd-tcp-address required")
	}
	if err := c.checkLoop(); err != nil {
		return err
	}
	if c.batch < 1 {
		return errors.New("--batch-size should be positive")
	}
	if slices.Contains(c.topics, c.consume.DeadLetterTopic) {
		return errors.New("--dead-letter-topic must not be a --topic")
	}
	return c.consume.Check()
}

// checkLoop refuses to read what it publishes, as far as addresses tell.
func (c *copier) checkLoop() error {
	for _, address := range c.destinations {
		for _, topic := range c.topics {
			if slices.Contains(c.consume.NSQDs, address) && c.targetOf(topic) == topic {
				return fmt.Errorf("messages of topic %s would go from %s to itself forever", topic, address)
			}
		}
	}
	return nil
}

func (c *copier) targetOf(topic string) string {
	if c.target != "" {
		return c.target
	}
	return topic
}

// run copies until ctx is cancelled.
func (c *copier) run(ctx context.Context, std utility.Streams) (err error) {
	targets, err := c.targets(std)
	if err != nil {
		return fmt.Errorf("failed creating producer %w", err)
	}
	mode, err := destination.ParseMode(c.mode)
	if err != nil {
		mode = destination.RoundRobin // what NSQ 1.3 takes any other text for
		std.Log.Printf("WARNING: --mode %s, %s is used", err, mode)
	}
	relay := newRelay(destination.New(mode, c.destinations), targets, c.batch,
		latency.NewBoard(c.destinations, c.statusEvery, std.Log), std.Log)
	keeper := touch.New(touch.Interval(c.consume.Options.Config().MsgTimeout))
	defer func() {
		keeper.Stop()
		if !errors.Is(err, consume.ErrForced) { // then a nsqd does not answer, which ends with the process
			relay.stop()
		}
	}()
	var consumers []*consume.Consumer
	for _, topic := range c.topics {
		source := newSource(c.targetOf(topic), &c.filter, relay, keeper, c.consume.MaxInFlight, std.Log)
		consumer, err := c.consume.NewConsumer(topic, c.channel, source, len(targets), std.Log)
		if err == nil {
			source.setAside = consumer.SetAside
			consumers = append(consumers, consumer)
			err = consumer.Connect()
		}
		if err != nil {
			return errors.Join(consume.StopAll(consumers...), err)
		}
	}
	return consume.Wait(ctx, consumers...)
}

func (c *copier) targets(std utility.Streams) ([]*publish.Target, error) {
	var targets []*publish.Target
	for _, address := range c.destinations {
		target, err := publish.NewTarget(func() (publish.Producer, error) {
			return clientopt.NewProducer(address, c.options.Config(), c.consume.ClientLog, std.Log)
		})
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}
