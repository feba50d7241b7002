package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"

	"nsq/internal/protocol"
)

// transport is a way to reach a node.
type transport struct {
	network     string // tcp, unix or pipe, which is in memory
	tls         bool
	compression string // snappy, deflate or none
}

var (
	overTCP     = transport{network: "tcp"}
	overPipe    = transport{network: "pipe"}
	overSnappy  = transport{network: "tcp", compression: "snappy"}
	overDeflate = transport{network: "tcp", compression: "deflate"}
	overTLS     = transport{network: "tcp", tls: true}
	transports  = []transport{
		overTCP, overPipe, overSnappy, overDeflate, overTLS,
		{network: "unix"},
		{network: "tcp", tls: true, compression: "snappy"},
		{network: "tcp", tls: true, compression: "deflate"},
	}
)

func (by transport) String() string {
	name := by.network
	if by.tls {
		name += " tls"
	}
	return strings.TrimSpace(name + " " + by.compression)
}

func (by transport) upgrades() bool { return by.tls || by.compression != "" }

// everywhere runs a test over each transport.
func everywhere(t *testing.T, test func(*node), changes ...func(*setup)) {
	for _, by := range transports {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			with(t, by, test, changes...)
		})
	}
}

// upgrade negotiates the layers of the node's transport and puts them on the connection.
func (c *conn) upgrade(members []string) {
	c.t.Helper()
	by := c.node.transport
	members = append([]string{`"feature_negotiation":true`}, members...)
	if by.tls {
		members = append(members, `"tls_v1":true`)
	}
	if by.compression != "" {
		members = append(members, fmt.Sprintf("%q:true", by.compression))
	}
	c.send(identify("{" + strings.Join(members, ",") + "}"))
	answer := c.readFrame(c.raw)
	for layer, granted := range map[string]bool{"tls_v1": by.tls, "snappy": by.compression == "snappy", "deflate": by.compression == "deflate"} {
		if !strings.Contains(answer, fmt.Sprintf(`%q:%v,`, layer, granted)) {
			c.t.Fatalf("%s is not %v in %s", layer, granted, answer)
		}
	}
	c.layer(by)
}

// layer puts the layers on a connection whose IDENTIFY has been answered, and takes the OK in each.
func (c *conn) layer(by transport) {
	c.t.Helper()
	source := io.Reader(c.raw)
	if by.tls {
		config := c.node.clientTLS
		if config == nil {
			config = &tls.Config{InsecureSkipVerify: true}
		}
		secure := tls.Client(c.raw, config)
		if err := secure.Handshake(); err != nil {
			c.t.Fatal(err)
		}
		c.out, source = secure, secure
		c.wantUpgraded(source)
	}
	switch by.compression {
	case "snappy":
		packed := s2.NewWriter(c.out, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
		c.out, source = flushing{packed, packed}, snappy.NewReader(source)
		c.wantUpgraded(source)
	case "deflate":
		packed, err := flate.NewWriter(c.out, 6)
		if err != nil {
			c.t.Fatal(err)
		}
		c.out, source = flushing{packed, packed}, flate.NewReader(source)
		c.wantUpgraded(source)
	}
	c.raw = layered{c.raw, source}
}

// layered is a connection that is read through its layers.
type layered struct {
	net.Conn
	source io.Reader
}

func (l layered) Read(p []byte) (int, error) { return l.source.Read(p) }

func (c *conn) wantUpgraded(source io.Reader) {
	c.t.Helper()
	if got := c.readFrame(source); got != "OK" {
		c.t.Fatalf("got %q, want OK", got)
	}
}

// readFrame takes a frame before anything listens to the connection.
func (c *conn) readFrame(source io.Reader) string {
	c.t.Helper()
	if err := c.raw.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	_, data, err := protocol.ReadFrame(source, 1<<16)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.raw.SetReadDeadline(time.Time{}); err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

// flushing is a writer that compresses and sends each write.
type flushing struct {
	io.Writer
	flusher
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}

// serverTLS has a certificate that nobody has signed.
var serverTLS = sync.OnceValue(func() *tls.Config { return selfSigned("nsqd") })

func selfSigned(name string) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
