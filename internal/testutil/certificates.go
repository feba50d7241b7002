package testutil

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for a test.
type Authority struct{ self Certificate }

// Certificate is a certificate with its key.
type Certificate struct {
	TLS     tls.Certificate
	CertPEM []byte
	KeyPEM  []byte
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	return &Authority{issue(t, name, nil)}
}

// Issue makes a certificate for a server on the loopback interface, or a client, of that common name.
func (a *Authority) Issue(t testing.TB, name string) Certificate {
	t.Helper()
	return issue(t, name, &a.self)
}

// Pool trusts the authority and nobody else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.self.TLS.Leaf)
	return pool
}

// Write writes the authority's certificate into a folder and returns its path.
func (a *Authority) Write(t testing.TB, folder string) string {
	t.Helper()
	return replace(t, filepath.Join(folder, "ca.pem"), a.self.CertPEM)
}

// Write writes certificate and key into a folder, in place of those that are there, and returns their
// paths.
func (c Certificate) Write(t testing.TB, folder string) (cert, key string) {
	t.Helper()
	return replace(t, filepath.Join(folder, "cert.pem"), c.CertPEM), replace(t, filepath.Join(folder, "key.pem"), c.KeyPEM)
}

// replace replaces a file as those do who hand out certificates: nobody sees a part of it.
func replace(t testing.TB, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// issue makes a certificate, that of an authority without a signer.
func issue(t testing.TB, name string, signer *Certificate) Certificate {
	t.Helper()
	made, err := sign(name, signer)
	if err != nil {
		t.Fatalf("make certificate %s: %v", name, err)
	}
	return made
}

func sign(name string, signer *Certificate) (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, by := template, key
	if signer == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		parent, by = signer.TLS.Leaf, signer.TLS.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return Certificate{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}
	made := Certificate{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
	if made.TLS, err = tls.X509KeyPair(made.CertPEM, made.KeyPEM); err != nil {
		return Certificate{}, fmt.Errorf("pair of certificate and key: %w", err)
	}
	return made, nil
}
