package nsqadmin

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
)

func direct(address string) func(*Options) {
	return func(o *Options) { o.NSQDHTTPAddresses = []string{address} }
}

// Actions are for admins, whatever the body; reading is for all.
func TestActionsAreForAdmins(t *testing.T) {
	_, node := fakeCluster(t)
	a := startAdmin(t, func(o *Options) {
		direct(node.address)(o)
		o.AdminUsers, o.ACLHTTPHeader = []string{"ann", "bob"}, "X-User"
	})
	requests := []struct{ method, path string }{
		{"POST", "/api/topics"}, {"POST", "/api/topics/t"}, {"POST", "/api/topics/t/c"},
		{"DELETE", "/api/topics/t"}, {"DELETE", "/api/topics/t/c"}, {"DELETE", "/api/nodes/n"},
	}
	for _, user := range []string{"", "eve", "Ann", "ann,bob"} {
		for _, r := range requests {
			if status, got := a.do(r.method, r.path, "{", "X-User", user); status != 403 || got != `{"message":"FORBIDDEN"}` {
				t.Errorf("%s %s by %q: %d %s", r.method, r.path, user, status, got)
			}
		}
		if status, _ := a.do("GET", "/api/topics", "", "X-User", user); status != 200 {
			t.Errorf("reading by %q: %d", user, status)
		}
	}
	for _, user := range []string{"ann", "bob"} {
		if status, got := a.do("POST", "/api/topics", "{", "x-user", user); status != 400 {
			t.Errorf("action of %s: %d %s", user, status, got)
		}
	}
}

// What another site makes a browser send is refused; scripts and our own pages are served.
func TestOtherSitesAreRefused(t *testing.T) {
	_, node := fakeCluster(t)
	node.accept("/topic/create")
	a := startAdmin(t, direct(node.address))
	own := a.url
	tests := []struct {
		header []string
		status int
	}{
		{nil, 200},
		{[]string{"Origin", own}, 200},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
	}
	for _, test := range tests {
		status, got := a.do("POST", "/api/topics", `{"topic":"t"}`, test.header...)
		if status != test.status {
			t.Errorf("%v: %d %s", test.header, status, got)
		}
	}
	if status, _ := a.do("PUT", "/config/log_level", "debug", "Origin", "http://evil.example"); status != 403 {
		t.Errorf("PUT /config: %d", status)
	}
	if status, _ := a.do("GET", "/api/topics", "", "Sec-Fetch-Site", "cross-site"); status != 200 {
		t.Errorf("reading: %d", status)
	}
}

// /config answers and changes what the contract says, and shows no passwords.
func TestConfig(t *testing.T) {
	a := startAdmin(t, func(o *Options) {
		o.NSQLookupdHTTPAddresses = []string{gone(t)}
		o.GraphiteURL = "http://joe:secret@graphite.example/x"
	})
	tests := []struct {
		method, key, body string
		status            int
		want              string
	}{
		{"GET", "statsd_interval", "", 200, "60000000000"},
		{"GET", "log_level", "", 200, "2"},
		{"GET", "proxy_graphite", "", 200, "false"},
		{"GET", "admin_users", "", 200, "[]"},
		{"GET", "dev_static_dir", "", 200, ""},
		{"GET", "acl_http_header", "", 200, "X-Forwarded-User"},
		{"GET", "graphite_url", "", 200, "http://joe:xxxxx@graphite.example/x"},
		{"GET", "lookupd_http_address", "", 400, `{"message":"INVALID_OPTION"}`},
		{"GET", "config", "", 400, `{"message":"INVALID_OPTION"}`},
		{"PUT", "log_level", "DEBUG", 200, "1"},
		{"PUT", "log_level", `"debug"`, 400, `{"message":"INVALID_VALUE"}`},
		{"PUT", "log_level", "", 413, `{"message":"INVALID_VALUE"}`},
		{"PUT", "nope", "", 413, `{"message":"INVALID_VALUE"}`},
		{"PUT", "admin_users", `["eve"]`, 400, `{"message":"INVALID_OPTION"}`},
		{"PUT", "nsqlookupd_http_addresses", `["h:1","[::1]:2"]`, 200, `["h:1","[::1]:2"]`},
		{"PUT", "nsqlookupd_http_addresses", `["h"]`, 400, `{"message":"INVALID_VALUE"}`},
		{"PUT", "nsqlookupd_http_addresses", `[]`, 400, `{"message":"INVALID_VALUE"}`},
		{"PUT", "nsqlookupd_http_addresses", `null`, 400, `{"message":"INVALID_VALUE"}`},
		{"PUT", "nsqlookupd_http_addresses", `"h:1"`, 400, `{"message":"INVALID_VALUE"}`},
		{"GET", "nsqlookupd_http_addresses", "", 200, `["h:1","[::1]:2"]`},
		{"POST", "log_level", "info", 405, `{"message":"METHOD_NOT_ALLOWED"}`},
	}
	for _, test := range tests {
		status, got := a.do(test.method, "/config/"+test.key, test.body)
		if status != test.status || got != test.want {
			t.Errorf("%s %s %.30s: %d %s, want %d %s", test.method, test.key, test.body, status, got, test.status, test.want)
		}
	}
}

