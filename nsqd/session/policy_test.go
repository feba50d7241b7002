package session

import (
	"strings"
	"testing"
)

// requireTLS makes a node that offers TLS and accepts nothing without it.
func requireTLS(s *setup) { s.tls, s.required = serverTLS(), true }

// Where TLS is required every command but IDENTIFY is refused without it, before anything else is
// looked at, and what comes behind the refused one is not acted on.
func TestTLSRequired(t *testing.T) {
	with(t, overPipe, func(n *node) {
		for _, before := range []string{"", identify("{}"), identify(`{"feature_negotiation":true}`)} {
			for _, line := range []string{
				"NOP\n", "\n", "ASDF x\n", "SUB\n", "SUB t ch\n", "RDY x\n", "FIN 1\n", "CLS\n",
				"AUTH\n" + sized("s3cret"), pub("t", "x"), pub("t!", "x"), mpub("t", "x"), dpub("t", "1", "x"),
			} {
				c := n.dial()
				if before != "" {
					c.send(before)
					c.frame()
				}
				word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				word, _, _ = strings.Cut(word, "\n")
				c.trySend(line + pub("behind", "x"))
				c.wantFatal("E_INVALID cannot " + word + " in current state (TLS required)")
			}
		}
		if topics := n.broker.Topics(); len(topics) > 0 {
			t.Errorf("topic %q was created without TLS", topics[0].Name())
		}
	}, requireTLS)
	// With it all is as ever.
	for _, by := range []transport{overTLS, {network: "tcp", tls: true, compression: "snappy"}} {
		with(t, by, func(n *node) {
			c := n.subscribe("t", "ch", 1)
			c.send(pub("t", "x"))
			c.wantOK(1)
			c.wantMessage(1, "x")
		}, requireTLS)
	}
}
