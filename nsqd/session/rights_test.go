package session

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// An expired grant is asked for again, with the secret of the first time, when a command needs it;
// the new answer counts.
func TestExpiredGrant(t *testing.T) {
	const unauthorized = "E_UNAUTHORIZED AUTH failed for "
	mine := entry("^t$", "", "publish")
	for _, test := range []struct {
		name, line string
		status     int
		answer     string
		want       string
	}{
		{"PUB again", pub("t", "x"), 200, grant(10, mine), ""},
		{"MPUB again", mpub("t", "x"), 200, grant(10, mine), ""},
		{"DPUB again", dpub("t", "1", "x"), 200, grant(10, mine), ""},
		{"SUB again", "SUB s ch\n", 200, grant(10, entry("s", "ch", "subscribe")), ""},
		{"PUB no more", pub("t", "x"), 200, grant(10, entry("^other$", "", "publish")), unauthorized + `PUB on "t" ""`},
		{"MPUB no more", mpub("t", "x"), 200, grant(10), unauthorized + `MPUB on "t" ""`},
		{"DPUB no more", dpub("t", "1", "x"), 200, grant(10), unauthorized + `DPUB on "t" ""`},
		{"SUB no more", "SUB s ch\n", 200, grant(10), unauthorized + `SUB on "s" "ch"`},
		{"PUB without a server", pub("t", "x"), 500, "", "E_AUTH_FAILED AUTH failed"},
		{"MPUB refused", mpub("t", "x"), 401, "", "E_AUTH_FAILED AUTH failed"},
		{"SUB, bad answer", "SUB s ch\n", 200, "{}", "E_AUTH_FAILED AUTH failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.dial()
				c.authenticate()
				for range 3 {
					c.send(pub("t", "x"))
					c.wantOK(1)
				}
				time.Sleep(10 * time.Second) // to the end
				c.send(pub("t", "x"))
				c.wantOK(1)
				if asked := n.auth.questions(); len(asked) != 1 {
					t.Fatalf("asked %d times before the end", len(asked))
				}
				time.Sleep(time.Nanosecond)
				n.auth.says(test.status, test.answer)
				c.trySend(test.line)
				if test.want == "" {
					c.wantOK(1)
				} else {
					c.wantFatal(test.want)
				}
				asked := n.auth.questions()
				if len(asked) != 2 || asked[1].Get("secret") != "s3cret" {
					t.Errorf("asked %v", asked)
				}
			}, authorized(grant(10, mine)))
		})
	}
}

// A publisher that pipelines is not disturbed by a grant that ends: there is one question for each
// time it does, and every message is answered.
func TestGrantEndsUnderPipeline(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.dial()
		c.authenticate()
		for round := range 50 {
			c.send(strings.Repeat(pub("t", "x"), 20) + strings.Repeat(pub("u", "y"), 20) + mpub("t", "z"))
			c.wantOK(41)
			if asked := len(n.auth.questions()); asked != 1+round/4 {
				t.Fatalf("asked %d times in round %d", asked, round)
			}
			time.Sleep(250*time.Millisecond + time.Nanosecond)
		}
		if got := n.topicMessages("t"); got != 50*21 {
			t.Errorf("%d messages", got)
		}
		n.auth.says(200, grant(1, entry("t", "", "publish")))
		time.Sleep(time.Second)
		c.trySend(strings.Repeat(pub("t", "x"), 20) + pub("u", "y"))
		c.wantOK(20)
		c.wantFatal(`E_UNAUTHORIZED AUTH failed for PUB on "u" ""`)
	}, authorized(grant(1, entry("", "", "publish"))))
}

const (
	ttl       = 10 // seconds
	expiry    = ttl * time.Second
	noTimeout = `"heartbeat_interval":60000`
)

// watched is a consumer with the first of two messages in flight.
func watched(n *node) (c *conn, held string) {
	c = n.dial(noTimeout)
	c.authenticate()
	c.send("SUB t ch\nRDY 1\n")
	c.wantOK(1)
	n.publish("t", "1", "2")
	return c, c.wantMessage(1, "1")
}