// A value that is too long is refused, however it comes.
func TestConfigIsBounded(t *testing.T) {
	a := startAdmin(t, direct("127.0.0.1:1"))
	status, got := a.local("PUT", "/config/log_level", strings.Repeat("x", maxOption+1))
	if status != 413 || got != `{"message":"INVALID_VALUE"}` {
		t.Errorf("%d %s", status, got)
	}
}

// The list of nsqlookupds decides the mode, at each request.
func TestModeFollowsConfig(t *testing.T) {
	directory, node := fakeCluster(t)
	a := startAdmin(t, direct(node.address))
	if _, got := a.do("GET", "/api/nodes", ""); !strings.Contains(got, `"remote_addresses":null`) {
		t.Errorf("direct: %s", got)
	}
	if status, got := a.do("PUT", "/config/nsqlookupd_http_addresses", `["`+directory.address+`"]`); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	if _, got := a.do("GET", "/api/nodes", ""); !strings.Contains(got, `"remote_addresses":["`+directory.address) {
		t.Errorf("through nsqlookupds: %s", got)
	}
}

// Who may use /config is told by the address of the connection.
func TestConfigIsGuarded(t *testing.T) {
	tests := []struct {
		cidr, remote string
		status       int
	}{
		{"127.0.0.1/8", "127.9.9.9:5", 200},
		{"127.0.0.1/8", "[::1]:5", 403},
		{"127.0.0.1/8", "10.0.0.1:5", 403},
		{"127.0.0.1/8", "[::ffff:127.0.0.1]:5", 200},
		{"127.0.0.1/8", "@", 400},
		{"127.0.0.1/8", "", 400},
		{"::1/128", "[::1]:5", 200},
		{"", "anything", 200},
	}
	for _, test := range tests {
		a := startAdmin(t, func(o *Options) {
			direct("127.0.0.1:1")(o)
			o.AllowConfigFromCIDR = test.cidr
		})
		handler, err := a.handler()
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"GET", "PUT"} {
			req := httptest.NewRequest(method, "/config/log_level", strings.NewReader("info"))
			req.RemoteAddr = test.remote
			req.Header.Set("X-Forwarded-For", "127.0.0.1")
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, req)
			if answer.Code != test.status {
				t.Errorf("%s %q from %q: %d %s", method, test.cidr, test.remote, answer.Code, answer.Body)
			}
		}
	}
}

