package session

import (
	"strings"
	"testing"
	"time"
)

const everySecond = `"heartbeat_interval":1000`

// Heartbeats come at multiples of the interval, in every state, whatever else is going on.
func TestHeartbeatsAreOnTime(t *testing.T) {
	for name, prepare := range map[string]func(*node, *conn){
		"idle":       func(*node, *conn) {},
		"subscribed": func(n *node, c *conn) { c.send("SUB t ch\nRDY 5\n"); c.wantOK(1) },
		"closing": func(n *node, c *conn) {
			c.send("SUB t ch\nCLS\n")
			c.wantOK(1)
			c.wantResponse("CLOSE_WAIT")
		},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.dial(everySecond)
				began := time.Now()
				prepare(n, c)
				for i := range 10 {
					c.wantHeartbeats(began.Add(time.Duration(i)*time.Second), time.Second, 1)
					c.send("NOP\n" + pub("elsewhere", "x"))
					c.wantOK(1)
				}
			})
		})
	}
}

// Without IDENTIFY there is a heartbeat every 30 seconds, and a silent client is closed after 60.
func TestDefaultHeartbeat(t *testing.T) {
	with(t, overPipe, func(n *node) {
		began := time.Now()
		c := n.dial()
		c.wantHeartbeats(began, 30*time.Second, 2)
		time.Sleep(2 * time.Second)
		c.wantClosed()
		wantAfter(t, began, time.Minute, time.Minute+2*time.Second)
		if clients := n.sessions.Clients(); len(clients) != 0 {
			t.Errorf("%d clients are left", len(clients))
		}
	})
}

// A client that falls silent is closed after twice its interval, however its IDENTIFY arrived.
func TestSilentClientIsClosed(t *testing.T) {
	whole := identify("{" + everySecond + "}")
	for name, parts := range map[string][]string{
		"IDENTIFY at once":            {whole},
		"body apart":                  {whole[:9], whole[9:]},
		"body in pieces":              {whole[:9], whole[9:13], whole[13:20], whole[20:]},
		"with a command behind it":    {whole + "NOP\n"},
		"with half a command behind":  {whole + "NO"},
		"with half a publish behind":  {whole, "PUB t"},
		"in pieces with half behind":  {whole[:11], whole[11:] + "NO"},
		"after others in other parts": {"NOP\n", "NO", "P\n", whole},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.dial()
				time.Sleep(10 * time.Second) // long after the deadline of the beginning was set
				for _, part := range parts {
					time.Sleep(300 * time.Millisecond)
					c.send(part)
					settled()
				}
				began := time.Now()
				c.wantOK(1)
				c.wantHeartbeats(began, time.Second, 2)
				time.Sleep(500 * time.Millisecond)
				c.wantClosed()
			})
		})
	}
}

// Any command keeps the connection, also one that has no answer, and the deadline counts from it.
func TestCommandsKeepTheConnection(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.dial(everySecond)
		for range 20 {
			time.Sleep(1900 * time.Millisecond)
			c.send("NOP\n")
		}
		settled()
		if len(n.sessions.Clients()) != 1 {
			t.Fatal("closed although it was heard of")
		}
		last := time.Now()
		time.Sleep(1900 * time.Millisecond)
		settled()
		if len(n.sessions.Clients()) != 1 {
			t.Fatalf("closed %v after the last command", time.Since(last))
		}
		time.Sleep(600 * time.Millisecond)
		settled()
		if len(n.sessions.Clients()) != 0 {
			t.Fatalf("still there %v after the last command", time.Since(last))
		}
	})
}