// A subscription ends soon after its client has lost the right to it: the client is told, and what
// it had in flight can be delivered to others at once.
func TestSubscriptionEndsWithRights(t *testing.T) {
	const unauthorized = `E_UNAUTHORIZED AUTH failed for SUB on "t" "ch"`
	for _, test := range []struct {
		name        string
		status      int
		answer      string
		least, most time.Duration
		want        string
	}{
		{"nothing permitted", 200, grant(ttl), expiry, expiry + time.Second, unauthorized},
		{"other channel", 200, grant(ttl, entry("t", "^other$", "subscribe")), expiry, expiry + time.Second, unauthorized},
		{"publish only", 200, grant(ttl, entry("", "", "publish")), expiry, expiry + time.Second, unauthorized},
		{"refused", 403, "", expiry, expiry + time.Second, "E_AUTH_FAILED AUTH failed"},
		{"refused otherwise", 401, "", expiry, expiry + time.Second, "E_AUTH_FAILED AUTH failed"},
		{"out of order", 500, "", expiry + time.Minute, expiry + time.Minute + 6*time.Second, "E_AUTH_FAILED AUTH failed"},
		{"bad answer", 200, "{", expiry + time.Minute, expiry + time.Minute + 6*time.Second, "E_AUTH_FAILED AUTH failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				began := time.Now()
				c, held := watched(n)
				n.auth.says(test.status, test.answer)
				if test.least > time.Minute {
					c.wantHeartbeats(began, time.Minute, 1)
					c.send("FIN " + held + "\n") // in the time of grace all goes on
					c.wantMessage(1, "2")
				}
				time.Sleep(time.Until(began.Add(test.most)))
				c.wantFatal(test.want)
				settled()
				stats := n.channel("t", "ch")
				if stats.InFlightCount != 0 || stats.ClientCount != 0 || stats.Depth == 0 {
					t.Errorf("%d in flight of %d clients, depth %d", stats.InFlightCount, stats.ClientCount, stats.Depth)
				}
				ended, found := n.journal.loggedAt(test.want)
				if passed := ended.Sub(began); !found || passed < test.least || passed > test.most {
					t.Errorf("ended after %v, want %v to %v\n%s", passed, test.least, test.most, n.journal)
				}
			}, authorized(grant(ttl, entry("t", "ch", "subscribe"))), holdLong)
		})
	}
}

// holdLong lets messages stay in flight for longer than any test.
func holdLong(s *setup) { s.limits.MsgTimeout = 10 * time.Minute }

// loggedAt is when the first line with the text was written.
func (j *journal) loggedAt(text string) (time.Time, bool) {
	for line := range strings.Lines(j.String()) {
		if strings.Contains(line, text) {
			at, err := time.ParseInLocation("2006/01/02 15:04:05.000000", line[:26], time.Local)
			return at, err == nil
		}
	}
	return time.Time{}, false
}

// As long as the right is there the subscription lives on, with one question for each time that the
// grant has ended, also over a time in which no auth server answers.
func TestSubscriptionLivesWithRights(t *testing.T) {
	with(t, overPipe, func(n *node) {
		began := time.Now()
		c, held := watched(n)
		for minute := range 5 {
			c.wantHeartbeats(began.Add(time.Duration(minute)*time.Minute), time.Minute, 1)
			c.send("NOP\n")
		}
		if asked := len(n.auth.questions()); asked < 28 || asked > 31 {
			t.Errorf("asked %d times in 5 minutes", asked)
		}
		n.auth.says(502, "")
		before := len(n.auth.questions())
		time.Sleep(45 * time.Second)
		if tried := len(n.auth.questions()) - before; tried < 7 || tried > 10 {
			t.Errorf("tried %d times in 45 seconds", tried)
		}
		n.auth.says(200, grant(3600, entry("t", "ch", "subscribe")))
		time.Sleep(6 * time.Second)
		before = len(n.auth.questions())
		for minute := 5; minute < 30; minute++ {
			time.Sleep(time.Until(began.Add(time.Duration(minute+1) * time.Minute)))
			c.wantResponse("_heartbeat_")
			c.send("TOUCH " + held + "\n")
			if minute%10 == 0 {
				held = c.again(held)
			}
		}
		if asked := len(n.auth.questions()) - before; asked != 0 {
			t.Errorf("asked %d times within the grant", asked)
		}
	}, authorized(grant(ttl, entry("t", "ch", "subscribe"))), holdLong)
}

