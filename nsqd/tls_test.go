package nsqd

import (
	"bytes"
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nsq/internal/log"
	"nsq/internal/options"
	"nsq/internal/testutil"
)

// world is an authority with a certificate of a nsqd, in files.
type world struct {
	authority          *testutil.Authority
	folder             string
	cert, key, rootsCA string
}

func newWorld(t *testing.T) *world {
	w := &world{authority: testutil.NewAuthority(t, "authority"), folder: t.TempDir()}
	w.rootsCA = w.authority.Write(t, w.folder)
	w.cert, w.key = w.authority.Issue(t, "nsqd").Write(t, w.folder)
	return w
}

// offer makes a nsqd offer TLS.
func (w *world) offer(o *Options) { o.TLSCert, o.TLSKey = w.cert, w.key }

// client trusts the nsqd and presents these certificates.
func (w *world) client(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{
		RootCAs: w.authority.Pool(), ServerName: "localhost",
		// Whatever the server says of the authorities that it knows.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return &tls.Certificate{}, nil
			}
			return &certificates[0], nil
		},
	}
}

// Who has to use TLS, in each of the forms of the requirement.
func TestTLSRequirement(t *testing.T) {
	w := newWorld(t)
	const refusal = "E_INVALID cannot NOP in current state (TLS required)"
	for _, test := range []struct {
		name    string
		change  func(*Options)
		config  string // of /config/tls_required
		tcp     string // the answer to NOP and an unknown command
		http    int    // status
		noHTTPS bool
	}{
		{name: "no", config: "0", tcp: "E_INVALID invalid command X", http: 200},
		{name: "tcp-https", change: func(o *Options) { o.TLSRequired = options.TLSRequiredExceptHTTP }, config: "1", tcp: refusal, http: 200},
		{name: "yes", change: func(o *Options) { o.TLSRequired = options.TLSRequiredEverywhere }, config: "2", tcp: refusal, http: 403},
		{name: "yes without HTTPS", change: func(o *Options) { o.TLSRequired, o.HTTPSAddress = options.TLSRequiredEverywhere, "" }, config: "2", tcp: refusal, http: 403, noHTTPS: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := launch(t, w.offer, func(o *Options) {
				if test.change != nil {
					test.change(o)
				}
			})
			if got := d.hear(d.dial("NOP\nX\n")); got != test.tcp {
				t.Errorf("TCP: %q, want %q", got, test.tcp)
			}
			over, err := d.secure(w.client())
			if err != nil {
				t.Fatal(err)
			}
			d.say(over, "PUB t\n\x00\x00\x00\x01x")
			if got := d.hear(over); got != "OK" {
				t.Errorf("TCP over TLS: %q", got)
			}
			for _, target := range []string{"/ping", "/stats", "/nowhere", "/debug/pprof/"} {
				got := d.http("GET", target, "")
				if test.http == 403 {
					checkRefusal(t, got, d.httpsPort())
				} else if got.status == 403 {
					t.Errorf("plain GET %s: %d", target, got.status)
				}
			}
			if test.noHTTPS != (d.httpsListener == nil) {
				t.Fatalf("HTTPS listener: %v", d.httpsListener)
			}
			if test.noHTTPS {
				return
			}
			if got, err := d.https(w.client(), "/ping"); err != nil || got.body != "OK" {
				t.Errorf("HTTPS: %+v, %v", got, err)
			}
			if got, err := d.https(w.client(), "/config/tls_required"); err != nil || got.body != test.config {
				t.Errorf("tls_required is %q, %v; want %s", got.body, err, test.config)
			}
		})
	}
}

// checkRefusal checks the page for those who have to come over TLS.
func checkRefusal(t *testing.T, got answer, httpsPort int) {
	t.Helper()
	want := `{"message": "TLS_REQUIRED", "https_port": ` + jsonOf(httpsPort) + `}`
	if got.status != 403 || got.body != want ||
		got.header.Get("Content-Type") != "application/json; charset=utf-8" || got.header.Get("X-NSQ-Content-Type") != "nsq; version=1.0" {
		t.Errorf("plain HTTP: %+v, want 403 and %s", got, want)
	}
}

// Without a certificate there is no TLS, whatever addresses say.
func TestNoTLSWithoutCertificate(t *testing.T) {
	d := launch(t)
	conn := d.dial("IDENTIFY\n\x00\x00\x00\x2a" + `{"feature_negotiation":true,"tls_v1":true}`)
	if got := d.hear(conn); !strings.Contains(got, `"tls_v1":false,`) {
		t.Errorf("got %s", got)
	}
	if d.httpsListener != nil {
		t.Errorf("HTTPS is served on %v", d.httpsListener.Addr())
	}
}

