package announce

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"nsq/internal/log"
	"nsq/internal/lookup"
)

// listen serves the fake on a real socket until the returned function ends it.
func (f *fake) listen(t *testing.T, address string) (net.Addr, func()) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f.change(func(f *fake) { f.away = false })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.change(func(f *fake) { f.conns[conn] = true })
			go f.serve(conn)
		}
	}()
	return listener.Addr(), func() {
		listener.Close()
		<-done
		f.die()
	}
}

// Over real sockets: what exists is told, what is created is told, and a nsqlookupd that was killed and
// started again learns everything anew.
func TestRealSockets(t *testing.T) {
	f := newFake()
	address, end := f.listen(t, "127.0.0.1:0")
	exists := make(chan []lookup.Registration, 1)
	exists <- []lookup.Registration{{Topic: "t"}, {Topic: "t", Channel: "c"}}
	a := New(Config{
		Addresses: []string{address.String()},
		Self:      lookup.Identity{BroadcastAddress: "self", TCPPort: 4150, HTTPPort: 4151, Version: "1"},
		Log:       log.Discard(),
		Source: func() []lookup.Registration {
			now := <-exists
			exists <- now
			return now
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()

	var heard []string
	hears := func(line string) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); !slices.Contains(heard, line); time.Sleep(time.Millisecond) {
			if heard = append(heard, f.heard()...); time.Now().After(deadline) {
				t.Fatalf("%s was not heard, only %q", line, heard)
			}
		}
	}
	hears("REGISTER t c")
	exists <- append(<-exists, lookup.Registration{Topic: "u"})
	a.Changed()
	hears("REGISTER u")
	end()
	heard = nil
	_, end = f.listen(t, address.String())
	hears("REGISTER t c")
	hears("REGISTER u")
	end()
	cancel()
	if err := <-ran; err != nil {
		t.Errorf("Run = %v", err)
	}
}
