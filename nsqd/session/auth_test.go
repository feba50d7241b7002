package session

import (
	"crypto/tls"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// AUTH that fails, and how it is told. All of it is fatal.
func TestAuthErrors(t *testing.T) {
	for _, test := range []struct {
		name, line string
		status     int
		answer     string
		want       string
	}{
		{"parameter", "AUTH x\n" + sized("s"), 200, everything(), "E_INVALID AUTH invalid number of parameters"},
		{"empty body", "AUTH\n" + sized(""), 200, everything(), "E_BAD_BODY AUTH invalid body size 0"},
		{"negative body", "AUTH\n\xff\xff\xff\xfe", 200, everything(), "E_BAD_BODY AUTH invalid body size -2"},
		{"large body", "AUTH\n\x00\x50\x00\x01", 200, everything(), "E_BAD_BODY AUTH body too big 5242881 > 5242880"},
		{"server out of order", authCommand, 500, everything(), "E_AUTH_FAILED AUTH failed"},
		{"refused", authCommand, 403, everything(), "E_AUTH_FAILED AUTH failed"},
		{"created", authCommand, 201, everything(), "E_AUTH_FAILED AUTH failed"},
		{"no JSON", authCommand, 200, "yes", "E_AUTH_FAILED AUTH failed"},
		{"wrong type", authCommand, 200, `{"ttl":"1"}`, "E_AUTH_FAILED AUTH failed"},
		{"ttl 0", authCommand, 200, grant(0, entry("", "", "publish")), "E_AUTH_FAILED AUTH failed"},
		{"unknown permission", authCommand, 200, grant(1, entry("", "", "delete")), "E_AUTH_FAILED AUTH failed"},
		{"bad expression", authCommand, 200, grant(1, entry("(", "", "publish")), "E_AUTH_FAILED AUTH failed"},
		{"nothing granted", authCommand, 200, grant(1), "E_UNAUTHORIZED AUTH no authorizations found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				n.auth.says(test.status, test.answer)
				c := n.dial()
				c.trySend(test.line + pub("behind", "x"))
				c.wantFatal(test.want)
				if n.topicMessages("behind") != -1 {
					t.Error("the command behind it was acted on")
				}
				if log := n.journal.String(); strings.Contains(log, "s3cret") {
					t.Errorf("the secret is in the log:\n%s", log)
				}
			}, authorized(everything()))
		})
	}
	t.Run("short", func(t *testing.T) {
		with(t, overTCP, func(n *node) {
			for text, want := range map[string]string{
				"AUTH\n\x00\x00\x00":         "E_BAD_BODY AUTH failed to read body size",
				"AUTH\n\x00\x00\x00\x02x":    "E_BAD_BODY AUTH failed to read body",
				"AUTH\n\x00\x50\x00\x00more": "E_BAD_BODY AUTH failed to read body",
			} {
				c := n.dial()
				c.send(text)
				c.closeWrite()
				c.wantFatal(want)
			}
			if asked := n.auth.questions(); len(asked) > 0 {
				t.Errorf("asked %v", asked)
			}
		}, authorized(everything()))
	})
}

// Before AUTH nothing can be published or consumed, and nobody is asked; AUTH counts once.
func TestAuthComesFirst(t *testing.T) {
	with(t, overPipe, func(n *node) {
		for _, line := range []string{"SUB t ch\n", pub("t", "x"), mpub("t", "x"), dpub("t", "1", "x"), "PUB t\n", "MPUB t\n", "DPUB t 1\n"} {
			c := n.dial()
			word, _, _ := strings.Cut(line, " ")
			c.trySend("NOP\n" + line + authCommand)
			c.wantFatal("E_AUTH_FIRST AUTH required before " + word)
		}
		if n.topicMessages("t") != -1 || len(n.auth.questions()) > 0 {
			t.Errorf("topic has %d messages, asked %v", n.topicMessages("t"), n.auth.questions())
		}
		c := n.dial()
		c.authenticate()
		c.send(pub("t", "x"))
		c.wantOK(1)
		c.send(authCommand)
		c.wantFatal("E_INVALID AUTH already set")
		if asked := n.auth.questions(); len(asked) != 1 {
			t.Errorf("asked %v", asked)
		}
	}, authorized(everything()))
}