// Which certificates of clients each policy accepts, over TCP and HTTPS; to ask for them requires TLS.
func TestClientAuthPolicies(t *testing.T) {
	w := newWorld(t)
	ours := w.authority.Issue(t, "ours").TLS
	foreign := testutil.NewAuthority(t, "another").Issue(t, "foreign").TLS
	for _, test := range []struct {
		policy                  string
		required                options.TLSRequirement
		none, foreign, accepted bool
		config                  string
	}{
		{policy: "", none: true, foreign: true, accepted: true, config: "0"},
		{policy: "require", none: false, foreign: true, accepted: true, config: "2"},
		{policy: "require-verify", none: false, foreign: false, accepted: true, config: "2"},
		{policy: "require-verify", required: options.TLSRequiredExceptHTTP, none: false, foreign: false, accepted: true, config: "1"},
	} {
		t.Run(test.policy+" "+test.required.String(), func(t *testing.T) {
			d := launch(t, w.offer, func(o *Options) {
				o.TLSClientAuthPolicy, o.TLSRootCAFile, o.TLSRequired = test.policy, w.rootsCA, test.required
			})
			for _, client := range []struct {
				name   string
				config *tls.Config
				want   bool
			}{
				{"none", w.client(), test.none},
				{"foreign", w.client(foreign), test.foreign},
				{"ours", w.client(ours), test.accepted},
			} {
				if _, err := d.secure(client.config); (err == nil) != client.want {
					t.Errorf("TCP, certificate %s: %v, want accepted %v", client.name, err, client.want)
				}
				if got, err := d.https(client.config, "/ping"); (err == nil) != client.want {
					t.Errorf("HTTPS, certificate %s: %v %v, want accepted %v", client.name, got, err, client.want)
				}
			}
			got, err := d.https(w.client(ours), "/config/tls_required")
			if err != nil || got.body != test.config {
				t.Errorf("tls_required is %q, %v; want %s", got.body, err, test.config)
			}
		})
	}
}

// The oldest version that is accepted, over TCP and HTTPS.
func TestTLSMinVersion(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		least  options.TLSVersion
		config string
		client map[uint16]bool // newest version of the client, and whether it is accepted
	}{
		{options.DefaultTLSVersion, "771", map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true}},
		{tls.VersionTLS10, "769", map[uint16]bool{tls.VersionTLS10: true, tls.VersionTLS13: true}},
		{tls.VersionTLS13, "772", map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true}},
	} {
		t.Run(test.least.String(), func(t *testing.T) {
			d := launch(t, w.offer, func(o *Options) { o.TLSMinVersion = test.least })
			for version, want := range test.client {
				client := w.client()
				client.MinVersion, client.MaxVersion = tls.VersionTLS10, version
				over, err := d.secure(client)
				if (err == nil) != want || err == nil && over.ConnectionState().Version != version {
					t.Errorf("TCP, %s: %v, want accepted %v", tls.VersionName(version), err, want)
				}
				if _, err := d.https(client, "/ping"); (err == nil) != want {
					t.Errorf("HTTPS, %s: %v, want accepted %v", tls.VersionName(version), err, want)
				}
			}
			if got := d.http("GET", "/config/tls_min_version", ""); got.body != test.config {
				t.Errorf("tls_min_version is %q, want %s", got.body, test.config)
			}
		})
	}
}

