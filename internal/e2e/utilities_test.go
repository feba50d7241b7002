//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
	"nsq/internal/testutil"
)

var utilities = []string{"to_nsq", "nsq_tail", "nsq_to_file", "nsq_to_http", "nsq_to_nsq", "nsq_pubsub"}

const reached = "what the utility has reached"

// util is a utility that is killed and started again. It belongs to the goroutine of the test.
type util struct {
	t     *testing.T
	name  string
	args  []string
	out   func(io.Reader) // reads stdout of each process to its end; nil: nobody does
	cmd   *exec.Cmd
	log   bytes.Buffer // of all processes; for the test when they have ended
	ended chan struct{}
}

func newUtil(t *testing.T, out func(io.Reader), name string, args ...string) *util {
	u := &util{t: t, name: name, args: args, out: out}
	t.Cleanup(func() {
		if u.cmd != nil {
			u.kill()
		}
		if strings.Contains(u.log.String(), "DATA RACE") || strings.Contains(u.log.String(), "panic: ") {
			t.Errorf("%s: data race or panic", name)
		}
		if t.Failed() {
			text := u.log.String()
			t.Logf("log of %s:\n%s", name, text[max(0, len(text)-8<<10):])
		}
	})
	return u
}

func (u *util) start() {
	u.t.Helper()
	u.cmd = exec.Command(programs.Path(u.name), u.args...)
	u.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	u.cmd.Stderr = &u.log
	read, write, err := os.Pipe()
	if err != nil {
		u.t.Fatal(err)
	}
	u.cmd.Stdout = write
	err = u.cmd.Start()
	write.Close()
	if err != nil {
		u.t.Fatal(err)
	}
	u.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		defer read.Close()
		if u.out != nil {
			u.out(read)
		}
		cmd.Wait() // its state is looked at where it counts
	}(u.cmd, u.ended)
}

// kill ends the process with SIGKILL.
func (u *util) kill() {
	u.t.Helper()
	if err := u.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		u.t.Fatal(err)
	}
	<-u.ended
}

// stop ends it as an operator does.
func (u *util) stop() {
	u.t.Helper()
	if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	select {
	case <-u.ended:
	case <-time.After(testutil.Patience):
		u.t.Fatalf("%s does not stop", u.name)
	}
	if code := u.cmd.ProcessState.ExitCode(); code != 0 {
		u.t.Errorf("%s ended with code %d", u.name, code)
	}
}

// trial is a utility with what it reads from and where its messages go.
type trial struct {
	t        *testing.T
	ledger   *testutil.Ledger
	lookupd  *testutil.Daemon
	source   *testutil.Daemon
	utility  *util
	target   func() // ends the target and brings it back; nil: there is none
	finished func() // enters what arrived, when the utility has stopped; nil: that is done already
}

func newTrial(t *testing.T) *trial {
	tr := &trial{t: t, ledger: testutil.NewLedger(reached), lookupd: startLookupd(t)}
	tr.source = startNSQD(t, t.TempDir(), "--lookupd-tcp-address="+tr.lookupd.TCP)
	post(t, tr.source, "/topic/create?topic=t", "")
	post(t, tr.source, "/channel/create?topic=t&channel=c", "")
	awaitNamed(t, tr.lookupd, tr.source, "t", true)
	return tr
}

// reads are the flags of a utility that is impatient where it waits.
func (tr *trial) reads(more ...string) []string {
	return append(more, "--lookupd-http-address="+tr.lookupd.HTTP, "--max-in-flight=100",
		"--consumer-opt=lookupd_poll_interval,50ms", "--consumer-opt=default_requeue_delay,10ms",
		"--consumer-opt=backoff_multiplier,10ms", "--consumer-opt=max_backoff_duration,100ms")
}

func (tr *trial) arrived(key string) { tr.ledger.Finished(reached, key) }

func (tr *trial) lines(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		tr.arrived(lines.Text())
	}
}

