package netserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err = net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

// The peer sends its whole oversized command before it reads: a plain Close would reset the
// connection under it, so it could neither finish sending nor read why it was refused.
func TestHangUpDeliversLastBytes(t *testing.T) {
	client, server := pair(t)
	hungUp := make(chan error, 1)
	go func() {
		_, err := server.Write([]byte("E_BAD"))
		hungUp <- errors.Join(err, HangUp(server))
	}()
	if _, err := client.Write(bytes.Repeat([]byte("x"), 4<<20)); err != nil {
		t.Errorf("send: %v", err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Error(err)
	}
	got, err := io.ReadAll(client)
	if string(got) != "E_BAD" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if err := <-hungUp; err != nil {
		t.Error(err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("connection is not closed: %v", err)
	}
}

// halfPipe is a pipe that pretends to be half-closed, for time under control.
type halfPipe struct {
	net.Conn
	halfClosed bool
}

func (p *halfPipe) CloseWrite() error { p.halfClosed = true; return nil }

func TestHangUpIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		conn := &halfPipe{Conn: near}
		start := time.Now()
		if err := HangUp(conn); err != nil {
			t.Error(err)
		}
		if elapsed := time.Since(start); elapsed != hangUpTimeout || !conn.halfClosed {
			t.Errorf("silent peer: hung up after %s, half-closed %t", elapsed, conn.halfClosed)
		}
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection is not closed: %v", err)
		}
	})
}

func TestHangUpIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		sent := make(chan int)
		go func() {
			total, piece := 0, make([]byte, 1<<20)
			for {
				n, err := far.Write(piece)
				total += n
				if err != nil {
					sent <- total
					return
				}
			}
		}()
		start := time.Now()
		if err := HangUp(&halfPipe{Conn: near}); err != nil {
			t.Error(err)
		}
		if total := <-sent; total != hangUpBytes || time.Since(start) != 0 {
			t.Errorf("received %d bytes in %s, want %d at once", total, time.Since(start), hangUpBytes)
		}
	})
}

func TestHangUpFallsBackToClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		start := time.Now()
		if err := HangUp(near); err != nil || time.Since(start) != 0 {
			t.Errorf("hung up after %s: %v", time.Since(start), err)
		}
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection is not closed: %v", err)
		}
	})
}

// tunnel stands for a TLS connection.
type tunnel struct {
	net.Conn
	under net.Conn
}

func (t tunnel) NetConn() net.Conn { return t.under }

func TestHangUpGoesBelowTLS(t *testing.T) {
	client, server := pair(t)
	client.Close()
	if err := HangUp(tunnel{under: server}); err != nil { // a nil Conn would panic if it were used
		t.Error(err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("connection is not closed: %v", err)
	}
}

func TestHangUpTwice(t *testing.T) {
	_, server := pair(t)
	server.Close()
	if err := HangUp(server); err != nil {
		t.Errorf("a closed connection: %v", err)
	}
}