// Everything is below the base path, and nothing else is anywhere.
func TestBasePath(t *testing.T) {
	_, node := fakeCluster(t)
	for _, base := range []string{"/foo/bar", "foo/bar/", "//foo//bar"} {
		a := startAdmin(t, func(o *Options) {
			direct(node.address)(o)
			o.BasePath = base
		})
		for path, want := range map[string]int{
			"/foo/bar/ping": 200, "/foo/bar/api/topics": 200, "/foo/bar": 200, "/foo/bar/topics": 200, "/foo/bar/config/log_level": 200,
			"/foo/bar/": 301, "/": 404, "/foo": 404, "/ping": 404, "/api/topics": 404, "/topics": 404,
		} {
			if status, _ := a.do("GET", path, ""); status != want {
				t.Errorf("base path %s: %s: %d, want %d", base, path, status, want)
			}
		}
	}
}

// A nsqd with an IPv6 address is asked there and named with brackets.
func TestIPv6(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/info" {
			fmt.Fprintf(w, `{"broadcast_address":"::1","http_port":%d}`, port)
			return
		}
		fmt.Fprint(w, fakeStats)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	name := listener.Addr().String()
	a := startAdmin(t, direct(name))
	for _, path := range []string{name, fmt.Sprintf("%%5B::1%%5D:%d", port)} {
		if status, got := a.do("GET", "/api/nodes/"+path, ""); status != 200 || !strings.HasPrefix(got, `{"node":"`+name+`"`) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}

// A unix socket serves as a port does.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	startAdmin(t, func(o *Options) {
		direct("127.0.0.1:1")(o)
		o.HTTPAddress = path
	})
	local := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	resp, err := local.Get("http://unix/ping")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "OK" {
		t.Errorf("%q, %v", body, err)
	}
}

// Who accepts gzip gets it, by weight; who does not, does not.
func TestCompression(t *testing.T) {
	_, node := fakeCluster(t)
	a := startAdmin(t, direct(node.address))
	_, plain := a.do("GET", "/api/topics", "", "Accept-Encoding", "identity")
	for accept, want := range map[string]bool{
		"gzip": true, "deflate, gzip;q=0.5": true, "GZIP ; q=1": true, "*": true, "gzip;q=0": false, "*, gzip;q=0": false, "br": false, "gzip;q=x": false,
	} {
		resp, got := a.exchange("GET", "/api/topics", "", "Accept-Encoding", accept)
		if zipped := resp.Header.Get("Content-Encoding") == "gzip"; zipped != want {
			t.Errorf("%q: compressed %v", accept, zipped)
			continue
		}
		if want {
			reader, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			if got = string(text); resp.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q: no Vary", accept)
			}
		}
		if got != plain {
			t.Errorf("%q: %s", accept, got)
		}
	}
}

// Events flow as they are written, even to who accepts gzip; an answer that breaks off has no end.
func TestCompressionLeavesStreamsAlone(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "text/plain"} {
		answer := httptest.NewRecorder()
		req := httptest.NewRequest("GET", "/", nil)
		req.Header.Set("Accept-Encoding", "gzip")
		func() {
			defer func() {
				if broken := recover(); broken != http.ErrAbortHandler {
					t.Errorf("%s: panic %v was lost", kind, broken)
				}
			}()
			compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				fmt.Fprint(w, "event")
				if err := http.NewResponseController(w).Flush(); err != nil || !answer.Flushed {
					t.Errorf("%s: not flushed, %v", kind, err)
				}
				panic(http.ErrAbortHandler)
			})).ServeHTTP(answer, req)
		}()
		if kind == "text/event-stream" {
			if answer.Body.String() != "event" {
				t.Errorf("events: %q", answer.Body)
			}
			continue
		}
		reader, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(reader); string(text) != "event" || err == nil {
			t.Errorf("broken answer: %q, %v: taken for a whole one", text, err)
		}
	}
}