// serverOf is the common name of the nsqd that a new connection meets.
func (d *daemon) serverOf(w *world) string {
	d.t.Helper()
	over, err := d.secure(w.client())
	if err != nil {
		d.t.Fatal(err)
	}
	return over.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// New files are in use after a reload, and soon after they have changed, for those who connect from
// then on; files that are no good change nothing.
func TestReload(t *testing.T) {
	w := newWorld(t)
	d := launch(t, w.offer, func(o *Options) { o.TLSRequired = options.TLSRequiredEverywhere })
	old, err := d.secure(w.client())
	if err != nil {
		t.Fatal(err)
	}

	w.authority.Issue(t, "second").Write(t, w.folder)
	d.Reload()
	if got := d.serverOf(w); got != "second" || !d.log.has("certificates reloaded") {
		t.Errorf("met %q after a reload", got)
	}
	if got, err := d.https(w.client(), "/ping"); err != nil || got.body != "OK" {
		t.Errorf("HTTPS after a reload: %+v, %v", got, err)
	}

	if err := os.WriteFile(w.cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Reload()
	if got := d.serverOf(w); got != "second" || !d.log.has("failed to reload certificates - ") {
		t.Errorf("met %q after a reload of nothing", got)
	}
	if err := os.Remove(w.key); err != nil {
		t.Fatal(err)
	}
	d.Reload()
	if got := d.serverOf(w); got != "second" {
		t.Errorf("met %q after a reload without a key", got)
	}

	w.authority.Issue(t, "third").Write(t, w.folder)
	eventually(t, "changed files are seen", func() bool { return d.serverOf(w) == "third" })

	d.say(old, "PUB t\n\x00\x00\x00\x01x")
	if got := d.hear(old); got != "OK" {
		t.Errorf("the old connection answers %q", got)
	}
}

// Files and settings of TLS that are no good are said when the nsqd is made, and it lets go of its
// folder.
func TestTLSRefusals(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(w.folder, "missing")
	plain := filepath.Join(w.folder, "plain")
	if err := os.WriteFile(plain, []byte("plain text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, otherKey := w.authority.Issue(t, "other").Write(t, t.TempDir())
	const (
		noCert = "cannot require TLS client connections without TLS key and cert"
		server = "failed to build TLS config - "
		client = "failed to build client TLS config - "
		absent = ": no such file or directory"
	)
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"required":            {func(o *Options) { o.TLSRequired = options.TLSRequiredEverywhere }, noCert},
		"required of TCP":     {func(o *Options) { o.TLSRequired = options.TLSRequiredExceptHTTP }, noCert},
		"policy":              {func(o *Options) { o.TLSClientAuthPolicy = "require" }, noCert},
		"unknown policy":      {func(o *Options) { w.offer(o); o.TLSClientAuthPolicy = "verify" }, `--tls-client-auth-policy must be one of ["" "require" "require-verify"], is "verify"`},
		"no key":              {func(o *Options) { o.TLSCert = w.cert }, server + "open " + absent},
		"no certificate":      {func(o *Options) { o.TLSKey = w.key }, server + "open " + absent},
		"certificate missing": {func(o *Options) { o.TLSCert, o.TLSKey = missing, w.key }, server + "open " + missing + absent},
		"key missing":         {func(o *Options) { o.TLSCert, o.TLSKey = w.cert, missing }, server + "open " + missing + absent},
		"key of another":      {func(o *Options) { o.TLSCert, o.TLSKey = w.cert, otherKey }, server + "tls: private key does not match public key"},
		"no PEM":              {func(o *Options) { o.TLSCert, o.TLSKey = plain, w.key }, server + "tls: failed to find any PEM data in certificate input"},
		"roots missing":       {func(o *Options) { w.offer(o); o.TLSRootCAFile = missing }, server + "open " + missing + absent},
		"roots no PEM":        {func(o *Options) { w.offer(o); o.TLSRootCAFile = plain }, server + "failed to append certificate to pool"},
		"roots alone missing": {func(o *Options) { o.TLSRootCAFile = missing }, client + "open " + missing + absent},
		"roots alone no PEM":  {func(o *Options) { o.TLSRootCAFile = plain }, client + "failed to append certificate to pool"},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t, test.change)
			n, err := New(o, log.Discard())
			if n != nil || err == nil || err.Error() != test.want {
				t.Errorf("got %v, %v\nwant %s", n, err, test.want)
			}
			good, err := New(testOptions(t, func(again *Options) { again.DataPath = o.DataPath }), log.Discard())
			if err != nil {
				t.Fatal(err)
			}
			if err := good.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the statistics tell of a connection over TLS, and what an auth server is told of the client's
// certificate.
func TestClientOverTLS(t *testing.T) {
	w := newWorld(t)
	server := newAuthServer(t)
	d := launch(t, w.offer, func(o *Options) {
		o.TLSClientAuthPolicy, o.TLSRootCAFile, o.TLSRequired = "require-verify", w.rootsCA, options.TLSRequiredExceptHTTP
		o.AuthHTTPAddresses = []string{server.address()}
	})
	over, err := d.secure(w.client(w.authority.Issue(t, "worker 7").TLS))
	if err != nil {
		t.Fatal(err)
	}
	d.say(over, "AUTH\n\x00\x00\x00\x06s3cret")
	if got := d.hear(over); got != `{"identity":"me","identity_url":"u","permission_count":1}` {
		t.Fatalf("got %s", got)
	}
	d.say(over, "SUB t ch\n")
	if got := d.hear(over); got != "OK" {
		t.Fatalf("got %s", got)
	}
	want := url.Values{"common_name": {"worker 7"}, "remote_ip": {"127.0.0.1"}, "secret": {"s3cret"}, "tls": {"true"}}
	if got := server.last(); got.Encode() != want.Encode() {
		t.Errorf("asked %v, want %v", got, want)
	}
	c := d.stats().Topics[0].Channels[0].Clients[0]
	if !c.TLS || c.TLSVersion != "TLS1.3" || !strings.HasPrefix(c.TLSCipherSuite, "TLS_") || c.TLSNegotiatedProtocol != "" || !c.TLSNegotiatedProtocolIsMutual {
		t.Errorf("TLS of client: %+v", c)
	}
	if !c.Authed || c.AuthIdentity != "me" || c.AuthIdentityURL != "u" {
		t.Errorf("identity of client: %+v", c)
	}
	if text := d.http("GET", "/stats?format=json", "").body; !bytes.Contains([]byte(text), []byte(`"tls_version":"TLS1.3","tls_negotiated_protocol":"","tls_negotiated_protocol_is_mutual":true`)) {
		t.Errorf("stats %s", text)
	}
}