// The answer to IDENTIFY says whether AUTH is needed, and JSON in answers is escaped.
func TestAuthIsAnnounced(t *testing.T) {
	with(t, overPipe, func(n *node) {
		n.auth.says(200, `{"ttl":1,"identity":"<me> & you","authorizations":[{"topic":"t"},{}]}`)
		c := n.dial()
		c.send(identify(`{"feature_negotiation":true}`))
		c.wantResponse(strings.Replace(negotiated(60000, "", ""), `"auth_required":false`, `"auth_required":true`, 1))
		c.send(authCommand)
		c.wantResponse(`{"identity":"\u003cme\u003e \u0026 you","identity_url":"","permission_count":2}`)
	}, authorized(everything()))
}

// What the auth server is told of a client.
func TestAuthQuestion(t *testing.T) {
	const secret = "a b\x00&c=d\n\xff"
	for _, test := range []struct {
		name    string
		by      transport
		client  *tls.Config
		policy  tls.ClientAuthType
		ip, tls string
		common  string
	}{
		{name: "tcp", by: overTCP, ip: "127.0.0.1", tls: "false"},
		{name: "unix", by: transport{network: "unix"}, ip: "", tls: "false"},
		{name: "tls", by: overTLS, ip: "127.0.0.1", tls: "true"},
		{name: "client certificate", by: overTLS, client: withCertificate("worker 7"), policy: tls.RequireAnyClientCert, ip: "127.0.0.1", tls: "true", common: "worker 7"},
		{name: "certificate that nobody asked for", by: overTLS, client: withCertificate("worker 7"), ip: "127.0.0.1", tls: "true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with(t, test.by, func(n *node) {
				n.clientTLS = test.client
				c := n.dial()
				c.send("AUTH\n" + sized(secret))
				c.wantResponse(`{"identity":"me","identity_url":"http://id.example/me","permission_count":2}`)
				want := []url.Values{{"common_name": {test.common}, "remote_ip": {test.ip}, "secret": {secret}, "tls": {test.tls}}}
				if got := n.auth.questions(); !reflect.DeepEqual(got, want) {
					t.Errorf("asked %v\nwant  %v", got, want)
				}
			}, authorized(everything()), func(s *setup) {
				s.tls = serverTLS().Clone()
				s.tls.ClientAuth = test.policy
			})
		})
	}
}

// withCertificate is a client that presents a certificate of that name.
func withCertificate(name string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, Certificates: selfSigned(name).Certificates}
}

// Which commands the entries of an answer permit. What is not permitted leaves no trace.
func TestPermissions(t *testing.T) {
	for _, test := range []struct {
		name, answer, line, want string
	}{
		{"subscribe", grant(9, entry("^t$", "^ch$", "subscribe")), "SUB t ch\n", ""},
		{"subscribe, other channel", grant(9, entry("^t$", "^ch$", "subscribe")), "SUB t ch2\n", `SUB on "t" "ch2"`},
		{"subscribe, other topic", grant(9, entry("^t$", "^ch$", "subscribe")), "SUB t2 ch\n", `SUB on "t2" "ch"`},
		{"subscribe with publish", grant(9, entry("^t$", "", "publish")), "SUB t ch\n", `SUB on "t" "ch"`},
		{"not anchored", grant(9, entry("o", "h", "subscribe")), "SUB foo ch\n", ""},
		{"publish", grant(9, entry("^t$", "", "publish")), pub("t", "x"), ""},
		{"publish, other topic", grant(9, entry("^t$", "", "publish")), pub("t2", "x"), `PUB on "t2" ""`},
		{"publish with subscribe", grant(9, entry("^t$", "", "subscribe")), pub("t", "x"), `PUB on "t" ""`},
		{"publish needs a channel that may be empty", grant(9, entry("^t$", "^ch$", "publish")), pub("t", "x"), `PUB on "t" ""`},
		{"no channels", `{"ttl":9,"identity":"me","authorizations":[{"topic":"t","permissions":["publish"]}]}`, pub("t", "x"), `PUB on "t" ""`},
		{"no topic is any", `{"ttl":9,"identity":"me","authorizations":[{"channels":[""],"permissions":["publish"]}]}`, pub("t", "x"), ""},
		{"mpub", grant(9, entry("^t$", "", "publish")), mpub("t", "x"), ""},
		{"mpub, other topic", grant(9, entry("^t$", "", "publish")), mpub("t2", "x"), `MPUB on "t2" ""`},
		{"dpub", grant(9, entry("^t$", "", "publish")), dpub("t", "1", "x"), ""},
		{"dpub, other topic", grant(9, entry("^t$", "", "publish")), dpub("t2", "1", "x"), `DPUB on "t2" ""`},
		{"second entry", grant(9, entry("no", "", "publish"), entry("t", "", "publish")), pub("t", "x"), ""},
		{"pieces of two entries", grant(9, entry("no", "", "publish"), entry("t", "", "subscribe")), pub("t", "x"), `PUB on "t" ""`},
		{"name before right", grant(9, entry("no", "", "publish")), pub("t!", "x"), "E_BAD_TOPIC"},
		{"delay before right", grant(9, entry("no", "", "publish")), dpub("t", "x", "x"), "E_INVALID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.dial()
				c.authenticate()
				c.trySend(test.line)
				switch {
				case test.want == "":
					c.wantOK(1)
					return
				case strings.HasPrefix(test.want, "E_"):
					if kind, data := c.frame(); kind != 1 || !strings.HasPrefix(data, test.want+" ") {
						t.Errorf("got %v %q", kind, data)
					}
					c.wantClosed()
				default:
					c.wantFatal("E_UNAUTHORIZED AUTH failed for " + test.want)
				}
				if topics := n.broker.Topics(); len(topics) > 0 {
					t.Errorf("topic %q was created", topics[0].Name())
				}
			}, authorized(test.answer))
		})
	}
}

