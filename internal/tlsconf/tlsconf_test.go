package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nsq/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each policy takes the clients that it should, over both generations of the protocol.
func TestPolicies(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	dir := t.TempDir()
	cert, key := ours.issue(t, "server").write(t, dir, "server")
	roots := filepath.Join(dir, "ca.pem")
	writeFile(t, roots, ours.pem)
	known, stranger := ours.issue(t, "known").tls(t), theirs.issue(t, "stranger").tls(t)

	for _, test := range []struct {
		policy            string
		none, any, signed bool
	}{
		{PolicyNone, true, true, true},
		{PolicyRequire, false, true, true},
		{PolicyRequireVerify, false, false, true},
	} {
		server, err := NewServer(ServerConfig{CertFile: cert, KeyFile: key, RootCAFile: roots, ClientAuthPolicy: test.policy, Logger: log.Discard()})
		if err != nil {
			t.Fatalf("%q: %v", test.policy, err)
		}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, client := range []struct {
				name         string
				certificates []tls.Certificate
				taken        bool
			}{
				{"no certificate", nil, test.none},
				{"certificate of a stranger", []tls.Certificate{stranger}, test.any},
				{"signed certificate", []tls.Certificate{known}, test.signed},
			} {
				state, err := meet(t, server.Config(), &tls.Config{
					RootCAs: ours.pool(), ServerName: "localhost", Certificates: client.certificates, MinVersion: version, MaxVersion: version,
				})
				if (err == nil) != client.taken {
					t.Errorf("%q, %s, %s: %v, want it taken: %v", test.policy, tls.VersionName(version), client.name, err, client.taken)
				}
				if err != nil || test.policy == PolicyNone || client.certificates == nil {
					continue
				}
				if len(state.PeerCertificates) == 0 {
					t.Errorf("%q, %s, %s: the server did not see it", test.policy, tls.VersionName(version), client.name)
				}
			}
		}
	}
}

// A certificate that chains to a root through an intermediate of the client's own is taken.
func TestVerifiedChain(t *testing.T) {
	root := newAuthority(t, "root")
	dir := t.TempDir()
	cert, key := root.issue(t, "server").write(t, dir, "server")
	roots := filepath.Join(dir, "ca.pem")
	writeFile(t, roots, root.pem)
	server, err := NewServer(ServerConfig{CertFile: cert, KeyFile: key, RootCAFile: roots, ClientAuthPolicy: PolicyRequireVerify, Logger: log.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	middle := root.subordinate(t, "middle")
	leaf := middle.issue(t, "leaf").tls(t)
	leaf.Certificate = append(leaf.Certificate, middle.certificate.Raw)
	state, err := meet(t, server.Config(), &tls.Config{RootCAs: root.pool(), ServerName: "localhost", Certificates: []tls.Certificate{leaf}})
	if err != nil || len(state.VerifiedChains) == 0 {
		t.Errorf("%d chains, %v", len(state.VerifiedChains), err)
	}
}

// The oldest version is TLS 1.2 unless it was asked for, and then an old peer is served whatever
// key exchange it is limited to.
func TestServerVersions(t *testing.T) {
	authority := newAuthority(t, "ca")
	dir := t.TempDir()
	cert, key := authority.issueRSA(t, "server").write(t, dir, "server")
	for _, test := range []struct {
		least uint16
		taken map[uint16]bool
	}{
		{0, map[uint16]bool{tls.VersionTLS12: true, tls.VersionTLS13: true}},
		{tls.VersionTLS10, map[uint16]bool{tls.VersionTLS10: true, tls.VersionTLS11: true, tls.VersionTLS12: true, tls.VersionTLS13: true}},
		{tls.VersionTLS11, map[uint16]bool{tls.VersionTLS11: true, tls.VersionTLS12: true, tls.VersionTLS13: true}},
		{tls.VersionTLS12, map[uint16]bool{tls.VersionTLS12: true, tls.VersionTLS13: true}},
		{tls.VersionTLS13, map[uint16]bool{tls.VersionTLS13: true}},
	} {
		server, err := NewServer(ServerConfig{CertFile: cert, KeyFile: key, MinVersion: test.least, Logger: log.Discard()})
		if err != nil {
			t.Fatalf("%#x: %v", test.least, err)
		}
		for version := uint16(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
			state, err := meet(t, server.Config(), &tls.Config{RootCAs: authority.pool(), ServerName: "localhost", MinVersion: version, MaxVersion: version})
			if (err == nil) != test.taken[version] || err == nil && state.Version != version {
				t.Errorf("least %#x, client of %s: %v, %s", test.least, tls.VersionName(version), err, tls.VersionName(state.Version))
			}
		}
		for _, suite := range []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA} {
			state, err := meet(t, server.Config(), &tls.Config{
				RootCAs: authority.pool(), ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10, CipherSuites: []uint16{suite},
			})
			if (err == nil) != test.taken[tls.VersionTLS10] || err == nil && state.CipherSuite != suite {
				t.Errorf("least %#x, %s: %v", test.least, tls.CipherSuiteName(suite), err)
			}
		}
		// Whoever can do better does better.
		state, err := meet(t, server.Config(), &tls.Config{
			RootCAs: authority.pool(), ServerName: "localhost", MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		})
		if test.taken[tls.VersionTLS12] && (err != nil || state.CipherSuite != tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) {
			t.Errorf("least %#x: %v, %s", test.least, err, tls.CipherSuiteName(state.CipherSuite))
		}
	}
}

func TestClientVersions(t *testing.T) {
	authority := newAuthority(t, "ca")
	roots := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, roots, authority.pem)
	certificate := authority.issueRSA(t, "server").tls(t)
	for least, oldest := range map[uint16]uint16{
		0: tls.VersionTLS12, tls.VersionTLS10: tls.VersionTLS10, tls.VersionTLS11: tls.VersionTLS11,
		tls.VersionTLS12: tls.VersionTLS12, tls.VersionTLS13: tls.VersionTLS13,
	} {
		client, err := NewClient(ClientConfig{RootCAFile: roots, MinVersion: least, Logger: log.Discard()})
		if err != nil {
			t.Fatalf("%#x: %v", least, err)
		}
		for version := uint16(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
			_, err := meet(t, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: version, MaxVersion: version}, named(client.Config()))
			if (err == nil) != (version >= oldest) {
				t.Errorf("least %#x, server of %s: %v", least, tls.VersionName(version), err)
			}
		}
	}
}

