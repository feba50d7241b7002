package main_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"nsq/internal/version"
)

// program is the path of the nsqd that the tests run, built by TestMain.
var program string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nsqd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "nsqd")
	if output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		panic(string(output))
	}
	return m.Run()
}

// command is a nsqd on free ports with a data folder of its own; one that hangs is killed.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	standard := []string{"--tcp-address=127.0.0.1:0", "--http-address=127.0.0.1:0", "--data-path=" + t.TempDir()}
	return exec.CommandContext(ctx, program, append(standard, args...)...)
}

// finish runs a nsqd that ends by itself.
func finish(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// Answers to a command line that starts nothing.
func TestHelpAndVersion(t *testing.T) {
	stdout, stderr, code := finish(t, "--version")
	if want := version.Line("nsqd") + "\n"; stdout != want || stderr != "" || code != 0 {
		t.Errorf("--version: stdout %q, stderr %q, code %d; want %q and 0", stdout, stderr, code, want)
	}
	for _, flag := range []string{"--help", "-h"} {
		stdout, stderr, code := finish(t, flag)
		if stdout != "" || !strings.HasPrefix(stderr, "Usage of nsqd:\n") || !strings.Contains(stderr, "\n  -mem-queue-size messages\n") || code != 0 {
			t.Errorf("%s: stdout %.200q, stderr %.200q, code %d", flag, stdout, stderr, code)
		}
	}
}

// A command line that is none: message, usage, code 2.
func TestWrongCommandLine(t *testing.T) {
	for arg, want := range map[string]string{
		"--nosuch":                            "flag provided but not defined: -nosuch",
		"--max-message-size=5":                "flag provided but not defined: -max-message-size",
		"--node-id=abc":                       `invalid value "abc" for flag -node-id: parse error`,
		"--worker-id=5":                       `invalid boolean value "5" for -worker-id: parse error`,
		"stray":                               `unexpected argument "stray": every setting is a flag, and a boolean one takes its value after "="`,
		"--max-msg-size=99999999999999999999": `invalid value "99999999999999999999" for flag -max-msg-size: value out of range`,
	} {
		stdout, stderr, code := finish(t, arg)
		if !strings.HasPrefix(stderr, want+"\nUsage of nsqd:\n") || stdout != "" || code != 2 {
			t.Errorf("%s: stdout %q, stderr %.200q, code %d; want %q, usage, 2", arg, stdout, stderr, code, want)
		}
	}
}

var logTime = regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} `)

// Settings with which nsqd does not start: one line under the fixed prefix, code 1.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mem_queue_size = 5.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()

	instance := "failed to instantiate nsqd - "
	for arg, want := range map[string]string{
		"--max-deflate-level=10":    instance + "--max-deflate-level must be [1,9]",
		"--node-id=1024":            instance + "--node-id must be [0,1024)",
		"--mem-queue-size=-1":       instance + "--mem-queue-size must be at least 0, is -1",
		"--tls-required":            instance + "cannot require TLS client connections without TLS key and cert",
		"--data-path=" + dir + "/x": instance + "failed to lock data-path: open " + dir + "/x: no such file or directory",
		"--data-path=" + file:       instance + "failed to lock data-path: open " + file + ": not a directory",
		"--tcp-address=" + address:  instance + "listen (" + address + ") failed - listen tcp " + address + ": bind: address already in use",
		"--config=" + dir + "/x":    "failed to load config file " + dir + "/x - open " + dir + "/x: no such file or directory",
		"--config=" + file:          "failed parsing mem_queue_size 5.5 - want a whole number",
	} {
		stdout, stderr, code := finish(t, "--log-level=fatal", "--log-prefix=other", arg)
		if got := logTime.ReplaceAllString(stderr, ""); got != "[nsqd] FATAL: "+want+"\n" || stdout != "" || code != 1 {
			t.Errorf("%s: stdout %q, stderr %q, code %d\nwant %q, 1", arg, stdout, stderr, code, want)
		}
	}
}

// A daemon that runs on a data folder keeps a second one out, says what the file has too much, and
// SIGTERM ends it cleanly.
func TestRun(t *testing.T) {
	config := filepath.Join(t.TempDir(), "nsqd.cfg")
	if err := os.WriteFile(config, []byte("node_id = 5\nid = 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	cmd := command(t, "--data-path="+data, "--config="+config)
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := readUntil(t, output, "TCP: listening on ", "HTTP: listening on ")
	for _, want := range []string{
		"WARNING: config file " + config + `: unknown key "node_id" (did you mean "id"?) is ignored`,
		"INFO: " + version.Line("nsqd"),
		"INFO: ID: 7",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("log has no %q:\n%s", want, text)
		}
	}

	_, stderr, code := finish(t, "--data-path="+data)
	want := "[nsqd] FATAL: failed to instantiate nsqd - failed to lock data-path: cannot flock directory " + data +
		" - resource temporarily unavailable (possibly in use by another instance of nsqd)\n"
	if got := logTime.ReplaceAllString(stderr, ""); got != want || code != 1 {
		t.Errorf("second nsqd: stderr %q, code %d\nwant %q", got, code, want)
	}

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(output)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, rest)
	}
}

// readUntil reads a log until it has all the given texts.
func readUntil(t *testing.T, log io.Reader, texts ...string) string {
	t.Helper()
	var seen strings.Builder
	buffer := make([]byte, 4096)
	for {
		missing := false
		for _, text := range texts {
			missing = missing || !strings.Contains(seen.String(), text)
		}
		if !missing {
			return seen.String()
		}
		n, err := log.Read(buffer)
		if err != nil {
			t.Fatalf("read log: %v, after\n%s", err, seen.String())
		}
		seen.Write(buffer[:n])
	}
}
