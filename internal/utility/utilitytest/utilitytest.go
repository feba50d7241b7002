// Package utilitytest runs a utility in the process of its test, from the command line to the exit
// code. It does not know any utility.
package utilitytest

import (
	"context"
	"testing"
	"time"

	"nsq/internal/testutil"
	"nsq/internal/utility"
)

// Running is a utility at work. When its test ends it is stopped, and if the test failed its log is
// shown.
type Running struct {
	Out, Log testutil.Buffer    // stdout and stderr
	Stop     context.CancelFunc // asks it to stop, as SIGTERM does

	t    testing.TB
	code chan int
}

// Start starts a program with these arguments and no input.
func Start(t testing.TB, program *utility.Program, args ...string) *Running {
	ctx, stop := context.WithCancel(t.Context())
	r := &Running{Stop: stop, t: t, code: make(chan int, 1)}
	line := append([]string{program.Name}, args...)
	go func() { r.code <- utility.Execute(ctx, program, line, utility.Streams{Out: &r.Out, Err: &r.Log}) }()
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("log of %q:\n%s", line, r.Log.String())
		}
	})
	return r
}

// Code waits for the exit code.
func (r *Running) Code() int {
	r.t.Helper()
	select {
	case code := <-r.code:
		return code
	case <-time.After(testutil.Patience):
		r.t.Fatalf("does not end; stdout %q", r.Out.String())
		return 0
	}
}

// Await wants it to end by itself with this exit code.
func (r *Running) Await(want int) {
	r.t.Helper()
	if code := r.Code(); code != want {
		r.t.Errorf("exit code %d, want %d", code, want)
	}
}

// End stops it and wants this exit code.
func (r *Running) End(want int) {
	r.t.Helper()
	r.Stop()
	r.Await(want)
}