// A client trusts its roots only, unless told to trust anybody, and presents its certificate.
func TestClient(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	dir := t.TempDir()
	roots := filepath.Join(dir, "ca.pem")
	writeFile(t, roots, ours.pem)
	cert, key := ours.issue(t, "client").write(t, dir, "client")
	friend := &tls.Config{Certificates: []tls.Certificate{ours.issue(t, "server").tls(t)}, ClientAuth: tls.RequestClientCert}
	stranger := &tls.Config{Certificates: []tls.Certificate{theirs.issue(t, "server").tls(t)}, ClientAuth: tls.RequestClientCert}

	for _, test := range []struct {
		name     string
		config   ClientConfig
		friend   bool
		stranger bool
		presents int
	}{
		{"roots", ClientConfig{RootCAFile: roots}, true, false, 0},
		{"system roots", ClientConfig{}, false, false, 0},
		{"skip verify", ClientConfig{InsecureSkipVerify: true}, true, true, 0},
		{"certificate", ClientConfig{RootCAFile: roots, CertFile: cert, KeyFile: key}, true, false, 1},
	} {
		test.config.Logger = log.Discard()
		client, err := NewClient(test.config)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		state, err := meet(t, friend, named(client.Config()))
		if (err == nil) != test.friend || len(state.PeerCertificates) != test.presents {
			t.Errorf("%s: %v, %d certificates", test.name, err, len(state.PeerCertificates))
		}
		if _, err := meet(t, stranger, named(client.Config())); (err == nil) != test.stranger {
			t.Errorf("%s: server of a stranger: %v", test.name, err)
		}
		wrong := client.Config().Clone()
		wrong.ServerName = "elsewhere.example"
		if _, err := meet(t, friend, wrong); (err == nil) != test.config.InsecureSkipVerify {
			t.Errorf("%s: server of another name: %v", test.name, err)
		}
	}
}

