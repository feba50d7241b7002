//go:build unix

package utility

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVar makes the test binary be a program instead of a test: signals and exit codes belong to a
// whole process.
const childVar = "NSQ_UTILITY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVar); mode != "" {
		Main(child(mode))
	}
	os.Exit(m.Run())
}

// child is a program that says on stdout where it is.
func child(mode string) *Program {
	p := &Program{
		Name:  "child",
		Flags: func(*flag.FlagSet) {},
		Run: func(ctx context.Context, std Streams) error {
			io.WriteString(std.Out, "working\n")
			<-ctx.Done()
			io.WriteString(std.Out, "stopping\n")
			if mode == "stuck" {
				select {}
			}
			return nil
		},
	}
	if mode == "hangup" {
		p.StopOn = []os.Signal{syscall.SIGHUP}
	}
	return p
}

// Signals stop a program; a second one ends it when it is stuck.
func TestSignals(t *testing.T) {
	for _, test := range []struct {
		name, mode string
		first      syscall.Signal
		again      bool
		code       int // -1: killed by the signal
		log        string
	}{
		{"SIGTERM", "plain", syscall.SIGTERM, false, 0, ""},
		{"SIGINT", "plain", syscall.SIGINT, false, 0, ""},
		{"SIGHUP kills", "plain", syscall.SIGHUP, false, -1, ""},
		{"SIGHUP stops where it should", "hangup", syscall.SIGHUP, false, 0, ""},
		{"second signal", "stuck", syscall.SIGTERM, true, 1, "received terminated while stopping, exiting at once\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // one that hangs is killed
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			// The race detector would wait a second at each exit for reports of others.
			cmd.Env = append(os.Environ(), childVar+"="+test.mode, "GORACE=atexit_sleep_ms=0")
			var log strings.Builder
			cmd.Stderr = &log
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			expect := func(want string) {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("stdout says %q, want %q", lines.Text(), want)
				}
			}
			expect("working")
			cmd.Process.Signal(test.first)
			if test.code >= 0 {
				expect("stopping")
			}
			if test.again {
				cmd.Process.Signal(test.first)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if text := date.ReplaceAllString(log.String(), ""); text != test.log {
				t.Errorf("log %q, want %q", text, test.log)
			}
		})
	}
}
