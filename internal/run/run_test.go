//go:build unix

package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/log"
	"nsq/internal/options"
)

// childVar makes the test binary be a daemon instead of a test: signals and exit codes belong to a
// whole process.
const childVar = "NSQ_RUN_TEST_DAEMON"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childVar) == "":
	case os.Getenv(reloaderVar) != "":
		Main(newChildOptions(), newReloading)
	default:
		Main(newChildOptions(), newChild)
	}
	goleak.VerifyTestMain(m)
}

type childOptions struct {
	options.Logging
	Mode string
}

func newChildOptions() *childOptions {
	return &childOptions{Logging: options.DefaultLogging(log.Info, "[child] ")}
}

func (o *childOptions) Table() *options.Table {
	return options.New("prog", options.Group{Title: "All", Options: append(o.Logging.Rows(),
		options.Option{Flag: "mode", Value: options.String(&o.Mode)},
	)})
}

func (o *childOptions) Validate() error {
	if o.Mode == "invalid" {
		return errors.New("--mode must be something else")
	}
	return nil
}

// child is a daemon that says on stdout where it is.
type child struct{ mode string }

func newChild(o *childOptions, _ *log.Logger) (*child, error) {
	switch o.Mode {
	case "refuse":
		return nil, errors.New("no good")
	case "slow":
		fmt.Println("creating")
		// Ready once the parent has sent its signal and closes stdin.
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return nil, err
		}
	}
	return &child{mode: o.Mode}, nil
}

func (c *child) Run(ctx context.Context) error {
	switch c.mode {
	case "fail":
		return errors.New("listener.Accept() error - broken")
	case "end":
		return nil
	}
	if c.mode != "slow" {
		fmt.Println("serving")
	}
	<-ctx.Done()
	fmt.Println("stopping")
	switch c.mode {
	case "hurried":
		<-Hurry(ctx)
		fmt.Println("hurrying")
	case "fail late":
		return errors.New("flush: no space left")
	}
	return nil
}

// daemon is a running child.
type daemon struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr *bufio.Reader
	pipe   *os.File // our end of stderr
}

func start(t *testing.T, args ...string) *daemon {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a child that hangs is killed
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	// The race detector would wait a second at each exit for reports of others.
	cmd.Env = append(os.Environ(), childVar+"=1", "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { ours.Close() })
	return &daemon{t: t, cmd: cmd, stdin: stdin, stdout: bufio.NewScanner(stdout), stderr: bufio.NewReader(ours), pipe: ours}
}

func (d *daemon) signal(sig os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		d.t.Fatal(err)
	}
}

// says waits for the next line on stdout.
func (d *daemon) says(want string) {
	d.t.Helper()
	if !d.stdout.Scan() || d.stdout.Text() != want {
		d.t.Fatalf("stdout says %q, error %v; want %q", d.stdout.Text(), d.stdout.Err(), want)
	}
}

// logs waits for the next line on stderr, which has the given text after the time.
func (d *daemon) logs(want string) {
	d.t.Helper()
	line, err := d.stderr.ReadString('\n')
	if got := logTime.ReplaceAllString(line, "$1"); got != want+"\n" {
		d.t.Fatalf("stderr says %q, error %v; want %q", line, err, want)
	}
}

var logTime = regexp.MustCompile(`^(\[\w+\] )\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} `)

// exits waits for the end of the process, which has this code and says no more.
func (d *daemon) exits(code int) {
	d.t.Helper()
	if d.stdout.Scan() {
		d.t.Errorf("stdout says %q more", d.stdout.Text())
	}
	rest, err := io.ReadAll(d.stderr)
	if len(rest) > 0 || err != nil && !errors.Is(err, os.ErrClosed) {
		d.t.Errorf("stderr says %q more, error %v", rest, err)
	}
	if err := d.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		d.t.Fatal(err)
	}
	if got := d.cmd.ProcessState; got.ExitCode() != code {
		d.t.Errorf("the process ended with %v, want code %d", got, code)
	}
}

// Both signals stop the daemon cleanly.
func TestSignalStops(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		d := start(t)
		d.says("serving")
		d.signal(sig)
		d.logs("[child] INFO: received " + sig.String() + ", stopping")
		d.says("stopping")
		d.exits(0)
	}
}

// A signal while the daemon is being made is not lost and does not kill: the daemon gets the chance
// to stop what it has begun.
func TestSignalWhileStarting(t *testing.T) {
	d := start(t, "--mode=slow")
	d.says("creating")
	d.signal(syscall.SIGTERM)
	d.logs("[child] INFO: received terminated, stopping")
	d.stdin.Close()
	d.says("stopping")
	d.exits(0)
}