// again gives the message back and takes it once more; its attempts do not matter.
func (c *conn) again(id string) string {
	c.t.Helper()
	c.send("REQ " + id + " 0\n")
	_, data := c.frame()
	return data[10:26]
}

// A client that does not read holds up neither the end of its subscription nor its messages: the
// limit of writes, a heartbeat interval, is far longer than this test waits.
func TestRightsEndForStuckClient(t *testing.T) {
	t.Parallel()
	with(t, overTCP, func(n *node) {
		large := strings.Repeat("x", 1<<20)
		n.publish("t", large, large, large, large, large, large, large, large, large, large, large, large)
		c := n.raw()
		c.send("  V2" + authCommand)
		c.readFrame(c.raw)
		n.auth.says(200, grant(1))
		c.send("SUB t ch\n")
		c.readFrame(c.raw)
		c.send("RDY 100\n")
		eventually(t, "messages are in flight", func() bool { return n.channel("t", "ch").InFlightCount > 0 })
		c.send("NOP\n") // so that reading waits for the writing, too
		eventually(t, "the client is gone", func() bool { return len(n.sessions.Clients()) == 0 })
		if stats := n.channel("t", "ch"); stats.InFlightCount != 0 || stats.Depth != 12 {
			t.Errorf("%d in flight, depth %d", stats.InFlightCount, stats.Depth)
		}
	}, authorized(grant(1, entry("t", "ch", "subscribe"))))
}

// The reason reaches a client that sends without pause, and its connection is not reset before.
func TestEndOfRightsIsTold(t *testing.T) {
	for _, by := range []transport{overTCP, overTLS} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			with(t, by, func(n *node) {
				c := n.dial()
				c.authenticate()
				c.send("SUB t ch\nRDY 1\n")
				c.wantOK(1)
				n.auth.says(200, grant(1))
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					nops := strings.Repeat("NOP\n", 1000)
					for c.trySend(nops) == nil {
					}
				}()
				c.wantError(`E_UNAUTHORIZED AUTH failed for SUB on "t" "ch"`)
				<-sent
			}, authorized(grant(1, entry("t", "ch", "subscribe"))))
		})
	}
}

// A question that is not answered ends with the client that it is about, and with the node; neither
// is then said to have failed.
func TestQuestionEndsWithConnection(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	with(t, overTCP, func(n *node) {
		leaving, staying, asking := n.dial(), n.dial(), n.dial()
		for _, c := range []*conn{leaving, staying} {
			c.authenticate()
			c.send("SUB t ch\n")
			c.wantOK(1)
		}
		n.auth.hang()
		eventually(t, "both are looked after", func() bool { return n.auth.hanging() == 2 })
		leaving.raw.Close()
		eventually(t, "the question is taken back", func() bool { return n.auth.hanging() == 1 })
		asking.send(authCommand)
		eventually(t, "the question of AUTH", func() bool { return n.auth.hanging() == 2 })
		cancel()
		if got, err := asking.in.take(1, patience); got != "" || err != io.EOF {
			t.Errorf("got %q, %v", got, err)
		}
		eventually(t, "all questions are taken back", func() bool { return n.auth.hanging() == 0 })
		staying.send("NOP\n")
		if n.journal.has("AUTH failed") || n.journal.has("AUTH to be") {
			t.Errorf("an end was taken for a failure:\n%s", n.journal)
		}
	}, authorized(grant(1, entry("t", "ch", "subscribe"))), func(s *setup) { s.context = ctx })
}
