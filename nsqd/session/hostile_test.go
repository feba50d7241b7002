package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// The last error of a connection can be read, although the client was still sending: a reset does
// not overtake it.
func TestErrorIsReadableWhileTheClientSends(t *testing.T) {
	for name, sent := range map[string]string{
		"body over the limit": "PUB t\n\x00\x20\x00\x00" + strings.Repeat("x", 2<<20),
		"many commands":       "PUB t!\n" + strings.Repeat(pub("t", "x"), 30000),
		"a line without end":  strings.Repeat("N", 2<<20),
	} {
		for _, by := range []transport{overTCP, overTLS, {network: "unix"}, overSnappy} {
			t.Run(by.String()+" "+name, func(t *testing.T) {
				with(t, by, func(n *node) {
					for range 3 {
						c := n.dial()
						sending := make(chan error, 1)
						go func() { sending <- c.trySend(sent) }()
						if kind, data := c.frame(); kind != protocol.FrameError || !strings.HasPrefix(data, "E_") {
							t.Fatalf("got %d %q", kind, data)
						}
						c.wantClosed()
						c.raw.Close()
						<-sending // may fail when the client went on for too long
					}
				})
			})
		}
	}
}

// A client that does not read is closed after its heartbeat interval, and what it held goes to
// others, whatever it goes on to send.
func TestClientThatDoesNotReadIsClosed(t *testing.T) {
	const messages = 3
	for name, send := range map[string]string{"messages": "NOP\n", "answers": strings.Repeat(fin(id), 10000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with(t, transport{network: "unix"}, func(n *node) { // whose buffers are small
				c := n.raw()
				c.send("  V2" + identify("{"+everySecond+"}"))
				c.readFrame(c.raw)
				c.send("SUB t ch\nRDY 100\n")
				c.readFrame(c.raw)
				if name == "messages" {
					for range messages {
						n.publish("t", strings.Repeat("x", 1<<20))
					}
				}
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for c.trySend(send) == nil {
						select {
						case <-stop:
							return
						case <-time.After(10 * time.Millisecond):
						}
					}
				}()
				eventually(t, "the client is gone", func() bool { return len(n.sessions.Clients()) == 0 })
				close(stop)
				<-stopped
				if name == "messages" {
					eventually(t, "all are back", func() bool { return n.channel("t", "ch").Depth == messages })
				}
				if stats := n.channel("t", "ch"); stats.ClientCount != 0 || stats.InFlightCount != 0 {
					t.Errorf("%+v", stats)
				}
				if err := n.broker.DeleteTopic("t"); err != nil { // so that the end need not write it to disk
					t.Fatal(err)
				}
			})
		})
	}
}

// Failures of the disk are told without the paths of our files, which are in the log.
func TestErrorsTellNoPaths(t *testing.T) {
	const secret = "/secret/path"
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"path error": {&fs.PathError{Op: "open", Path: secret, Err: syscall.ENOSPC}, "no space left on device"},
		"wrapped":    {fmt.Errorf("write %s: %w", secret, &fs.PathError{Op: "open", Path: secret, Err: syscall.EIO}), "input/output error"},
		"not errno":  {&fs.PathError{Op: "open", Path: secret, Err: fs.ErrPermission}, "permission denied"},
		"other":      {errors.New("cannot open " + secret), "storage error"},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, overTCP, func(n *node) {
				for command, want := range map[string]string{
					pub("t", "x"):       "E_PUB_FAILED PUB failed ",
					mpub("t", "x"):      "E_MPUB_FAILED MPUB failed ",
					dpub("t", "5", "x"): "E_DPUB_FAILED DPUB failed ",
					"SUB t ch\n":        "E_SUB_FAILED SUB failed ",
				} {
					c := n.dial()
					c.send(command)
					if kind, got := c.frame(); kind != protocol.FrameError || !strings.HasPrefix(got, want) || strings.Contains(got, secret) {
						t.Errorf("got %q, want %q", got, want)
					} else if reason := strings.TrimPrefix(got, want); reason != test.want && name != "not errno" {
						t.Errorf("reason %q, want %q", reason, test.want)
					}
					c.wantClosed()
				}
				if !n.journal.has(secret) {
					t.Error("the log does not tell the path either")
				}
			}, func(s *setup) {
				s.store = func(classic *broker.ClassicStore) broker.Store { return closedStore{classic, test.err} }
			})
		})
	}
}

// closedStore opens no queue.
type closedStore struct {
	broker.Store
	err error
}

func (s closedStore) OpenQueue(string, string) (diskq.Queue, error) { return nil, s.err }

// A panic costs its own connection and nothing else: what it held goes to others.
func TestPanicIsConfined(t *testing.T) {
	with(t, overTCP, func(n *node) {
		n.panics = true
		other := n.dial()
		c := n.subscribe("t", "ch", 5)
		n.publish("t", "x")
		id := c.wantMessage(1, "x")
		c.send("TOUCH " + id + "\n")
		c.wantClosed()
		next := n.subscribe("t", "ch", 5)
		next.wantMessage(2, "x")
		other.wantNothing()
		eventually(t, "the client is gone", func() bool { return n.channel("t", "ch").ClientCount == 1 && len(n.sessions.Clients()) == 2 })
	}, func(s *setup) {
		s.log = func(line string) {
			if strings.Contains(line, `command "TOUCH"`) {
				panic("the log is on fire")
			}
		}
	})
}

// A shutdown ends connections in whatever they are doing, and leaves nothing behind.
func TestShutdown(t *testing.T) {
	everywhere(t, func(n *node) {
		n.subscribe("t", "ch", 5) // each of them is checked to be gone by the node's end
		n.publish("t", "1", "2")
		n.dial().send("PUB t\n\x00\x00\x00\x05h")
		n.dial().send("MPUB t\n\x00\x00\x00\x05")
		n.dial().send("NO")
		n.dial().send(strings.Repeat(pub("t", "x"), 100))
		n.raw()
		n.raw().send("  V")
	})
}

// What a client sends can not make a line of the log.
func TestLogHasNoForgedLines(t *testing.T) {
	with(t, overTCP, func(n *node) {
		c := n.dial()
		c.send("X\rERROR:\x00forged\n")
		c.wantFatal("E_INVALID invalid command X\rERROR:\x00forged")
		eventually(t, "the end is logged", func() bool { return n.journal.has("E_INVALID invalid command") })
		if n.journal.has("\rERROR") {
			t.Errorf("%q", n.journal)
		}
	})
}

// Connecting and leaving at once, many at a time, leaks nothing.
func TestManyShortConnections(t *testing.T) {
	with(t, overTCP, func(n *node) {
		done := make(chan error)
		const clients = 64
		for i := range clients {
			go func() {
				raw, err := n.connect()
				if err == nil {
					defer raw.Close()
					_, err = io.WriteString(raw, []string{"", "  ", "  V2", "  V2SUB t ch#ephemeral\nRDY 5\n", "  V2" + pub("t", "x")}[i%5])
				}
				done <- err
			}()
		}
		for range clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		eventually(t, "all are gone", func() bool {
			return len(n.sessions.Clients()) == 0 && n.server.Conns() == 0 && n.consumers() == 0
		})
		if left, err := filepath.Glob(filepath.Join(n.folder, "*ephemeral*")); err != nil || len(left) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}
