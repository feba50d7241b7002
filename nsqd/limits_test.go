package nsqd

import (
	"io"
	"net"
	"strings"
	"testing"
)

// Connections beyond the limit are closed without a word, and there is room again when one ends.
func TestMaxConnections(t *testing.T) {
	d := launch(t, func(o *Options) { o.MaxConnections = 2 })
	works := func(conn net.Conn) bool {
		if _, err := io.WriteString(conn, "PUB t\n\x00\x00\x00\x01x"); err != nil {
			return false
		}
		answer := make([]byte, 10)
		_, err := io.ReadFull(conn, answer)
		return err == nil && strings.HasSuffix(string(answer), "OK")
	}
	first, second := d.dial(""), d.dial("")
	if !works(first) || !works(second) {
		t.Fatal("connections within the limit do not work")
	}
	third, err := net.Dial("tcp", d.TCPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if rest, err := io.ReadAll(third); len(rest) > 0 || err != nil {
		t.Errorf("the connection beyond the limit got %q, %v", rest, err)
	}
	if got := d.http("GET", "/ping", ""); got.body != "OK" { // HTTP is not counted
		t.Errorf("/ping says %+v", got)
	}
	first.Close()
	eventually(t, "room for another", func() bool {
		conn, err := net.Dial("tcp", d.TCPAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, err = io.WriteString(conn, "  V2")
		return err == nil && works(conn)
	})
	if !works(second) {
		t.Error("the other connection does not work any more")
	}
}