// run publishes in parts, and disturbs in the middle of each: nothing may be stuck after that.
//
// A nsqd is stopped, not killed: what is in its memory or in flight is lost with a killed one, by design.
func (tr *trial) run(count int) {
	tr.t.Helper()
	tr.utility.start()
	disturbances := map[string]func(){
		"1 nsqlookupd killed": func() { tr.lookupd.Kill(); tr.lookupd.Restart() },
		"2 nsqd stopped":      func() { tr.source.Stop(); tr.source.Restart() },
		"3 utility killed":    func() { tr.utility.kill(); tr.utility.start() },
		"5 utility stopped":   func() { tr.utility.stop(); tr.utility.start() },
	}
	if tr.target != nil {
		disturbances["4 target ended"] = tr.target
	}
	begin := time.Now()
	for i, name := range slices.Sorted(keysOf(disturbances)) {
		part := count / len(disturbances)
		for batch := range slices.Chunk(numbered(fmt.Sprint(i), part), 1000) {
			tr.ledger.Sending(batch...)
			post(tr.t, tr.source, "/mpub?topic=t", strings.Join(batch, "\n"))
			tr.ledger.Acknowledged(batch...)
		}
		awaitChannel(tr.t, tr.source, "t", "c", func(c api.ChannelStats) bool { return left(c) < part-part/20 })
		disturbances[name]()
		awaitChannel(tr.t, tr.source, "t", "c", func(c api.ChannelStats) bool { return drained(c) })
	}
	took := time.Since(begin)
	tr.utility.stop()
	if tr.finished != nil {
		tr.finished()
	}
	testutil.Eventually(tr.t, func() error {
		if n := tr.ledger.Left(reached); n > 0 {
			return fmt.Errorf("%d messages are missing", n)
		}
		return nil
	})
	b := tr.ledger.Balance(reached)
	if len(b.Lost) > 0 || len(b.Unexpected) > 0 {
		tr.t.Error(b)
	}
	tr.t.Logf("%d messages in %.1f s, %d again", tr.ledger.Acked(), took.Seconds(), len(b.Duplicates))
}

func keysOf(m map[string]func()) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func left(c api.ChannelStats) int { return int(c.Depth) + int(c.InFlightCount) + int(c.DeferredCount) }

func trialSize() int { return long(20_000, 100_000) }

// Whatever is killed or stopped while nsq_to_file works, each message is in its files, which can be read
// to their end.
func TestToFileUnderFire(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			tr, folder := newTrial(t), t.TempDir()
			tr.utility = newUtil(t, nil, "nsq_to_file", tr.reads("--topic=t", "--channel=c", "--"+compression,
				"--output-dir="+folder, "--sync-interval=20ms", "--rotate-size=100000", "--filename-format=<TOPIC><REV>.log")...)
			tr.finished = func() {
				entries, err := os.ReadDir(folder)
				if err != nil {
					t.Fatal(err)
				}
				for _, entry := range entries {
					if strings.HasPrefix(entry.Name(), ".") {
						continue // locks
					}
					text, err := unpacked(compression, filepath.Join(folder, entry.Name()))
					if err != nil {
						t.Errorf("read %s: %v", entry.Name(), err)
					}
					tr.lines(bytes.NewReader(text))
				}
			}
			tr.run(trialSize())
		})
	}
}

func unpacked(compression, path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if compression == "gzip" {
		reader, err := gzip.NewReader(file)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(reader)
	}
	reader, err := zstd.NewReader(file)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// The same for what nsq_tail prints.
func TestTailUnderFire(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	tr.utility = newUtil(t, tr.lines, "nsq_tail", tr.reads("--topic=t", "--channel=c")...)
	tr.run(trialSize())
}

// The same for what nsq_to_http sends to a server that breaks off its connections and is away.
func TestToHTTPUnderFire(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	serve := func(address string) *http.Server {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Addr: listener.Addr().String(), Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if body, err := io.ReadAll(req.Body); err == nil {
				tr.arrived(string(body))
			}
		})}
		go server.Serve(listener) // ends with the server
		return server
	}
	server := serve("127.0.0.1:0")
	t.Cleanup(func() { server.Close() })
	tr.target = func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		server = serve(server.Addr)
	}
	tr.utility = newUtil(t, nil, "nsq_to_http", tr.reads("--topic=t", "--channel=c", "--post=http://"+server.Addr+"/", "--status-every=0")...)
	tr.run(trialSize())
}