// A publisher that is permitted one topic and then another, in one write, is told of each in order;
// the rights to one topic are not those to the next.
func TestPermissionsOfPipeline(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.dial()
		c.authenticate()
		c.send(strings.Repeat(pub("a", "x")+pub("a", "y")+pub("b", "z"), 50) + mpub("a", "x") + dpub("b", "1", "x") + pub("c", "x") + pub("a", "behind"))
		c.wantOK(152)
		c.wantFatal(`E_UNAUTHORIZED AUTH failed for PUB on "c" ""`)
		if a, b, other := n.topicMessages("a"), n.topicMessages("b"), n.topicMessages("c"); a != 101 || b != 51 || other != -1 {
			n.t.Errorf("topics have %d, %d and %d messages", a, b, other)
		}
		if asked := n.auth.questions(); len(asked) != 1 {
			n.t.Errorf("asked %d times", len(asked))
		}
	}, authorized(grant(3600, entry("^[ab]$", "", "publish"))))
}

// Who has no right to publish cannot make us read the body, and is told so reliably: while we would
// still wait for it, and when it was sent.
func TestUnauthorizedBodyIsNotRead(t *testing.T) {
	const declared = "\x00\x10\x00\x00" // the most that is allowed
	for _, by := range []transport{overTCP, overTLS} {
		for _, rights := range []string{"none", "other"} {
			for _, line := range []string{"PUB no\n", "MPUB no\n", "DPUB no 5\n"} {
				for name, body := range map[string]string{"nothing": "", "size": declared, "all": declared + strings.Repeat("x", 1<<20)} {
					t.Run(by.String()+" "+rights+" "+line+name, func(t *testing.T) {
						with(t, by, func(n *node) {
							c := n.dial()
							word, _, _ := strings.Cut(line, " ")
							want := "E_AUTH_FIRST AUTH required before " + word
							if rights == "other" {
								c.authenticate()
								want = "E_UNAUTHORIZED AUTH failed for " + word + ` on "no" ""`
							}
							c.trySend(line + body)
							c.wantError(want)
							if rest, err := c.in.take(1, patience); rest != "" || err == nil {
								t.Errorf("then got %q", rest)
							}
						}, authorized(grant(3600, entry("^yes$", "", "publish"))))
					})
				}
			}
		}
	}
}

// Statistics tell who has authenticated as whom.
func TestStatisticsOfAuth(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.dial()
		settled()
		if s := n.sessions.Clients()[0]; s.Authed || s.AuthIdentity != "" || s.AuthIdentityURL != "" {
			t.Errorf("before AUTH: %v %q %q", s.Authed, s.AuthIdentity, s.AuthIdentityURL)
		}
		c.authenticate()
		if s := n.sessions.Clients()[0]; !s.Authed || s.AuthIdentity != "me" || s.AuthIdentityURL != "http://id.example/me" {
			t.Errorf("after AUTH: %v %q %q", s.Authed, s.AuthIdentity, s.AuthIdentityURL)
		}
	}, authorized(everything()))
}
