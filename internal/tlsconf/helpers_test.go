package tlsconf

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// identity is a certificate with its key.
type identity struct {
	certificate *x509.Certificate
	pem         []byte // of the certificate
	key         crypto.Signer
}

var serial atomic.Int64

func newIdentity(t *testing.T, name string, key crypto.Signer, signer *identity, isCA bool) *identity {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(serial.Add(1)),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{"localhost"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  isCA,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if isCA {
		template.KeyUsage = x509.KeyUsageCertSign
	}
	made := &identity{certificate: template, key: key}
	if signer == nil {
		signer = made
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	if made.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	made.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return made
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rsaKey is one for all: making it takes long.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newAuthority(t *testing.T, name string) *identity {
	return newIdentity(t, name, newKey(t), nil, true)
}

func (i *identity) subordinate(t *testing.T, name string) *identity {
	return newIdentity(t, name, newKey(t), i, true)
}

func (i *identity) issue(t *testing.T, name string) *identity {
	return newIdentity(t, name, newKey(t), i, false)
}

func (i *identity) issueRSA(t *testing.T, name string) *identity {
	t.Helper()
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	return newIdentity(t, name, key, i, false)
}

func (i *identity) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.certificate)
	return pool
}

func (i *identity) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (i *identity) tls(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(i.pem, i.keyPEM(t))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// write puts certificate and key into files and returns their paths.
func (i *identity) write(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	writeFile(t, cert, i.pem)
	writeFile(t, key, i.keyPEM(t))
	return cert, key
}

// writeFile replaces a file, as a program does that hands out certificates.
func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// meet lets a server and a client shake hands and exchange a byte each way. It returns what the
// server knows of the connection, and what either side has against it.
func meet(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	return meetOver(pipe(t), server, client)
}

func meetOver(conns [2]net.Conn, server, client *tls.Config) (tls.ConnectionState, error) {
	defer conns[0].Close()
	defer conns[1].Close()
	served := make(chan error, 1)
	secure := tls.Server(conns[0], server)
	go func() {
		err := exchange(secure, "s", "c")
		if err != nil {
			conns[0].Close()
		}
		served <- err
	}()
	err := exchange(tls.Client(conns[1], client), "c", "s")
	if err != nil {
		conns[1].Close()
	}
	err = errors.Join(err, <-served)
	return secure.ConnectionState(), err
}

func exchange(conn net.Conn, say, want string) error {
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, say); err != nil {
		return err
	}
	got := make([]byte, 1)
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != want {
		return errors.New("received " + string(got))
	}
	return nil
}

// pipe is the two ends of a TCP connection.
func pipe(t *testing.T) [2]net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return [2]net.Conn{near, far}
}

// clock is a time that stands still until it is moved.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(c.offset.Load()))
}
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(text))
}
