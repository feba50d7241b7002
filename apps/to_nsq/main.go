// Command to_nsq publishes what it reads from its standard input, split at a delimiter.
//
// Source: apps spec, section 12.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"time"

	"nsq/internal/clientopt"
	"nsq/internal/pace"
	"nsq/internal/progress"
	"nsq/internal/protocol"
	"nsq/internal/publish"
	"nsq/internal/utility"
)

const name = "to_nsq"

func main() { utility.Main(newToNSQ().program()) }

// Values of --mode.
const (
	modeAll      = "all"
	modeFailover = "failover"
)

// toNSQ is the program with its flags.
type toNSQ struct {
	topic     string
	delimiter string
	nsqds     utility.List
	mode      string
	batch     int
	retries   int
	rate      int64
	options   *clientopt.Options
	clientLog clientopt.Level

	separator byte // of the delimiter, once it is checked
}

func newToNSQ() *toNSQ {
	return &toNSQ{options: clientopt.New(name), clientLog: clientopt.DefaultLevel}
}

func (p *toNSQ) program() *utility.Program {
	return &utility.Program{Name: name, Flags: p.define, Check: p.check, Run: p.run}
}

func (p *toNSQ) define(set *flag.FlagSet) {
	set.StringVar(&p.topic, "topic", "", "topic to publish to")
	set.StringVar(&p.delimiter, "delimiter", "\n", `byte between two messages, as it is or as \n, \t, \0, \x1f`)
	set.Var(&p.nsqds, "nsqd-tcp-address", "TCP address of a nsqd to publish to, host:port (may be given multiple times)")
	set.StringVar(&p.mode, "mode", modeAll, "with several nsqd: all has each message published to every one, failover to one of them")
	set.IntVar(&p.batch, "batch-size", 200, "most messages to publish at once; none waits for others")
	set.IntVar(&p.retries, "retries", 4, "how often to try again, with growing pauses, before a nsqd counts as failed")
	set.Int64Var(&p.rate, "rate", 0, "most messages to publish a second; 0 is no limit")
	set.Var(p.options, "producer-opt", clientopt.Help)
	set.Var(&p.clientLog, "client-log-level", clientopt.LevelHelp)
}

func (p *toNSQ) check() (err error) {
	if p.topic == "" {
		return errors.New("--topic required")
	}
	if !protocol.ValidName(p.topic) {
		return errors.New("--topic is invalid")
	}
	if p.separator, err = parseDelimiter(p.delimiter); err != nil {
		return err
	}
	if len(p.nsqds) == 0 {
		return errors.New("--nsqd-tcp-address required")
	}
	switch {
	case p.mode != modeAll && p.mode != modeFailover:
		return errors.New("--mode must be all or failover")
	case p.batch < 1:
		return errors.New("--batch-size should be positive")
	case p.retries < 0:
		return errors.New("--retries should not be negative")
	}
	return nil
}

// parseDelimiter reads one byte, which may be written as an escape sequence of Go, or \0.
func parseDelimiter(text string) (byte, error) {
	if len(text) != 1 {
		if text == `\0` {
			return 0, nil
		}
		unquoted, err := strconv.Unquote(`"` + text + `"`)
		if err != nil || len(unquoted) != 1 {
			return 0, errors.New("--delimiter must be a single byte")
		}
		text = unquoted
	}
	return text[0], nil
}

// run publishes until the input ends, ctx is cancelled, or there is no nsqd left to publish to.
func (p *toNSQ) run(ctx context.Context, std utility.Streams) error {
	targets, err := p.targets(std)
	if err != nil {
		return err
	}
	defer func() {
		for _, t := range targets {
			t.nsqd.Stop()
		}
	}()
	if p.rate >= 1 {
		std.Log.Printf("Throttling messages rate to max:%d/second", p.rate)
	}
	counters := new(progress.Counters)
	line := progress.Start(std.Err, progress.IsTerminal(std.Err), "published", counters)
	defer line.Stop()
	sender := p.sender(targets, std)
	feed := &feed{
		chunks: readChunks(ctx, std.In), split: splitter{separator: p.separator}, batch: p.batchSize(),
		throttle: pace.NewThrottle(p.rate), sender: sender, log: std.Log, counters: counters,
	}
	err = feed.run(ctx)
	if missing := sender.missing(); missing != nil {
		if err != nil {
			std.Log.Print(err)
		}
		return missing
	}
	return err
}

// targets are the nsqd, each once.
func (p *toNSQ) targets(std utility.Streams) ([]*target, error) {
	var targets []*target
	for i, address := range p.nsqds {
		if slices.Contains(p.nsqds[:i], address) {
			continue
		}
		nsqd, err := publish.NewTarget(func() (publish.Producer, error) {
			producer, err := clientopt.NewProducer(address, p.options.Config(), p.clientLog, std.Log)
			if err != nil {
				return nil, fmt.Errorf("failed to create nsq.Producer - %w", err)
			}
			return producer, nil
		})
		if err != nil {
			return nil, err
		}
		targets = append(targets, &target{address: address, topic: p.topic, nsqd: nsqd, log: std.Log})
	}
	return targets, nil
}

func (p *toNSQ) sender(targets []*target, std utility.Streams) sender {
	if p.mode == modeFailover {
		return newToOne(targets, p.retries)
	}
	return newToAll(targets, p.retries, std.Log)
}

// batchSize is the most messages to publish at once. With a rate they must not wait long for each other.
func (p *toNSQ) batchSize() int {
	if p.rate < 1 {
		return p.batch
	}
	const longestWait = 100 * time.Millisecond
	return int(max(1, min(int64(p.batch), p.rate/int64(time.Second/longestWait))))
}
