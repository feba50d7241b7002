package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"nsq/internal/version"
)

// The real program, from the command line to the exit code. What it does in between is tested with
// its parts.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nsqlookupd")
	if output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that hangs is killed
	defer cancel()
	command := func(args ...string) *exec.Cmd {
		free := []string{"--tcp-address=127.0.0.1:0", "--http-address=127.0.0.1:0"}
		return exec.CommandContext(ctx, program, append(free, args...)...)
	}
	logTime := regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} `)

	ends := []struct {
		arg            string
		stdout, stderr string // stderr: how it begins
		code           int
	}{
		{"--version", version.Line("nsqlookupd") + "\n", "", 0},
		{"--help", "", "Usage of nsqlookupd:\n", 0},
		{"-bogus", "", "flag provided but not defined: -bogus\nUsage of nsqlookupd:\n", 2},
		{"stray", "", "unexpected argument \"stray\": ", 2},
		{"-inactive-producer-timeout=5", "", "invalid value \"5\" for flag -inactive-producer-timeout: parse error\n", 2},
		{"-log-level=foo", "", "invalid value \"foo\" for flag -log-level: invalid log level 'foo' (debug, info, warn, error, fatal)\n", 2},
		{"--config=/missing", "", "[nsqlookupd] FATAL: failed to load config file /missing - open /missing: no such file or directory\n", 1},
		{"--tombstone-lifetime=0", "", "[nsqlookupd] FATAL: failed to instantiate nsqlookupd - --tombstone-lifetime must be at least 1ns, is 0s\n", 1},
		{"--http-address=nowhere", "", "[nsqlookupd] FATAL: failed to instantiate nsqlookupd - listen (nowhere) failed - ", 1},
	}
	for _, test := range ends {
		cmd := command("--log-prefix=other", "--log-level=error", test.arg)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		said := logTime.ReplaceAllString(stderr.String(), "")
		if stdout.String() != test.stdout || !strings.HasPrefix(said, test.stderr) || cmd.ProcessState.ExitCode() != test.code {
			t.Errorf("%s: stdout %q, stderr %.200q, code %d\nwant %q, %q, %d",
				test.arg, &stdout, said, cmd.ProcessState.ExitCode(), test.stdout, test.stderr, test.code)
		}
	}

	cmd := command()
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for listening := 0; listening < 2 && lines.Scan(); {
		if strings.Contains(lines.Text(), ": listening on 127.0.0.1:") {
			listening++
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, rest.String())
	}
}
