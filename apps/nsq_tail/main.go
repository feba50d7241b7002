// Command nsq_tail prints the messages of topics as they come.
//
// Source: apps spec, section 10.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"

	"nsq/internal/consume"
	"nsq/internal/utility"
)

const name = "nsq_tail"

func main() { utility.Main(newTail().program()) }

// tail is the program with its flags.
type tail struct {
	topics     utility.List
	channel    string
	count      int // messages of all topics together; 0 or less: no end
	printTopic bool
	format     format
	consume    *consume.Flags
}

func newTail() *tail { return &tail{consume: consume.NewFlags(name)} }

func (t *tail) program() *utility.Program {
	return &utility.Program{Name: name, Flags: t.define, Check: t.check, Run: t.run}
}

func (t *tail) define(set *flag.FlagSet) {
	set.Var(&t.topics, "topic", "topic to print (may be given multiple times)")
	set.StringVar(&t.channel, "channel", "", "channel; by default one of its own that is gone with the program")
	set.IntVar(&t.count, "n", 0, "messages to print, of all topics together, before the program ends; 0 is no end")
	set.BoolVar(&t.printTopic, "print-topic", false, "print the topic before each message")
	set.Var(&t.format, "format", "how to print a message: raw, hex, or json with what is known of it")
	t.consume.Define(set)
}

func (t *tail) check() error {
	if err := t.consume.CheckSources(); err != nil {
		return err
	}
	if len(t.topics) == 0 {
		return errors.New("--topic required")
	}
	return t.consume.Check()
}

// run prints until ctx is cancelled or all is printed that was asked for.
func (t *tail) run(ctx context.Context, std utility.Streams) error {
	if t.channel == "" {
		t.channel = fmt.Sprintf("tail%06d#ephemeral", rand.IntN(999999))
	}
	if t.count > 0 {
		t.consume.MaxInFlight = min(t.consume.MaxInFlight, t.count)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	out := &printer{out: std.Out, left: max(t.count, 0), end: end}
	var consumers []*consume.Consumer
	for _, topic := range t.topics {
		std.Log.Printf("Adding consumer for topic: %s", topic)
		handler := &handler{printer: out, line: t.line(topic)}
		consumer, err := t.consume.NewConsumer(topic, t.channel, handler, 1, std.Log)
		if err == nil {
			consumers = append(consumers, consumer)
			err = consumer.Connect()
		}
		if err != nil {
			return errors.Join(consume.StopAll(consumers...), err)
		}
	}
	err := consume.Wait(ctx, consumers...)
	return errors.Join(err, out.failure())
}
