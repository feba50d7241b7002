// Command nsq_to_http makes a HTTP request of each message of a topic.
//
// A status of success finishes the message. Any other, and a request that fails, has it requeued, for as
// long as it takes, while the consumer backs off. With --dead-letter-topic messages whose answer is in
// --dead-letter-status, which says that the message itself is wrong, move to that topic instead.
//
// Source: apps spec, section 8.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"nsq/internal/consume"
	"nsq/internal/destination"
	"nsq/internal/latency"
	"nsq/internal/pace"
	"nsq/internal/touch"
	"nsq/internal/utility"
)

const (
	name               = "nsq_to_http"
	defaultContentType = "application/octet-stream"
	// modeAll sends each message to every address.
	modeAll = "all"
)

func main() { utility.Main(newSender().program()) }

// sender is the program with its flags.
type sender struct {
	topic          string
	channel        string
	concurrency    int // requests at the same time
	posts, gets    utility.List
	headers        utility.List
	contentType    string
	mode           string
	sample         float64
	connectTimeout time.Duration
	requestTimeout time.Duration
	statusEvery    int
	rejecting      statuses // that say that a message will never be accepted
	consume        *consume.Flags

	requests *requests // of the flags, once they are checked
}

func newSender() *sender {
	flags := consume.NewFlags(name)
	flags.Rejects = true
	return &sender{
		rejecting: statuses{{400, 400}, {413, 415}, {422, 422}},
		consume:   flags,
	}
}

func (s *sender) program() *utility.Program {
	return &utility.Program{Name: name, Flags: s.define, Check: s.check, Run: s.run}
}

func (s *sender) define(set *flag.FlagSet) {
	set.StringVar(&s.topic, "topic", "", "topic to read")
	set.StringVar(&s.channel, "channel", name, "channel to read")
	set.IntVar(&s.concurrency, "n", 100, "most messages to handle at the same time")
	set.Var(&s.posts, "post", "URL to send POST requests to, with the message as body (may be given multiple times)")
	set.Var(&s.gets, "get", "URL to send GET requests to, with one %s in the place of the message (may be given multiple times)")
	set.Var(&s.headers, "header", "header of every request, 'Name: value', Host included (may be given multiple times)")
	set.StringVar(&s.contentType, "content-type", defaultContentType, "Content-Type of POST requests")
	set.StringVar(&s.mode, "mode", string(destination.HostPool), "which address gets a message: hostpool, round-robin, epsilon-greedy or all")
	set.Float64Var(&s.sample, "sample", 1, "part of the messages to send, from 0 to 1; the others are finished")
	set.DurationVar(&s.connectTimeout, "http-client-connect-timeout", 2*time.Second, "most time to connect; 0 is no limit")
	set.DurationVar(&s.requestTimeout, "http-client-request-timeout", 20*time.Second, "most time for a request with its answer; 0 is no limit")
	set.IntVar(&s.statusEvery, "status-every", 250, "requests between two lines of latencies in the log; 0 is no line")
	set.Var(&s.rejecting, "dead-letter-status", "statuses with which a message moves to --dead-letter-topic at once, if there is one, instead of being tried again")
	s.consume.Define(set)
}

func (s *sender) check() error {
	headers, err := parseHeaders(s.headers)
	switch {
	case err != nil:
		return err
	case s.topic == "" || s.channel == "":
		return errors.New("--topic and --channel are required")
	case s.contentType != defaultContentType && len(s.posts) == 0:
		return errors.New("--content-type only used with --post")
	case s.contentType == "":
		return errors.New("--content-type requires a value when used")
	}
	if err := s.consume.CheckSources(); err != nil {
		return err
	}
	switch {
	case len(s.gets) == 0 && len(s.posts) == 0:
		return errors.New("--get or --post required")
	case len(s.gets) > 0 && len(s.posts) > 0:
		return errors.New("use --get or --post not both")
	case len(s.gets) > 0:
		s.requests, err = newGets(s.gets, headers)
	default:
		s.requests, err = newPosts(s.posts, headers, s.contentType)
	}
	if err != nil {
		return err
	}
	if !(s.sample >= 0 && s.sample <= 1) { // NaN is neither
		return errors.New("ERROR: --sample must be between 0.0 and 1.0")
	}
	if s.consume.DeadLetterTopic == s.topic {
		return errors.New("--dead-letter-topic must not be the --topic")
	}
	return s.consume.Check()
}

// run sends until ctx is cancelled.
func (s *sender) run(ctx context.Context, std utility.Streams) error {
	client := newClient(s.connectTimeout, s.requestTimeout, s.concurrency)
	defer client.CloseIdleConnections()
	keeper := touch.New(touch.Interval(s.consume.Options.Config().MsgTimeout))
	defer keeper.Stop()
	addresses := s.requests.addresses
	handler := &handler{
		endpoint: endpoint{client: client, requests: s.requests, rejecting: s.rejecting},
		board:    latency.NewBoard(addresses, s.statusEvery, std.Log),
		sampler:  pace.NewSampler(s.sample), keeper: keeper,
	}
	if mode, err := destination.ParseMode(s.mode); err == nil {
		handler.pool = destination.New(mode, addresses)
	} else if s.mode != modeAll { // NSQ 1.3 takes any other text for it
		std.Log.Printf("WARNING: --mode %s, every message goes to all addresses; --mode=%s says so", err, modeAll)
	}
	consumer, err := s.consume.NewConsumer(s.topic, s.channel, handler, s.concurrency, std.Log)
	if err != nil {
		return err
	}
	if s.concurrency < 1 {
		return errors.New("no handlers") // which could not even be stopped
	}
	handler.setAside = consumer.SetAside
	if err := consumer.Connect(); err != nil {
		return errors.Join(consumer.Stop(), err)
	}
	if err := consume.Wait(ctx, consumer); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