// A daemon that cannot start says why in the words that are known.
func TestErrors(t *testing.T) {
	authority := newAuthority(t, "ca")
	dir := t.TempDir()
	cert, key := authority.issue(t, "server").write(t, dir, "server")
	_, otherKey := authority.issue(t, "other").write(t, dir, "other")
	junk, huge, absent := filepath.Join(dir, "junk"), filepath.Join(dir, "huge"), filepath.Join(dir, "absent")
	writeFile(t, junk, []byte("-----BEGIN NOTHING"))
	writeFile(t, huge, make([]byte, maxFile+1))

	for _, test := range []struct {
		config ServerConfig
		want   string
	}{
		{ServerConfig{CertFile: cert}, "open : no such file or directory"},
		{ServerConfig{KeyFile: key}, "open : no such file or directory"},
		{ServerConfig{CertFile: absent, KeyFile: key}, "open " + absent + ": no such file or directory"},
		{ServerConfig{CertFile: cert, KeyFile: absent}, "open " + absent + ": no such file or directory"},
		{ServerConfig{CertFile: dir, KeyFile: key}, dir + " is not a regular file"},
		{ServerConfig{CertFile: huge, KeyFile: key}, huge + " is longer than 8388608 bytes"},
		{ServerConfig{CertFile: junk, KeyFile: key}, "tls: failed to find any PEM data in certificate input"},
		{ServerConfig{CertFile: cert, KeyFile: otherKey}, "tls: private key does not match public key"},
		{ServerConfig{CertFile: cert, KeyFile: key, RootCAFile: absent}, "open " + absent + ": no such file or directory"},
		{ServerConfig{CertFile: cert, KeyFile: key, RootCAFile: junk}, "failed to append certificate to pool"},
		{ServerConfig{CertFile: cert, KeyFile: key, ClientAuthPolicy: "required"}, `unknown client auth policy "required"`},
		{ServerConfig{CertFile: cert, KeyFile: key, MinVersion: tls.VersionTLS10 - 1}, "unknown minimum version of TLS 0x0300"},
		{ServerConfig{CertFile: cert, KeyFile: key, MinVersion: tls.VersionTLS13 + 1}, "unknown minimum version of TLS 0x0305"},
	} {
		test.config.Logger = log.Discard()
		if _, err := NewServer(test.config); err == nil || err.Error() != "failed to build TLS config - "+test.want {
			t.Errorf("%+v: %v", test.config, err)
		}
	}
	for _, test := range []struct {
		config ClientConfig
		want   string
	}{
		{ClientConfig{RootCAFile: absent}, "open " + absent + ": no such file or directory"},
		{ClientConfig{RootCAFile: junk}, "failed to append certificate to pool"},
		{ClientConfig{CertFile: cert}, "open : no such file or directory"},
		{ClientConfig{KeyFile: key}, "open : no such file or directory"},
		{ClientConfig{MinVersion: 1}, "unknown minimum version of TLS 0x0001"},
	} {
		test.config.Logger = log.Discard()
		if _, err := NewClient(test.config); err == nil || err.Error() != "failed to build client TLS config - "+test.want {
			t.Errorf("%+v: %v", test.config, err)
		}
	}
}

// What is in the key's file stays out of errors.
func TestErrorsKeepTheKey(t *testing.T) {
	const secret = "c2VjcmV0"
	dir := t.TempDir()
	cert, key := newAuthority(t, "ca").issue(t, "server").write(t, dir, "server")
	for _, content := range []string{
		secret,
		"-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n",
		"-----BEGIN PRIVATE KEY-----\n" + secret + "!\n-----END PRIVATE KEY-----\n",
	} {
		writeFile(t, key, []byte(content))
		_, err := NewServer(ServerConfig{CertFile: cert, KeyFile: key, Logger: log.Discard()})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// named is config for the server of the tests.
func named(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.ServerName = "localhost"
	return config
}

// The certificates of the tests are good for what the tests need.
func TestAuthority(t *testing.T) {
	authority := newAuthority(t, "ca")
	leaf := authority.issue(t, "leaf")
	if _, err := leaf.certificate.Verify(x509.VerifyOptions{Roots: authority.pool(), DNSName: "localhost"}); err != nil {
		t.Error(err)
	}
}
