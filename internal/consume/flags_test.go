package consume

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

// parse returns the flags of a command line.
func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := NewFlags("prog")
	set := flag.NewFlagSet("prog", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f.Define(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// There must be one kind of source.
func TestCheckSources(t *testing.T) {
	for args, want := range map[string]error{
		"":                           ErrNoSource,
		"--nsqd-tcp-address=a:1":     nil,
		"--lookupd-http-address=a:1": nil,
		"--nsqd-tcp-address=a:1 --lookupd-http-address=b:1":     ErrTwoSources,
		"--nsqd-tcp-address=a:1 --nsqd-tcp-address=b:1":         nil,
		"--lookupd-http-address=a:1 --lookupd-http-address=b:1": nil,
	} {
		if err := parse(t, strings.Fields(args)...).CheckSources(); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", args, err, want)
		}
	}
}

// A limit of attempts and a place for what exceeds it go together.
func TestCheck(t *testing.T) {
	for args, want := range map[string]string{
		"":                                       "",
		"--max-attempts=3 --dead-letter-topic=d": "",
		"--max-attempts=65534 --dead-letter-topic=d": "",
		"--max-attempts=65535 --dead-letter-topic=d": "--max-attempts must be between 0 and 65534",
		"--max-attempts=-1 --dead-letter-topic=d":    "--max-attempts must be between 0 and 65534",
		"--max-attempts=3":                           "--max-attempts requires --dead-letter-topic: nothing is discarded",
		"--dead-letter-topic=d":                      "--dead-letter-topic requires --max-attempts",
		"--max-attempts=3 --dead-letter-topic=d$":    "--dead-letter-topic is invalid",
	} {
		err := parse(t, strings.Fields(args)...).Check()
		if got := errors.Join(err); (got == nil) != (want == "") || got != nil && got.Error() != want {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}

// The flag for messages in flight wins over the option of the client; attempts have no limit by default.
func TestConfig(t *testing.T) {
	c := parse(t, "--max-in-flight=7", "--consumer-opt=max_in_flight,9").config()
	if c.MaxInFlight != 7 || c.MaxAttempts != 0 {
		t.Errorf("max in flight %d, max attempts %d", c.MaxInFlight, c.MaxAttempts)
	}
}
