package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"nsq/internal/archive"
	"nsq/internal/consume"
	"nsq/internal/discover"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/touch"
)

// refreshAfterFailure is how soon topics are looked for again when a nsqlookupd has failed, at most.
const refreshAfterFailure = 5 * time.Second

// touchAtLeast is how often waiting messages are touched at least, for a nsqd with a short timeout.
const touchAtLeast = 2 * time.Second

// archiver has a consumer and a writer for each topic. It belongs to the goroutine of run.
type archiver struct {
	flags  *toFile
	log    *log.Logger
	client *stdlog.Logger // for the lines of the go-nsq client
	topics map[string]*topic

	keeper    *touch.Keeper
	hangups   chan os.Signal
	stopMover func() // also waits for it
}

// topic is what there is for each topic.
type topic struct {
	consumer *consume.Consumer
	writer   *writer
}

func newArchiver(flags *toFile, logger *log.Logger, client *stdlog.Logger) *archiver {
	a := &archiver{
		flags: flags, log: logger, client: client,
		topics: make(map[string]*topic), keeper: touch.New(flags.touchInterval()),
		hangups: make(chan os.Signal, 1), stopMover: func() {},
	}
	signal.Notify(a.hangups, syscall.SIGHUP)
	if mover := flags.archive.Mover; mover != nil {
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { mover.Run(ctx) })
		a.stopMover = func() {
			stop()
			running.Wait()
		}
	}
	return a
}

func (t *toFile) touchInterval() time.Duration {
	return min(touch.Interval(t.consume.Options.Config().MsgTimeout), touchAtLeast)
}

// follow archives topics, the given ones or those that it finds, until ctx is cancelled. An error is a
// setting that can never do.
func (a *archiver) follow(ctx context.Context) error {
	if len(a.flags.topics) > 0 {
		return a.followGiven(ctx)
	}
	return a.followFound(ctx)
}

func (a *archiver) followGiven(ctx context.Context) error {
	for _, name := range a.flags.topics {
		if pattern := a.flags.pattern; pattern != nil && !pattern.MatchString(name) {
			a.log.Warnf("skipping topic %s (doesn't match pattern %s)", name, pattern)
			continue
		}
		if err := a.add(name); err != nil {
			return fmt.Errorf("ERROR: %w", err)
		}
	}
	a.wait(ctx, nil)
	return nil
}

func (a *archiver) followFound(ctx context.Context) error {
	client := httpx.NewClient(httpx.ClientConfig{
		ConnectTimeout: a.flags.connectTimeout, RequestTimeout: a.flags.requestTimeout,
	})
	defer client.Close()
	finder := &discover.Topics{Client: client, Addresses: a.flags.consume.Lookupds, Pattern: a.flags.pattern}
	for {
		found, err := finder.Find(ctx)
		next := a.flags.topicRefresh
		if err != nil && ctx.Err() == nil {
			a.log.Errorf("could not retrieve topic list: %v", err)
			next = min(next, refreshAfterFailure)
		}
		for _, name := range found {
			if err := a.add(name); err != nil {
				a.log.Errorf("%v", err)
			}
		}
		refresh := time.NewTimer(next)
		if !a.wait(ctx, refresh.C) {
			refresh.Stop()
			return nil
		}
	}
}

// wait passes on hang-ups until the time has come, and says whether it has: not if ctx is cancelled.
func (a *archiver) wait(ctx context.Context, timer <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer:
			return true
		case <-a.hangups:
			for _, t := range a.topics {
				t.writer.hangUp()
			}
		}
	}
}

// add begins to archive a topic, unless it is archived already.
func (a *archiver) add(name string) error {
	if a.topics[name] != nil {
		return nil
	}
	t, err := a.newTopic(name)
	if err != nil {
		return fmt.Errorf("couldn't create logger for new topic %s: %w", name, err)
	}
	a.topics[name] = t
	return nil
}

func (a *archiver) newTopic(name string) (*topic, error) {
	prefix := fmt.Sprintf("[%s/%s] ", name, a.flags.channel)
	logf := func(level log.Level, format string, args ...any) {
		if a.log.Enabled(level) {
			a.log.Logf(level, "%s%s", prefix, fmt.Sprintf(format, args...))
		}
	}
	files, err := archive.New(a.flags.archive, name, logf)
	if err != nil {
		return nil, err
	}
	w := newWriter(a.flags.writerConfig(), files, a.keeper, logf)
	consumer, err := a.flags.consume.NewConsumer(name, a.flags.channel, w, 1, a.client)
	if err != nil {
		return nil, err
	}
	files.Adopt()
	w.start(consumer)
	t := &topic{consumer: consumer, writer: w}
	if err := consumer.Connect(); err != nil {
		return nil, errors.Join(err, stopTopics(t))
	}
	return t, nil
}

// stop ends everything: messages that have come are written and finished first.
func (a *archiver) stop() error {
	defer signal.Stop(a.hangups) // not earlier: it would kill
	var topics []*topic
	for _, t := range a.topics {
		topics = append(topics, t)
	}
	err := stopTopics(topics...)
	a.keeper.Stop()
	a.stopMover()
	if mover := a.flags.archive.Mover; mover != nil {
		err = errors.Join(err, mover.Drain())
	}
	return err
}

// stopTopics stops topics at the same time. The writers go on until no consumer has a message left.
func stopTopics(topics ...*topic) error {
	var consumers []*consume.Consumer
	for _, t := range topics {
		t.writer.hurry()
		consumers = append(consumers, t.consumer)
	}
	errs := []error{consume.StopAll(consumers...)}
	for _, t := range topics {
		errs = append(errs, t.writer.stop())
	}
	return errors.Join(errs...)
}