// The second signal reaches a daemon that is stopping as a hurry, further ones do no harm.
func TestSecondSignalHurries(t *testing.T) {
	d := start(t, "--mode=hurried")
	d.says("serving")
	d.signal(syscall.SIGTERM)
	d.logs("[child] INFO: received terminated, stopping")
	d.says("stopping")
	d.signal(syscall.SIGINT)
	d.logs("[child] INFO: received interrupt while stopping, making haste")
	d.says("hurrying")
	d.exits(0)
}

// SIGHUP does not kill, nor does it count as a request to stop.
func TestHangupIsIgnored(t *testing.T) {
	d := start(t, "--mode=hurried")
	d.says("serving")
	d.signal(syscall.SIGHUP)
	d.logs("[child] INFO: received hangup, ignored: there is nothing to read again")
	d.signal(syscall.SIGTERM)
	d.logs("[child] INFO: received terminated, stopping")
	d.says("stopping")
	d.signal(syscall.SIGHUP)
	d.logs("[child] INFO: received hangup, ignored: there is nothing to read again")
	d.signal(syscall.SIGTERM)
	d.logs("[child] INFO: received terminated while stopping, making haste")
	d.says("hurrying")
	d.exits(0)
}

// A log that nobody reads any more does not kill.
func TestClosedLogIsSurvived(t *testing.T) {
	d := start(t)
	d.says("serving")
	d.pipe.Close()
	d.signal(syscall.SIGTERM) // makes a line
	d.says("stopping")
	d.exits(0)
}

// With the level fatal a clean run says nothing.
func TestQuiet(t *testing.T) {
	d := start(t, "--log-level=fatal")
	d.says("serving")
	d.signal(syscall.SIGTERM)
	d.says("stopping")
	d.exits(0)
}

// A daemon that ends by itself ends the process; failures are said once, under a prefix that no
// setting changes.
func TestExitCodes(t *testing.T) {
	t.Run("ended", func(t *testing.T) {
		start(t, "--mode=end").exits(0)
	})
	t.Run("failed", func(t *testing.T) {
		d := start(t, "--mode=fail", "--log-level=fatal", "--log-prefix=")
		d.logs("[prog] FATAL: listener.Accept() error - broken")
		d.exits(1)
	})
	t.Run("failed to stop", func(t *testing.T) {
		d := start(t, "--mode=fail late")
		d.says("serving")
		d.signal(syscall.SIGTERM)
		d.logs("[child] INFO: received terminated, stopping")
		d.logs("[prog] FATAL: flush: no space left")
		d.says("stopping")
		d.exits(1)
	})
	t.Run("not made", func(t *testing.T) {
		d := start(t, "--mode=refuse")
		d.logs("[prog] FATAL: failed to instantiate prog - no good")
		d.exits(1)
	})
	t.Run("invalid", func(t *testing.T) {
		d := start(t, "--mode=invalid")
		d.logs("[prog] FATAL: failed to instantiate prog - --mode must be something else")
		d.exits(1)
	})
	t.Run("bad file", func(t *testing.T) {
		d := start(t, "--config=/missing")
		d.logs("[prog] FATAL: failed to load config file /missing - open /missing: no such file or directory")
		d.exits(1)
	})
	t.Run("version", func(t *testing.T) {
		d := start(t, "--version")
		if !d.stdout.Scan() || !strings.HasPrefix(d.stdout.Text(), "prog v") {
			t.Errorf("stdout says %q", d.stdout.Text())
		}
		d.exits(0)
	})
	t.Run("bad flag", func(t *testing.T) {
		d := start(t, "--nosuch")
		d.logs("flag provided but not defined: -nosuch")
		d.logs("Usage of prog:")
		if _, err := io.Copy(io.Discard, d.stderr); err != nil {
			t.Error(err)
		}
		d.exits(2)
	})
}

// What the file has too much is in the daemon's log.
func TestWarningsAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prog.toml")
	if err := os.WriteFile(path, []byte("mode = \"end\"\n\"100%d\" = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, "--config="+path)
	d.logs(`[child] WARNING: config file ` + path + `: unknown key "100%d" is ignored`)
	d.exits(0)
}

// A context that is not of a daemon never hurries; one that is, and those made from it, do.
func TestHurry(t *testing.T) {
	if Hurry(t.Context()) != nil {
		t.Error("a context from elsewhere can hurry")
	}
	ctx, hurry := withHurry(t.Context())
	child := context.WithoutCancel(ctx)
	select {
	case <-Hurry(child):
		t.Fatal("hurry before anybody asked for it")
	default:
	}
	hurry()
	hurry()
	<-Hurry(child)
	if ctx.Err() != nil {
		t.Error("a hurry cancels the context")
	}
}
