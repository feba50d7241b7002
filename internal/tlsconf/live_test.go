package tlsconf

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"nsq/internal/log"
)

// served is a server whose files and clock a test moves.
type served struct {
	*Server
	clock      *clock
	lines      *lines
	authority  *identity
	dir        string
	cert, key  string
	rootCAFile string
}

func serve(t *testing.T, policy string) *served {
	t.Helper()
	s := &served{clock: &clock{}, lines: &lines{}, authority: newAuthority(t, "ca"), dir: t.TempDir()}
	s.replace(t, "first")
	s.rootCAFile = filepath.Join(s.dir, "ca.pem")
	writeFile(t, s.rootCAFile, s.authority.pem)
	var err error
	s.Server, err = NewServer(ServerConfig{
		CertFile: s.cert, KeyFile: s.key, RootCAFile: s.rootCAFile, ClientAuthPolicy: policy,
		Logger: log.New(s.lines, "", log.Info),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.live.now = s.clock.now
	return s
}

// replace writes a new certificate and key.
func (s *served) replace(t *testing.T, name string) {
	t.Helper()
	s.cert, s.key = s.authority.issue(t, name).write(t, s.dir, "server")
}

// expect wants the certificate of that name presented.
func (s *served) expect(t *testing.T, when, name string) {
	t.Helper()
	if got := s.presented(t); got != name {
		t.Errorf("%s: server presents %q, want %q", when, got, name)
	}
}

func (s *served) presented(t *testing.T) (name string) {
	t.Helper()
	_, err := meet(t, s.Config(), s.asking(&name))
	if err != nil {
		t.Errorf("handshake: %v", err)
	}
	return name
}

// asking is a client that notes the name of the certificate that it sees.
func (s *served) asking(name *string) *tls.Config {
	return &tls.Config{RootCAs: s.authority.pool(), ServerName: "localhost", VerifyConnection: func(state tls.ConnectionState) error {
		*name = state.PeerCertificates[0].Subject.CommonName
		return nil
	}}
}

func TestFilesAreFollowed(t *testing.T) {
	s := serve(t, PolicyNone)
	s.expect(t, "at start", "first")

	s.replace(t, "second")
	s.expect(t, "within the second", "first")
	s.clock.advance(checkInterval)
	s.expect(t, "a second later", "second")
	if n := s.lines.count("INFO: TLS: read changed files"); n != 1 {
		t.Errorf("%d lines of one change", n)
	}

	for range 3 {
		s.clock.advance(checkInterval)
		s.expect(t, "unchanged", "second")
	}
	if n := s.lines.count("\n"); n != 1 {
		t.Errorf("%d lines without a change", n-1)
	}
}

// A file that was touched or written in place counts as changed, too.
func TestChangesAreSeen(t *testing.T) {
	for name, change := range map[string]func(*testing.T, string){
		"modification time": func(t *testing.T, path string) {
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		},
		"size": func(t *testing.T, path string) {
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteString("\n"); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, before.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"another file of the same size and time": func(t *testing.T, path string) {
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, content)
			if err := os.Chtimes(path, time.Time{}, before.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s := serve(t, PolicyNone)
		for _, path := range []string{s.cert, s.key, s.rootCAFile} {
			before := s.live.latest()
			change(t, path)
			s.clock.advance(checkInterval)
			if s.live.latest() == before {
				t.Errorf("%s of %s is not seen", name, filepath.Base(path))
			}
		}
	}
}

// Broken files leave what there was, are logged once a change, and are no end: the next good ones
// are used.
func TestBrokenFiles(t *testing.T) {
	s := serve(t, PolicyNone)
	complaints := func() int { return s.lines.count("ERROR: TLS: changed files are of no use") }
	for i, breakIt := range []func(){
		func() { writeFile(t, s.cert, []byte("junk")) },
		func() { writeFile(t, s.key, newAuthority(t, "other").keyPEM(t)) },
		func() { writeFile(t, s.rootCAFile, []byte("more junk")) },
		func() {
			if err := os.Remove(s.key); err != nil {
				t.Fatal(err)
			}
		},
	} {
		breakIt()
		for range 3 {
			s.clock.advance(checkInterval)
			s.expect(t, "broken", "first")
		}
		if n := complaints(); n != i+1 {
			t.Errorf("%d complaints after %d changes", n, i+1)
		}
		if err := s.Reload(); err == nil {
			t.Error("Reload: no error")
		}
	}
	writeFile(t, s.rootCAFile, s.authority.pem)
	s.replace(t, "second")
	s.clock.advance(checkInterval)
	s.expect(t, "mended", "second")
	if n := complaints(); n != 4 {
		t.Errorf("%d complaints", n)
	}
}

// Reload does not wait for the second, nor for a change that can be seen; its errors are its
// caller's to log.
func TestReload(t *testing.T) {
	s := serve(t, PolicyNone)
	s.expect(t, "at start", "first")
	s.replace(t, "second")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "reloaded", "second")
	before := s.live.latest()
	if err := s.Reload(); err != nil || s.live.latest() == before {
		t.Errorf("unchanged files were not read: %v", err)
	}
	writeFile(t, s.cert, []byte("junk"))
	err := s.Reload()
	if want := "failed to build TLS config - tls: failed to find any PEM data in certificate input"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	s.clock.advance(checkInterval)
	s.expect(t, "after a failed reload", "second")
	if n := s.lines.count("\n"); n != 0 {
		t.Errorf("%d lines", n)
	}
}

// A root that is taken away no longer lets clients in, and no session is resumed
// without a look at the certificates.
func TestRootsAreFollowed(t *testing.T) {
	s := serve(t, PolicyRequireVerify)
	client := &tls.Config{
		RootCAs: s.authority.pool(), ServerName: "localhost", Certificates: []tls.Certificate{s.authority.issue(t, "client").tls(t)},
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
	for range 2 {
		if state, err := meet(t, s.Config(), client); err != nil || state.DidResume {
			t.Fatalf("resumed: %v, %v", state.DidResume, err)
		}
	}
	writeFile(t, s.rootCAFile, newAuthority(t, "other").pem)
	s.clock.advance(checkInterval)
	if _, err := meet(t, s.Config(), client); err == nil {
		t.Error("a client of the old root is let in")
	}
}

// The configuration of a client is one pointer until its files change.
func TestClientFollows(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	roots := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, roots, first.pem)
	client, err := NewClient(ClientConfig{RootCAFile: roots, Logger: log.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{}
	client.live.now = c.now
	before := client.Config()
	c.advance(checkInterval)
	if client.Config() != before {
		t.Error("another configuration without a change")
	}
	writeFile(t, roots, second.pem)
	c.advance(checkInterval)
	server := &tls.Config{Certificates: []tls.Certificate{second.issue(t, "server").tls(t)}}
	if _, err := meet(t, server, named(client.Config())); err != nil {
		t.Errorf("new root: %v", err)
	}
	if _, err := meet(t, server, named(before)); err == nil {
		t.Error("the configuration of before was modified")
	}
	writeFile(t, roots, first.pem)
	if err := client.Reload(); err != nil {
		t.Error(err)
	}
	if _, err := meet(t, server, named(client.Config())); err == nil {
		t.Error("Reload did nothing")
	}
}

// While certificates change all the time, under look-ups and reloads, every handshake works.
func TestReloadUnderLoad(t *testing.T) {
	const clients, handshakes, generations = 4, 15, 25
	s := serve(t, PolicyNone)
	known := map[string]bool{"first": true}
	for i := range generations {
		known[fmt.Sprint("generation ", i)] = true
	}
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range handshakes {
				s.clock.advance(checkInterval)
				if name := s.presented(t); !known[name] {
					t.Errorf("server presents %q", name)
				}
			}
		})
	}
	for i := range generations {
		s.replace(t, fmt.Sprint("generation ", i))
		if err := s.Reload(); err != nil {
			t.Error(err) // nobody else writes
		}
	}
	all.Wait()
	s.expect(t, "in the end", fmt.Sprint("generation ", generations-1))
}

// A handshake does not wait while another reads the files.
func TestNobodyWaitsForTheDisk(t *testing.T) {
	s := serve(t, PolicyNone)
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	s.clock.advance(checkInterval)
	s.expect(t, "while the files are read", "first")
}