// The same for what nsq_to_nsq publishes to another nsqd.
func TestToNSQUnderFire(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	target := startNSQD(t, t.TempDir())
	post(t, target, "/topic/create?topic=t", "")
	consume(t, "t", "c", maxInFlight(100), func(m *nsq.Message) error {
		tr.arrived(string(m.Body))
		return nil
	}, target)
	tr.target = func() { target.Stop(); target.Restart() }
	tr.utility = newUtil(t, nil, "nsq_to_nsq", tr.reads("--topic=t", "--channel=c", "--destination-nsqd-tcp-address="+target.TCP, "--status-every=0")...)
	tr.run(trialSize())
}

// The same for what nsq_pubsub streams to a reader that comes back whenever its stream ends.
func TestPubSubUnderFire(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free again at once
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	tr.utility = newUtil(t, nil, "nsq_pubsub", tr.reads("--http-address="+address, "--heartbeat-interval=100ms")...)
	ctx, leave := context.WithCancel(context.Background())
	c := newClient(t)
	c.Timeout = 0
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			if tr.readStream(ctx, c, "http://"+address+"/sub?topic=t&channel=c") != nil {
				time.Sleep(10 * time.Millisecond) // it is away: ask again a little later
			}
		}
	})
	t.Cleanup(reading.Wait)
	t.Cleanup(leave)
	tr.run(trialSize())
}

// readStream reads until the stream ends. A line that is cut off is no message.
func (tr *trial) readStream(ctx context.Context, c *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	reader := bufio.NewReader(resp.Body)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return err
		}
		if len(line) == 1 {
			continue // a heartbeat
		}
		var message struct{ Body string }
		if err := json.Unmarshal(line, &message); err != nil {
			return err
		}
		tr.arrived(message.Body)
	}
}

// to_nsq outlives a nsqd that is away for a while, and after a kill the same input again loses nothing.
func TestFromInputUnderFire(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	consume(t, "t", "c", maxInFlight(100), func(m *nsq.Message) error {
		tr.arrived(string(m.Body))
		return nil
	}, tr.source)
	keys := numbered("line", trialSize())
	tr.ledger.Sending(keys...)
	input := func() (*exec.Cmd, io.WriteCloser, *bytes.Buffer) {
		cmd, log := exec.Command(programs.Path("to_nsq"), "--topic=t", "--nsqd-tcp-address="+tr.source.TCP), new(bytes.Buffer)
		cmd.Stderr = log
		pipe, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, pipe, log
	}
	write := func(pipe io.Writer, lines []string) {
		if _, err := io.WriteString(pipe, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	quarter := len(keys) / 4
	cmd, pipe, _ := input()
	published := func(atLeast uint64) {
		testutil.Eventually(t, func() error {
			stats, err := topicStats(tr.source, "t")
			if err == nil && stats.MessageCount < atLeast {
				err = fmt.Errorf("%d published", stats.MessageCount)
			}
			return err
		})
	}
	write(pipe, keys[:quarter])
	published(1)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // the kill is its error
	cmd, pipe, log := input()
	write(pipe, keys[:2*quarter])
	published(uint64(quarter))
	tr.source.Stop()
	tr.source.Restart()
	write(pipe, keys[2*quarter:])
	if err := errors.Join(pipe.Close(), cmd.Wait()); err != nil {
		t.Fatalf("%v, log:\n%s", err, log)
	}
	tr.ledger.Acknowledged(keys...)
	testutil.Eventually(t, func() error {
		if n := tr.ledger.Left(reached); n > 0 {
			return fmt.Errorf("%d messages are missing", n)
		}
		return nil
	})
	b := tr.ledger.Balance(reached)
	if len(b.Unexpected) > 0 {
		t.Error(b)
	}
	t.Logf("%d lines, %d again", len(keys), len(b.Duplicates))
}
