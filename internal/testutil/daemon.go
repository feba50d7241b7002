package testutil

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shownLog is how much of the end of a log a failed test shows, in bytes for each run.
const shownLog = 8 << 10

// Daemon is a nsqd or nsqlookupd that a test runs, in one process after the other. It belongs to the
// goroutine of the test. When the test ends its process is killed. A panic or a data race in the log
// fails the test, and if it failed the log is shown.
type Daemon struct {
	TCP, HTTP string // where it serves, host:port; kept by Restart

	t    testing.TB
	name string
	path string
	args []string
	runs []*process // the last one is the present one
}

// Launch starts a program on free ports of the loopback interface, and does not wait for it. args
// come after the addresses and can replace them.
func (p *Programs) Launch(t testing.TB, name string, args ...string) *Daemon {
	t.Helper()
	d := &Daemon{
		t: t, name: name, path: p.Path(name), args: args,
		TCP: "127.0.0.1:0", HTTP: "127.0.0.1:0",
	}
	t.Cleanup(d.cleanUp)
	d.launch()
	return d
}

// Start starts a program as Launch does and waits until it serves.
func (p *Programs) Start(t testing.TB, name string, args ...string) *Daemon {
	t.Helper()
	d := p.Launch(t, name, args...)
	d.AwaitServing()
	return d
}

func (d *Daemon) launch() {
	d.t.Helper()
	addresses := []string{"--tcp-address=" + d.TCP, "--http-address=" + d.HTTP}
	run, err := startProcess(d.path, slices.Concat(addresses, d.args))
	if err != nil {
		d.t.Fatal(err)
	}
	d.runs = append(d.runs, run)
}

// gravest is what no daemon may ever log.
var gravest = regexp.MustCompile(`.*(panic - |panic: |DATA RACE).*`)

func (d *Daemon) cleanUp() {
	if err := d.run().kill(); err != nil {
		d.t.Errorf("kill %s: %v", d.name, err)
	}
	for _, run := range d.runs {
		log, _ := run.text()
		if grave := gravest.FindString(log); grave != "" {
			d.t.Errorf("%s has logged %q", d.name, grave)
		}
	}
	if !d.t.Failed() {
		return
	}
	for i, run := range d.runs {
		log, _ := run.text()
		if extra := len(log) - shownLog; extra > 0 {
			log = "..." + log[extra:]
		}
		d.t.Logf("log of %s %s, run %d, exit code %d:\n%s", d.name, d.TCP, i+1, run.cmd.ProcessState.ExitCode(), log)
	}
}

func (d *Daemon) run() *process { return d.runs[len(d.runs)-1] }

var listening = regexp.MustCompile(`(TCP|HTTP): listening on (\S+)\n`)

// AwaitServing waits until the daemon serves, and learns the addresses.
func (d *Daemon) AwaitServing() {
	d.t.Helper()
	found := map[string]string{}
	err := d.run().await(func(log string) bool {
		for _, line := range listening.FindAllStringSubmatch(log, -1) {
			found[line[1]] = line[2]
		}
		return len(found) == 2
	})
	if err != nil {
		d.t.Fatalf("%s does not serve: %v", d.name, err)
	}
	d.TCP, d.HTTP = found["TCP"], found["HTTP"]
}

// AwaitLog waits until the present process has logged this.
func (d *Daemon) AwaitLog(text string) {
	d.t.Helper()
	if err := d.run().await(func(log string) bool { return strings.Contains(log, text) }); err != nil {
		d.t.Fatalf("%s, wait for log %q: %v", d.name, text, err)
	}
}

// Log returns what the present process has logged.
func (d *Daemon) Log() string {
	log, _ := d.run().text()
	return log
}

// Signal sends a signal.
func (d *Daemon) Signal(sig os.Signal) {
	d.t.Helper()
	if err := d.run().cmd.Process.Signal(sig); err != nil {
		d.t.Fatalf("%s, send %v: %v", d.name, sig, err)
	}
}

// Exit waits for the end of the process and returns its code, -1 if a signal killed it.
func (d *Daemon) Exit() int {
	d.t.Helper()
	return d.ExitWithin(Patience)
}

// ExitWithin is Exit with a limit of its own, for an end that is promised so soon.
func (d *Daemon) ExitWithin(limit time.Duration) int {
	d.t.Helper()
	code, err := d.run().exit(limit)
	if err != nil {
		d.t.Fatalf("%s %v", d.name, err)
	}
	return code
}

// Stop ends the daemon as an operator does: SIGTERM, and exit code 0.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.Signal(syscall.SIGTERM)
	if code := d.Exit(); code != 0 {
		d.t.Fatalf("%s ended with code %d after SIGTERM", d.name, code)
	}
}

// Kill ends the process with SIGKILL.
func (d *Daemon) Kill() {
	d.t.Helper()
	if err := d.run().kill(); err != nil {
		d.t.Fatalf("kill %s: %v", d.name, err)
	}
}

// Restart starts the daemon again, which must have ended, with the same command line on the same
// addresses, and waits until it serves.
func (d *Daemon) Restart() {
	d.t.Helper()
	if d.run().running() {
		d.t.Fatalf("%s still runs", d.name)
	}
	d.launch()
	d.AwaitServing()
}

// URL is the address of something in the daemon's HTTP API; path begins with a slash.
func (d *Daemon) URL(path string) string { return "http://" + d.HTTP + path }
