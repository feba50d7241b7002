package main

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"nsq/internal/api"
	"nsq/internal/testnode"
	"nsq/internal/testutil"
)

// A message goes to a nsqd that lives, through nsqlookupd or not, and a delay goes with it.
func TestPub(t *testing.T) {
	lookupd := testnode.StartLookupd(t)
	n, other := testnode.StartNSQD(t, lookupd), testnode.StartNSQD(t)
	n.Create("t", "c") // announces it
	lookupd.AwaitProducer("t")
	for source, args := range map[string][]string{
		"lookupd": {"--lookupd-http-address=http://" + lookupd.HTTP},
		"nsqd":    {"--nsqd-tcp-address=" + n.TCP, "--nsqd-tcp-address=" + other.TCP},
	} {
		t.Run(source, func(t *testing.T) {
			r := start(t, args...)
			if source == "nsqd" {
				other.Stop()
			}
			before := n.MessageCount("t")
			testutil.Eventually(t, func() error { // the nsqds are looked up in the background
				if status, body := r.ask("POST", "/pub?topic=t", "a"); status != 200 || body != "OK" {
					return &testError{status, body}
				}
				return nil
			})
			for range 9 {
				if status, body := r.ask("POST", "/pub?topic=t", "a"); status != 200 || body != "OK" {
					t.Errorf("%d %s", status, body)
				}
			}
			if got := n.MessageCount("t") - before; got != 10 {
				t.Errorf("%d messages, want 10", got)
			}
			if status, body := r.ask("POST", "/pub?topic=t&defer=3600000", "later"); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	n.AwaitChannel("t", "c", func(c api.ChannelStats) bool { return c.DeferredCount == 2 && c.Depth == 20 })
}

type testError struct {
	status int
	body   string
}

func (e *testError) Error() string { return http.StatusText(e.status) + " " + e.body }

// A nsqd that comes back is used again at once, and without any there is an error.
func TestPubOutage(t *testing.T) {
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP)
	if status, body := r.ask("POST", "/pub?topic=t", "a"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	n.Stop()
	if status, body := r.ask("POST", "/pub?topic=t", "a"); status != 503 || body != `{"message":"NO_NSQD"}` {
		t.Errorf("%d %s", status, body)
	}
	if status, body := r.ask("GET", "/sub?topic=t&channel=c", ""); status != 503 || body != `{"message":"NO_NSQD"}` {
		t.Errorf("%d %s", status, body)
	}
	n.Start()
	if status, body := r.ask("POST", "/pub?topic=t", "a"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// Requests that cannot be served are told why.
func TestRefusals(t *testing.T) {
	n := testnode.StartNSQD(t)
	r := start(t, "--nsqd-tcp-address="+n.TCP, "--max-body-size=10", "--max-in-flight=7")
	for _, test := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/pub", "x", 400, "MISSING_ARG_TOPIC"},
		{"POST", "/pub?topic=a$", "x", 400, "INVALID_TOPIC"},
		{"POST", "/pub?topic=%zz", "x", 400, "INVALID_REQUEST"},
		{"POST", "/pub?topic=t", "", 400, "MSG_EMPTY"},
		{"POST", "/pub?topic=t", "12345678901", 413, "MSG_TOO_BIG"},
		{"POST", "/pub?topic=t&defer=-1", "x", 400, "INVALID_DEFER"},
		{"POST", "/pub?topic=t&defer=3600001", "x", 400, "INVALID_DEFER"},
		{"POST", "/pub?topic=t&defer=99999999999999999999", "x", 400, "INVALID_DEFER"},
		{"GET", "/pub?topic=t", "", 405, "METHOD_NOT_ALLOWED"},
		{"GET", "/sub?channel=c", "", 400, "MISSING_ARG_TOPIC"},
		{"GET", "/sub?topic=t", "", 400, "MISSING_ARG_CHANNEL"},
		{"GET", "/sub?topic=t&channel=", "", 400, "INVALID_CHANNEL"},
		{"GET", "/sub?topic=t&channel=c&format=xml", "", 400, "INVALID_FORMAT"},
		{"GET", "/sub?topic=t&channel=c&window=0", "", 400, "INVALID_WINDOW"},
		{"GET", "/sub?topic=t&channel=c&window=8", "", 400, "INVALID_WINDOW"},
		{"GET", "/nosuch", "", 404, "NOT_FOUND"},
	} {
		status, body := r.ask(test.method, test.path, test.body)
		if status != test.status || body != `{"message":"`+test.message+`"}` {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, status, body, test.status, test.message)
		}
	}
	if status, body := r.ask("GET", "/ping", ""); status != 200 || body != "OK" {
		t.Errorf("ping: %d %s", status, body)
	}
}

// Only those who are allowed may read and publish, whichever way; everybody may ping.
func TestGate(t *testing.T) {
	n := testnode.StartNSQD(t)
	for _, test := range []struct {
		args    string
		headers []string
		status  int
	}{
		{"", nil, 200},
		{"--allow-from-cidr=10.0.0.0/8 --allow-from-cidr=127.0.0.0/8", nil, 200},
		{"--allow-from-cidr=10.0.0.0/8", nil, 403},
		{"--allowed-user=anna --allowed-user=otto", []string{"X-Forwarded-User", "otto"}, 200},
		{"--allowed-user=anna", []string{"X-Forwarded-User", "otto"}, 403},
		{"--allowed-user=anna", []string{"X-Forwarded-User", "anna", "X-Forwarded-User", "otto"}, 403},
		{"--allowed-user=anna", nil, 403},
		{"--allowed-user=anna --acl-http-header=X-User", []string{"X-User", "anna"}, 200},
		{"", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"", []string{"Origin", "http://elsewhere.example"}, 403},
		{"", []string{"Sec-Fetch-Site", "same-origin"}, 200},
	} {
		r := start(t, append(strings.Fields(test.args), "--nsqd-tcp-address="+n.TCP)...)
		if status, body := r.ask("POST", "/pub?topic=t", "x", test.headers...); status != test.status {
			t.Errorf("%+v: pub %d %s", test, status, body)
		}
		if test.status == 200 {
			r.subscribe("topic=t&channel=c", test.headers...).leave()
		} else if status, body := r.ask("GET", "/sub?topic=t&channel=c", "", test.headers...); status != test.status || body != `{"message":"FORBIDDEN"}` {
			t.Errorf("%+v: sub %d %s", test, status, body)
		}
		if status, _ := r.ask("GET", "/ping", ""); status != 200 {
			t.Errorf("%+v: ping %d", test, status)
		}
		r.end()
	}
}

// With a certificate there is only HTTPS, and clients may have to present theirs.
func TestTLS(t *testing.T) {
	n := testnode.StartNSQD(t)
	authority := testutil.NewAuthority(t, "authority")
	folder := t.TempDir()
	cert, key := authority.Issue(t, "server").Write(t, folder)
	r := start(t, "--nsqd-tcp-address="+n.TCP, "--tls-cert="+cert, "--tls-key="+key,
		"--tls-root-ca-file="+authority.Write(t, folder), "--tls-client-auth-policy=require-verify")
	ping := func(config *tls.Config) error {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
		resp, err := client.Get(r.url + "/ping")
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	own := authority.Issue(t, "client").TLS
	if err := ping(&tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{own}}); err != nil {
		t.Error(err)
	}
	if ping(&tls.Config{RootCAs: authority.Pool()}) == nil {
		t.Error("served a client without certificate")
	}
}

// What the flags cannot be is the last line of the log.
func TestFlags(t *testing.T) {
	const good = "--nsqd-tcp-address=127.0.0.1:1 --http-address=127.0.0.1:0"
	for _, test := range []struct {
		args string
		code int
		log  string // the end of it
	}{
		{"", 1, "--nsqd-tcp-address or --lookupd-http-address required\n"},
		{good + " --log-level=loud", 1, "--log-level is invalid\n"},
		{good + " --max-connections=0", 1, "--max-connections should be positive\n"},
		{good + " --max-subscriptions=0", 1, "--max-subscriptions should be positive\n"},
		{good + " --max-body-size=0", 1, "--max-body-size should be positive\n"},
		{good + " --max-in-flight=0", 1, "--max-in-flight should be positive\n"},
		{good + " --max-defer=-1s", 1, "--max-defer should not be negative\n"},
		{good + " --heartbeat-interval=0", 1, "--heartbeat-interval should be positive\n"},
		{good + " --publish-timeout=0", 1, "--publish-timeout should be positive\n"},
		{good + " --tls-cert=a", 1, "use --tls-cert and --tls-key both or neither\n"},
		{good + " --tls-client-auth-policy=require", 1, "--tls-root-ca-file and --tls-client-auth-policy require --tls-cert\n"},
		{good + " --allow-from-cidr=10.0.0.0", 1, "no '/'\n"},
		{good + " --allowed-user=a --acl-http-header=", 1, "--allowed-user requires --acl-http-header\n"},
		{good + " --http-address=127.0.0.1:99999", 1, "invalid port\n"},
		{good + " more", 1, "unknown arguments: [more]\n"},
		{"--version", 0, name + " v1.4.0\n"},
		{"--nosuch", 2, "print the version and exit\n"},
	} {
		r := execute(t, strings.Fields(test.args)...)
		if code := <-r.code; code != test.code || !strings.HasSuffix(r.logs.String(), test.log) {
			t.Errorf("%q: code %d, log %q", test.args, code, r.logs.String())
		}
		r.stop()
	}
	r := execute(t, "--help")
	if code := <-r.code; code != 0 || !strings.HasPrefix(r.logs.String(), usage) || !strings.Contains(r.logs.String(), "-heartbeat-interval") {
		t.Errorf("help: code %d, %s", code, r.logs.String())
	}
	r.stop()
}
