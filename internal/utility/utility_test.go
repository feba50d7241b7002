package utility

import (
	"context"
	"errors"
	"flag"
	"io"
	"regexp"
	"strings"
	"testing"

	"nsq/internal/version"
)

// sample is a program that notes which of its functions were called.
type sample struct {
	calls   []string
	name    string
	list    List
	failure map[string]error // by function
}

func (s *sample) program() *Program {
	call := func(function string) error {
		s.calls = append(s.calls, function)
		return s.failure[function]
	}
	return &Program{
		Name: "prog",
		Flags: func(set *flag.FlagSet) {
			set.StringVar(&s.name, "name", "x", "a name")
			set.Var(&s.list, "list", "a list")
		},
		Early: func([]string) error { return call("early") },
		Check: func() error { return call("check") },
		Run:   func(context.Context, Streams) error { return call("run") },
	}
}

const usage = "Usage of ./prog:\n" +
	"  -list value\n    \ta list\n" +
	"  -name string\n    \ta name (default \"x\")\n" +
	"  -version\n    \tprint the version and exit\n"

// What a command line leads to: the functions that are called, what is written, the exit code.
func TestExecute(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name, args, failing string
		calls, out, err     string // err without the date
		code                int
	}{
		{name: "work", args: "-name y --list=a,b -list c", calls: "early check run"},
		{name: "help", args: "-h", err: usage},
		{name: "long help", args: "--help", err: usage},
		{name: "unknown flag", args: "--nope", err: "flag provided but not defined: -nope\n" + usage, code: 2},
		{name: "version", args: "--version", calls: "early", out: "prog v" + version.Version + "\n"},
		{name: "version before leftovers", args: "--version foo", calls: "early", out: "prog v" + version.Version + "\n"},
		{name: "early before version", args: "--version", failing: "early", calls: "early", err: "DATE broken\n", code: 1},
		{name: "leftovers", args: "foo --name y", calls: "early", err: "DATE unknown arguments: [foo --name y]\n", code: 1},
		{name: "check fails", failing: "check", calls: "early check", err: "DATE broken\n", code: 1},
		{name: "run fails", failing: "run", calls: "early check run", err: "DATE broken\n", code: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &sample{failure: map[string]error{test.failing: broken}}
			var out, errs strings.Builder
			code := Execute(t.Context(), s.program(), append([]string{"./prog"}, strings.Fields(test.args)...),
				Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			if calls := strings.Join(s.calls, " "); calls != test.calls {
				t.Errorf("calls %q, want %q", calls, test.calls)
			}
			if out.String() != test.out {
				t.Errorf("stdout %q, want %q", out.String(), test.out)
			}
			if got := date.ReplaceAllString(errs.String(), "DATE "); got != test.err {
				t.Errorf("stderr %q, want %q", got, test.err)
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if test.name == "work" && (s.name != "y" || s.list.String() != "a,b,c" || len(s.list) != 2) {
				t.Errorf("flags are %q and %q", s.name, s.list)
			}
		})
	}
}

var date = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)

// A version that cannot be printed is a failure.
func TestVersionIsWritten(t *testing.T) {
	var errs strings.Builder
	r, w := io.Pipe()
	r.Close()
	code := Execute(t.Context(), (&sample{}).program(), []string{"prog", "-version"}, Streams{Out: w, Err: &errs})
	if code != 1 || !strings.Contains(errs.String(), "closed pipe") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}
