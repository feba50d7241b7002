package session

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
)

// The answer says what is granted, and is the same in all else.
func TestAnswerOfUpgrade(t *testing.T) {
	for _, test := range []struct {
		request, granted, more string
		change                 func(*setup)
	}{
		{`"deflate":true,"deflate_level":6`, "deflate", "", nil},
		{`"snappy":true`, "snappy", "", nil},
		{`"tls_v1":true`, "tls_v1", "", func(s *setup) { s.tls = serverTLS() }},
		{`"tls_v1":true,"snappy":true`, "tls_v1", "snappy", func(s *setup) { s.tls = serverTLS() }},
		{`"tls_v1":true`, "", "", nil},
		{`"snappy":true`, "", "", func(s *setup) { s.limits.Snappy = false }},
		{`"deflate":true`, "", "", func(s *setup) { s.limits.Deflate = false }},
		{`"snappy":true,"deflate":true`, "snappy", "", func(s *setup) { s.limits.Deflate = false }},
		{`"snappy":true,"deflate":true`, "", "", func(s *setup) { s.limits.Snappy, s.limits.Deflate = false, false }},
	} {
		t.Run(test.request+" "+test.granted, func(t *testing.T) {
			if test.change == nil {
				test.change = func(*setup) {}
			}
			with(t, overTCP, func(n *node) {
				c := n.dial()
				c.send(identify(`{"feature_negotiation":true,` + test.request + "}"))
				c.wantResponse(negotiated(60000, test.granted, test.more))
				if test.granted == "" { // nothing follows the answer
					c.wantNothing()
				}
			}, test.change)
		})
	}
}