// Bytes of a command that never ends do not keep the connection.
func TestTricklingCommandIsClosed(t *testing.T) {
	for name, test := range map[string]struct{ before, drip, want string }{
		"line": {"", "N", ""},
		"body": {"PUB t\n\x00\x00\x01\x00", "x", "E_BAD_MESSAGE PUB failed to read message body"},
		"mpub": {"MPUB t\n\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\xf8", "x", "E_BAD_MESSAGE MPUB failed to read message body"},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.dial(everySecond)
				began := time.Now()
				if test.before != "" {
					c.send(test.before)
				}
				for time.Since(began) < 5*time.Second {
					if c.trySend(test.drip) != nil {
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
				wantAfter(t, began, 2*time.Second, 2500*time.Millisecond)
				c.wantResponse("_heartbeat_")
				c.wantResponse("_heartbeat_")
				if test.want != "" {
					c.wantError(test.want)
				}
				c.wantClosed()
			})
		})
	}
}

// Who has disabled heartbeats gets none and is never closed for silence, not even inside a body.
func TestHeartbeatsDisabled(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.dial(`"heartbeat_interval":-1`)
		time.Sleep(24 * time.Hour)
		c.wantQuiet()
		c.send("PUB t\n\x00\x00\x00\x02a")
		time.Sleep(24 * time.Hour)
		c.wantQuiet()
		c.send("b")
		c.wantOK(1)
	})
}

// Between the answer to IDENTIFY and the last OK of the upgrades no heartbeat comes, however long a
// slow client takes; after it they do.
func TestNoHeartbeatDuringUpgrade(t *testing.T) {
	for _, by := range []transport{{network: "pipe", tls: true}, {network: "pipe", tls: true, compression: "snappy"}, {network: "pipe", tls: true, compression: "deflate"}} {
		t.Run(by.String(), func(t *testing.T) {
			with(t, by, func(n *node) {
				c := n.raw()
				c.send("  V2")
				time.Sleep(27 * time.Second) // the first heartbeat of the connection is near
				c.send(identify(`{"feature_negotiation":true,"heartbeat_interval":1000,"tls_v1":true` + map[string]string{
					"": "", "snappy": `,"snappy":true`, "deflate": `,"deflate":true`,
				}[by.compression] + "}"))
				if answer := c.readFrame(c.raw); !strings.HasPrefix(answer, "{") {
					t.Fatalf("got %q", answer)
				}
				time.Sleep(4500 * time.Millisecond)
				c.layer(by) // takes nothing but OK
				upgraded := time.Now()
				c.listen()
				c.wantHeartbeats(upgraded, time.Second, 1)
				c.send(pub("t", "x"))
				c.wantOK(1)
				c.wantHeartbeats(upgraded.Add(time.Second), time.Second, 1)
			})
		})
	}
}

// The deadlines of a connection follow its interval after an upgrade as well.
func TestSilentClientIsClosedAfterUpgrade(t *testing.T) {
	for _, by := range []transport{{network: "pipe", tls: true}, {network: "pipe", compression: "snappy"}, {network: "pipe", tls: true, compression: "deflate"}} {
		t.Run(by.String(), func(t *testing.T) {
			with(t, by, func(n *node) {
				c := n.dial(everySecond)
				began := time.Now()
				c.wantHeartbeats(began, time.Second, 2)
				time.Sleep(500 * time.Millisecond)
				c.wantClosed()
			})
			with(t, by, func(n *node) {
				c := n.dial(`"heartbeat_interval":-1`)
				time.Sleep(24 * time.Hour)
				c.wantQuiet()
				c.send(pub("t", "x"))
				c.wantOK(1)
			})
		})
	}
}

// A connection without a magic is closed in time; one that has sent it is a client.
func TestMagicInTime(t *testing.T) {
	with(t, overPipe, func(n *node) {
		for _, part := range []string{"", " ", "  V"} {
			began := time.Now()
			c := n.raw().listen()
			if part != "" {
				c.send(part)
			}
			c.wantClosed()
			wantAfter(t, began, 3*time.Second, 3*time.Second)
		}
		c := n.raw().listen()
		for _, part := range []string{" ", " ", "V", "2"} {
			c.send(part)
		}
		time.Sleep(10 * time.Second)
		c.send(pub("t", "x"))
		c.wantOK(1)
	}, func(s *setup) { s.handshake = 3 * time.Second })
}
