package consume

import (
	"errors"
	"flag"

	"github.com/nsqio/go-nsq"

	"nsq/internal/clientopt"
	"nsq/internal/protocol"
	"nsq/internal/utility"
)

// Errors of CheckSources.
var (
	ErrNoSource   = errors.New("--nsqd-tcp-address or --lookupd-http-address required")
	ErrTwoSources = errors.New("use --nsqd-tcp-address or --lookupd-http-address not both")
)

const (
	defaultMaxInFlight = 200
	maxAttempts        = 1<<16 - 1 // nsqd counts up to here
)

// Flags are the settings of every consumer of a program. They do not change once there is a consumer.
type Flags struct {
	NSQDs           utility.List // --nsqd-tcp-address
	Lookupds        utility.List // --lookupd-http-address: host:port or URL
	MaxInFlight     int          // --max-in-flight, messages of each topic
	Options         *clientopt.Options
	ClientLog       clientopt.Level // --client-log-level
	MaxAttempts     int             // --max-attempts; 0 is no limit
	DeadLetterTopic string          // --dead-letter-topic

	// Patient lets a program start while no nsqd can be reached; it is no flag.
	Patient bool

	// Rejects is for programs that set messages aside by themselves, for which a dead-letter topic makes
	// sense without a limit of attempts; it is no flag.
	Rejects bool
}

// NewFlags returns the defaults for a program.
func NewFlags(program string) *Flags {
	return &Flags{MaxInFlight: defaultMaxInFlight, Options: clientopt.New(program), ClientLog: clientopt.DefaultLevel}
}

// Define adds the flags to the set.
func (f *Flags) Define(set *flag.FlagSet) {
	set.Var(&f.NSQDs, "nsqd-tcp-address", "TCP address of a nsqd, host:port (may be given multiple times)")
	set.Var(&f.Lookupds, "lookupd-http-address", "HTTP address of a nsqlookupd, host:port or URL (may be given multiple times)")
	set.IntVar(&f.MaxInFlight, "max-in-flight", f.MaxInFlight, "most messages to have in flight at a time, for each topic")
	set.Var(f.Options, "consumer-opt", clientopt.Help)
	set.Var(&f.ClientLog, "client-log-level", clientopt.LevelHelp)
	set.IntVar(&f.MaxAttempts, "max-attempts", 0, "deliveries after which a message moves to --dead-letter-topic; 0 is no limit")
	set.StringVar(&f.DeadLetterTopic, "dead-letter-topic", "", "topic, on the nsqd it came from, for messages that failed --max-attempts times")
}

// CheckSources says whether there is one kind of source and not both.
func (f *Flags) CheckSources() error {
	if len(f.NSQDs) == 0 && len(f.Lookupds) == 0 {
		return ErrNoSource
	}
	if len(f.NSQDs) > 0 && len(f.Lookupds) > 0 {
		return ErrTwoSources
	}
	return nil
}

// Check says what is wrong with the flags of this package alone, sources aside.
func (f *Flags) Check() error {
	switch {
	case f.MaxAttempts < 0 || f.MaxAttempts >= maxAttempts:
		return errors.New("--max-attempts must be between 0 and 65534")
	case f.DeadLetterTopic != "" && !protocol.ValidName(f.DeadLetterTopic):
		return errors.New("--dead-letter-topic is invalid")
	case f.MaxAttempts > 0 && f.DeadLetterTopic == "":
		return errors.New("--max-attempts requires --dead-letter-topic: nothing is discarded")
	case f.MaxAttempts == 0 && f.DeadLetterTopic != "" && !f.Rejects:
		return errors.New("--dead-letter-topic requires --max-attempts")
	}
	return nil
}

// config is a copy of the client's options with what flags of their own set.
func (f *Flags) config() *nsq.Config {
	config := f.Options.Config()
	config.MaxInFlight = f.MaxInFlight
	return config
}