// The bytes that a client of NSQ 1.3 sent are understood.
func TestRecordedStreams(t *testing.T) {
	for _, test := range []struct{ layer, sent string }{
		{"deflate", "0a08755228313 2e662606060 4c04000000ffff"},
		{"snappy", "ff060000734e61507059 01110000c07b326b505542207432340a0000000161"},
	} {
		t.Run(test.layer, func(t *testing.T) {
			sent, err := hex.DecodeString(strings.ReplaceAll(test.sent, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			with(t, transport{network: "tcp", compression: test.layer}, func(n *node) {
				c := n.dial()
				c.out = c.raw.(layered).Conn
				c.send(string(sent))
				c.wantOK(1)
			})
		})
	}
}

// Some clients begin a new snappy stream with every command.
func TestRepeatedSnappyStreams(t *testing.T) {
	with(t, overSnappy, func(n *node) {
		c := n.dial()
		c.out = c.raw.(layered).Conn
		for range 10 {
			c.send(packed("snappy", pub("t", "x")))
			c.wantOK(1)
		}
		c.send(strings.Repeat(packed("snappy", pub("t", "y")), 10))
		c.wantOK(10)
	})
}

// packed is a whole compressed stream.
func packed(layer, text string) string {
	var out bytes.Buffer
	if layer == "snappy" {
		w := s2.NewWriter(&out, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
		io.WriteString(w, text)
		w.Flush()
		return out.String()
	}
	w, _ := flate.NewWriter(&out, 6)
	io.WriteString(w, text)
	w.Flush()
	return out.String()
}

// Input that does not decompress ends the connection without a word.
func TestCorruptStreams(t *testing.T) {
	for _, test := range []struct{ name, layer, sent string }{
		{"no stream", "snappy", "PUB t\n\x00\x00\x00\x01x"},
		{"checksum", "snappy", "\xff\x06\x00\x00sNaPpY\x01\x11\x00\x00\xc0\x7b\x32\x6cPUB t24\n\x00\x00\x00\x01a"},
		{"reserved chunk", "snappy", "\xff\x06\x00\x00sNaPpY\x02\x01\x00\x00x"},
		{"chunk of 16 MiB", "snappy", "\xff\x06\x00\x00sNaPpY\x01\xff\xff\xff"},
		{"block of 4 GiB", "snappy", "\xff\x06\x00\x00sNaPpY\x00\x0a\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f\x00"},
		{"reserved block", "deflate", "\xff\xff\xff\xff"},
		{"stored length", "deflate", "\x00\x05\x00\x00\x00hello"},
		{"distance", "deflate", "\x4b\x04\x82\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"},
	} {
		t.Run(test.layer+" "+test.name, func(t *testing.T) {
			with(t, transport{network: "tcp", compression: test.layer}, func(n *node) {
				c := n.dial()
				c.send(pub("t", "x"))
				c.wantOK(1)
				c.out = c.raw.(layered).Conn
				c.send(test.sent)
				if rest, err := c.in.take(1, patience); rest != "" || err == nil {
					t.Errorf("got %q", rest)
				}
				eventually(t, "the client is gone", func() bool { return len(n.sessions.Clients()) == 0 })
			})
		})
	}
}

// A small stream that becomes huge takes no more memory than any other input.
func TestDecompressionIsBounded(t *testing.T) {
	for _, layer := range []string{"snappy", "deflate"} {
		t.Run(layer, func(t *testing.T) {
			with(t, transport{network: "tcp", compression: layer}, func(n *node) {
				c := n.dial()
				c.trySend(pub("t", "x") + strings.Repeat("N", 8<<20))
				c.wantOK(1)
				c.wantError("E_INVALID command line longer than 16384 bytes")
			})
		})
	}
}

// What a client sends right behind its IDENTIFY belongs to the first layer and is not lost.
func TestBytesBehindIdentify(t *testing.T) {
	commands := pub("t", "x") + "NOP\n" + pub("t", strings.Repeat("y", 20000)) + mpub("t", "z")
	for _, by := range []transport{overTCP, overSnappy, overDeflate} {
		t.Run(by.String(), func(t *testing.T) {
			with(t, by, func(n *node) {
				behind, member := commands, `"x":0`
				if by.upgrades() {
					behind, member = packed(by.compression, commands), `"`+by.compression+`":true`
				}
				c := n.raw()
				c.send("  V2" + identify(`{"feature_negotiation":true,`+member+"}") + behind)
				if got := c.readFrame(c.raw); got != negotiated(60000, by.compression, "") {
					t.Fatalf("got %s", got)
				}
				source := io.Reader(c.raw)
				switch by.compression {
				case "snappy":
					source = snappy.NewReader(c.raw)
				case "deflate":
					source = flate.NewReader(c.raw)
				}
				c.listenTo(source)
				if by.upgrades() {
					c.wantOK(1)
				}
				c.wantOK(3)
			})
		})
	}
	t.Run("tls", func(t *testing.T) {
		with(t, overTLS, func(n *node) {
			c := n.raw()
			c.send("  V2")
			c.raw = &eager{Conn: c.raw, c: c, first: identify(`{"feature_negotiation":true,"tls_v1":true}`)}
			c.layer(overTLS)
			c.listen()
			c.send(commands)
			c.wantOK(3)
		})
	})
}

// eager sends its first bytes together with the first ones of the layer above it, and takes the
// answer to them before anything is read.
type eager struct {
	net.Conn
	c     *conn
	first string
	once  sync.Once
}

func (e *eager) Write(p []byte) (int, error) {
	if e.first != "" {
		p = append([]byte(e.first), p...)
		n, err := e.Conn.Write(p)
		n -= len(e.first)
		e.first = ""
		return n, err
	}
	return e.Conn.Write(p)
}

func (e *eager) Read(p []byte) (int, error) {
	e.once.Do(func() {
		e.c.raw = e.Conn
		if got := e.c.readFrame(e.Conn); got != negotiated(60000, "tls_v1", "") {
			e.c.t.Errorf("got %s", got)
		}
	})
	return e.Conn.Read(p)
}

// A handshake that fails is told in clear text, in our own words.
func TestFailedHandshake(t *testing.T) {
	const told = "E_IDENTIFY_FAILED IDENTIFY failed TLS handshake"
	begin := func(n *node) *conn {
		c := n.raw()
		c.send("  V2" + identify(`{"feature_negotiation":true,"tls_v1":true}`))
		if got := c.readFrame(c.raw); got != negotiated(60000, "tls_v1", "") {
			n.t.Fatalf("got %s", got)
		}
		return c
	}
	t.Run("no TLS", func(t *testing.T) {
		with(t, overTLS, func(n *node) {
			c := begin(n).listen()
			c.send(strings.Repeat(pub("t", "x"), 100))
			c.wantLast(told)
		})
	})
	t.Run("no common version", func(t *testing.T) {
		with(t, overTLS, func(n *node) {
			c := begin(n)
			record := &recorder{Conn: c.raw}
			if err := tls.Client(record, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake(); err == nil {
				t.Fatal("the handshake succeeded")
			}
			rest, err := io.ReadAll(c.raw)
			if all := record.text() + string(rest); err != nil || !strings.HasSuffix(all, frame(1, told)) {
				t.Errorf("got %q, %v", all, err)
			}
		}, func(s *setup) {
			s.tls = serverTLS().Clone()
			s.tls.MinVersion = tls.VersionTLS13
		})
	})
	t.Run("end of input", func(t *testing.T) {
		with(t, overTLS, func(n *node) {
			c := begin(n).listen()
			c.closeWrite()
			c.wantLast(told)
		})
	})
	t.Run("silence", func(t *testing.T) {
		with(t, transport{network: "pipe", tls: true}, func(n *node) {
			c := begin(n).listen()
			began := time.Now()
			time.Sleep(4900 * time.Millisecond)
			c.wantQuiet()
			c.wantFatal(told)
			wantAfter(t, began, 5*time.Second, 5*time.Second)
		})
	})
	t.Run("shutdown", func(t *testing.T) { // does not wait for it
		with(t, overTLS, func(n *node) { begin(n) })
	})
}

// wantLast takes everything up to the end, which is an error; the alert of TLS may come before it.
func (c *conn) wantLast(told string) {
	c.t.Helper()
	eventually(c.t, "the end of the connection", func() bool { _, err := c.in.peek(); return err != nil })
	if got, err := c.in.peek(); err != io.EOF || !strings.HasSuffix(got, frame(1, told)) {
		c.t.Errorf("got %q, %v", got, err)
	}
}

// Every flush carries something: there is one end of block for each frame.
func TestNoEmptyDeflateBlocks(t *testing.T) {
	with(t, transport{network: "pipe", compression: "deflate"}, func(n *node) {
		c := n.raw()
		record := &recorder{Conn: c.raw}
		c.raw = record
		c.send("  V2")
		c.upgrade([]string{everySecond})
		began := time.Now()
		c.listen()
		frames := 1 // the OK of the upgrade
		for i := range 5 {
			c.wantHeartbeats(began.Add(time.Duration(i)*time.Second), time.Second, 1)
			c.send(pub("t", "x"))
			c.wantOK(1)
			c.send("NOP\n")
			settled()
			frames += 2
		}
		if got := strings.Count(record.text(), "\x00\x00\xff\xff"); got != frames {
			t.Errorf("%d blocks for %d frames", got, frames)
		}
	})
}

// recorder keeps what was read.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	read bytes.Buffer
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read.Write(p[:n])
	return n, err
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read.String()
}

// Statistics tell the layers of a connection.
func TestStatisticsOfLayers(t *testing.T) {
	for _, by := range transports {
		if by.network != "tcp" {
			continue
		}
		t.Run(by.String(), func(t *testing.T) {
			with(t, by, func(n *node) {
				c := n.dial()
				c.send(pub("t", "x"))
				c.wantOK(1)
				client := n.sessions.Clients()[0]
				if client.TLS != by.tls || client.Snappy != (by.compression == "snappy") || client.Deflate != (by.compression == "deflate") {
					t.Errorf("tls %v, snappy %v, deflate %v", client.TLS, client.Snappy, client.Deflate)
				}
				if by.tls && (client.TLSVersion != "TLS1.3" || !strings.HasPrefix(client.TLSCipherSuite, "TLS_")) {
					t.Errorf("version %q, cipher suite %q", client.TLSVersion, client.TLSCipherSuite)
				}
			})
		})
	}
}
