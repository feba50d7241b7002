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
	program := filepath.Join(t.TempDir(), "nsqadmin")
	if output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that hangs is killed
	defer cancel()
	command := func(args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, program, append([]string{"--http-address=127.0.0.1:0"}, args...)...)
	}
	logTime := regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} `)
	const failed = "[nsqadmin] FATAL: failed to instantiate nsqadmin - "
	ends := []struct {
		args           []string
		stdout, stderr string // stderr: how it begins
		code           int
	}{
		{[]string{"--version"}, version.Line("nsqadmin") + "\n", "", 0},
		{[]string{"--help"}, "", "Usage of nsqadmin:\n", 0},
		{[]string{"-bogus"}, "", "flag provided but not defined: -bogus\n", 2},
		{nil, "", failed + "--nsqd-http-address or --lookupd-http-address required\n", 1},
		{[]string{"-nsqd-http-address=h:1", "-lookupd-http-address", "h:2"}, "", failed + "use --nsqd-http-address or --lookupd-http-address not both\n", 1},
		{[]string{"--config=/missing"}, "", "[nsqadmin] FATAL: failed to load config file /missing - open /missing: no such file or directory\n", 1},
	}
	for _, test := range ends {
		cmd := command(append([]string{"--log-prefix=other"}, test.args...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		said := logTime.ReplaceAllString(stderr.String(), "")
		if stdout.String() != test.stdout || !strings.HasPrefix(said, test.stderr) || cmd.ProcessState.ExitCode() != test.code {
			t.Errorf("%s: stdout %q, stderr %.200q, code %d\nwant %q, %q, %d",
				test.args, &stdout, said, cmd.ProcessState.ExitCode(), test.stdout, test.stderr, test.code)
		}
	}

	cmd := command("--nsqd-http-address=127.0.0.1:1")
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.Contains(lines.Text(), ": listening on 127.0.0.1:") {
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
