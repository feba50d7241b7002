// Command nsq_stat prints the statistics of a channel, of all nsqd that have it together, in a row for
// each interval.
//
// Source: apps spec, section 11.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nsq/internal/httpx"
	"nsq/internal/utility"
)

const name = "nsq_stat"

func main() { utility.Main(newStat().program()) }

// stat is the program with its flags.
type stat struct {
	topic, channel string
	interval       time.Duration
	count          count
	json           bool
	nsqds          utility.List
	lookupds       utility.List
	connectTimeout time.Duration
	requestTimeout time.Duration
}

func newStat() *stat { return &stat{} }

func (s *stat) program() *utility.Program {
	return &utility.Program{
		Name: name, Flags: s.define, Check: s.check, Run: s.run,
		StopOn: []os.Signal{syscall.SIGHUP},
	}
}

func (s *stat) define(set *flag.FlagSet) {
	set.StringVar(&s.topic, "topic", "", "topic of the channel")
	set.StringVar(&s.channel, "channel", "", "channel to show")
	set.DurationVar(&s.interval, "interval", 2*time.Second, "time between two rows")
	set.Var(&s.count, "count", "rows to print before the program ends (default: no end)")
	set.BoolVar(&s.json, "json", false, "print one JSON object a row")
	set.Var(&s.nsqds, "nsqd-http-address", "HTTP address of a nsqd, host:port (may be given multiple times)")
	set.Var(&s.lookupds, "lookupd-http-address", "HTTP address of a nsqlookupd, host:port (may be given multiple times)")
	set.DurationVar(&s.connectTimeout, "http-client-connect-timeout", 2*time.Second, "most time to connect for a HTTP request")
	set.DurationVar(&s.requestTimeout, "http-client-request-timeout", 5*time.Second, "most time for a whole HTTP request")
}

func (s *stat) check() error {
	switch {
	case s.topic == "" || s.channel == "":
		return errors.New("--topic and --channel are required")
	case s.interval <= 0:
		return errors.New("--interval should be positive")
	case s.connectTimeout <= 0:
		return errors.New("--http-client-connect-timeout should be positive")
	case s.requestTimeout <= 0:
		return errors.New("--http-client-request-timeout should be positive")
	case s.count.given && s.count.rows <= 0:
		return errors.New("--count should be positive")
	case len(s.nsqds) == 0 && len(s.lookupds) == 0:
		return errors.New("--nsqd-http-address or --lookupd-http-address required")
	case len(s.nsqds) > 0 && len(s.lookupds) > 0:
		return errors.New("use --nsqd-http-address or --lookupd-http-address not both")
	}
	if err := checkAddresses("--nsqd-http-address", s.nsqds); err != nil {
		return err
	}
	return checkAddresses("--lookupd-http-address", s.lookupds)
}

func checkAddresses(option string, addresses []string) error {
	for _, address := range addresses {
		if strings.Contains(address, "://") {
			return fmt.Errorf("%s error - address should not contain scheme", option)
		}
	}
	return nil
}

// run prints rows until ctx is cancelled or there are enough.
func (s *stat) run(ctx context.Context, std utility.Streams) error {
	client := httpx.NewClient(httpx.ClientConfig{ConnectTimeout: s.connectTimeout, RequestTimeout: s.requestTimeout})
	defer client.Close()
	poller := &poller{
		client: client, topic: s.topic, channel: s.channel, nsqds: s.nsqds, lookupds: s.lookupds, log: std.Log,
	}
	out := newTable(std.Out)
	if s.json {
		out = newJSONLines(std.Out)
	}
	return s.watch(ctx, poller, out)
}

// watch polls in every interval. What goes wrong with the first poll is fatal, for it is likely to be a
// wrong command line; later it is a remark in the row.
func (s *stat) watch(ctx context.Context, poller *poller, out output) error {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	before := poller.poll(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if before.err != nil {
		return before.err
	}
	if err := out.begin(); err != nil {
		return fmt.Errorf("print header: %w", err)
	}
	for rows := 1; ; rows++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := poller.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := out.row(rows, newRow(before, now, s.interval)); err != nil {
			return fmt.Errorf("print row: %w", err)
		}
		if s.count.given && rows >= s.count.rows {
			return nil
		}
		before = now
	}
}

// count is the flag --count, which need not be given.
type count struct {
	given bool
	rows  int
}

func (c *count) String() string { return "" }

func (c *count) Set(text string) error {
	rows, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return err
	}
	c.given, c.rows = true, int(rows)
	return nil
}
