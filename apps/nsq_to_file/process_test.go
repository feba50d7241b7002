//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
)

// startProcess starts the program as a process, which does not outlive the test.
func startProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*testutil.Patience)
	cmd := exec.CommandContext(ctx, programs.Path(name), args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		cmd.Wait() // where a test ends early; the code was looked at otherwise
		if t.Failed() {
			t.Logf("log:\n%s", log.String())
		}
		if bytes.Contains(log.Bytes(), []byte("DATA RACE")) {
			t.Error("data race")
		}
	})
	return cmd
}

// However often the process is killed, every message that was acknowledged to the publisher is in the
// files, all files can be read to their end, and no file in the output folder is unfinished.
func TestKill(t *testing.T) {
	t.Parallel()
	for mode, flags := range map[string][]string{
		"plain":    {"--rotate-size=2000"},
		"gzip":     {"--gzip", "--rotate-size=2000"},
		"zstd":     {"--zstd", "--rotate-interval=50ms"},
		"work dir": {"--gzip", "--rotate-size=2000", "--work-dir=" + filepath.Join(t.TempDir(), "work")},
	} {
		t.Run(mode, func(t *testing.T) {
			n := testnode.StartNSQD(t)
			n.Create("t", name)
			out := t.TempDir()
			args := append(flags, "--topic=t", "--nsqd-tcp-address="+n.TCP, "--output-dir="+out, "--sync-interval=20ms",
				"--filename-format=<TOPIC><REV>.log", "--max-in-flight=20")
			ledger := testutil.NewLedger("files")
			before := 0
			for round := range 4 {
				cmd := startProcess(t, args...)
				for i := range 100 {
					key := fmt.Sprintf("%d-%d", round, i)
					ledger.Sending(key)
					n.Publish("t", key)
					ledger.Acknowledged(key)
				}
				if round == 3 {
					n.AwaitChannel("t", name, testnode.Drained)
					stop(t, cmd)
					break
				}
				// Some are in the files then, and some are on their way.
				c := n.AwaitChannel("t", name, func(c api.ChannelStats) bool { return finished(c) > before })
				before = finished(c)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				cmd.Wait() // the kill is its error
				lines(t, out)
			}
			for _, line := range lines(t, out) {
				ledger.Finished("files", line)
			}
			if b := ledger.Balance("files"); len(b.Lost) > 0 || len(b.Unexpected) > 0 {
				t.Error(b)
			}
		})
	}
}

// finished is how many messages of a channel are.
func finished(c api.ChannelStats) int {
	return int(c.MessageCount) - int(c.Depth) - int(c.InFlightCount) - int(c.DeferredCount)
}

// stop ends the process as an operator does.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after SIGTERM: %v", err)
		}
	case <-time.After(testutil.Patience):
		t.Fatal("does not end after SIGTERM")
	}
}
