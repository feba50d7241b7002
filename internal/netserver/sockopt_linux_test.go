package netserver

import (
	"net"
	"syscall"
	"testing"
)

// Clients behind a dead network are noticed, and small frames are not held back.
func TestListenSocketOptions(t *testing.T) {
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for _, option := range []struct {
			name             string
			level, opt, want int
		}{
			{"TCP_NODELAY", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
			{"SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{"TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
			{"TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 15},
		} {
			got, err := syscall.GetsockoptInt(int(fd), option.level, option.opt)
			if err != nil || got != option.want {
				t.Errorf("%s is %d (%v), want %d", option.name, got, err, option.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