// Actions are told to the endpoint, in order, with who did them and what became of them.
func TestNotifications(t *testing.T) {
	notes := make(chan api.AdminNotification, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var note api.AdminNotification
		if err := json.NewDecoder(req.Body).Decode(&note); err != nil || req.Header.Get("Content-Type") != "application/json" {
			t.Errorf("notification: %v, %v", err, req.Header)
		}
		notes <- note
	}))
	t.Cleanup(endpoint.Close)
	_, node := fakeCluster(t)
	node.accept("/topic/create", "/channel/create")
	a := startAdmin(t, func(o *Options) {
		direct(node.address)(o)
		o.BasePath, o.NotificationHTTPEndpoint = "/foo", endpoint.URL+"/hook"
	})
	a.do("POST", "/foo/api/topics?x=1", `{"topic":"orders","channel":"c"}`, "User-Agent", "UA", "Authorization", "Basic am9lOnB3", "X-Scheme", "https", "X-Forwarded-User", "ann")
	a.do("POST", "/foo/api/topics/orders", `{"action":"pause"}`, "User-Agent", "UA")
	host := strings.TrimPrefix(a.url, "http://")
	first := api.AdminNotification{Action: "create_topic", Topic: "orders", User: "joe", UserAgent: "UA", ACLUser: "ann",
		URL: "https://" + host + "/foo/api/topics?x=1", Via: hostname(a.log), Success: true}
	second := first
	second.Action, second.Channel = "create_channel", "c"
	third := api.AdminNotification{Action: "pause_topic", Topic: "orders", UserAgent: "UA", URL: a.url + "/foo/api/topics/orders", Via: first.Via}
	for _, want := range []api.AdminNotification{first, second, third} {
		got := <-notes
		if age := time.Since(time.Unix(got.Timestamp, 0)); age < 0 || age > time.Minute || !strings.HasPrefix(got.RemoteIP, "127.0.0.1:") {
			t.Errorf("time %d, remote %s", got.Timestamp, got.RemoteIP)
		}
		got.Timestamp, got.RemoteIP = 0, ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("notification (-want +got):\n%s", diff)
		}
	}
}

// A nsqd that refuses plain HTTP and wants to see a certificate is asked with ours.
func TestTLSWithClientCertificate(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, fakeStats) }))
	certFile, keyFile, pool := makeCertificate(t)
	secure.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	secure.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // of the refused ones
	secure.StartTLS()
	t.Cleanup(secure.Close)
	rootFile := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, rootFile, "CERTIFICATE", secure.Certificate().Raw)
	_, port, _ := strings.Cut(secure.Listener.Addr().String(), ":")
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"message": "TLS_REQUIRED", "https_port": %s}`, port)
	}))
	t.Cleanup(plain.Close)
	tests := []struct {
		name   string
		change func(*Options)
		status int
	}{
		{"CA and certificate", func(o *Options) {
			o.HTTPClientTLSRootCAFile, o.HTTPClientTLSCert, o.HTTPClientTLSKey = rootFile, certFile, keyFile
		}, 200},
		{"skip-verify and certificate", func(o *Options) {
			o.HTTPClientTLSInsecureSkipVerify, o.HTTPClientTLSCert, o.HTTPClientTLSKey = true, certFile, keyFile
		}, 200},
		{"no certificate", func(o *Options) { o.HTTPClientTLSRootCAFile = rootFile }, 502},
		{"no CA", func(o *Options) { o.HTTPClientTLSCert, o.HTTPClientTLSKey = certFile, keyFile }, 502},
	}
	for _, test := range tests {
		a := startAdmin(t, func(o *Options) {
			direct(strings.TrimPrefix(plain.URL, "http://"))(o)
			test.change(o)
		})
		if status, got := a.do("GET", "/api/topics", ""); status != test.status {
			t.Errorf("%s: %d %s", test.name, status, got)
		}
	}
}

// makeCertificate returns the files of a certificate that signs itself, and a pool with it.
func makeCertificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(certificate)
	folder := t.TempDir()
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", private)
	return certFile, keyFile, pool
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
