//go:build unix

// Package e2e tests the daemons as their users have them: real processes, spoken to by the go-nsq
// client, by HTTP and by signals, and judged by what arrives, by their exit codes and by the files
// they leave. It knows nothing of what is inside them.
//
// NSQ_E2E_LONG=1 makes the tests longer: more messages, more rounds.
//
// Source: nsqd-config spec, sections 8 to 10; nsqd-storage spec, sections 3 to 6 and 13; nsqd-tcp spec,
// sections 17 to 22; nsqlookupd spec, sections 4 and 8; apps spec, sections 2, 6 to 10.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"nsq/internal/testutil"
)

// programs are what the tests run.
var programs *testutil.Programs

func TestMain(m *testing.M) {
	var err error
	if programs, err = testutil.Build(append(utilities, "nsqd", "nsqlookupd")...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := programs.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "remove programs:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// long returns the number for the usual tests, or the one for the longer ones.
func long(usual, longer int) int {
	if os.Getenv("NSQ_E2E_LONG") == "1" {
		return longer
	}
	return usual
}
