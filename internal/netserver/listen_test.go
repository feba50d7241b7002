package netserver

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenTellsTCPFromUnix(t *testing.T) {
	t.Chdir(t.TempDir())
	for address, network := range map[string]string{
		"127.0.0.1:0":           "tcp",
		":0":                    "tcp",
		"socket":                "unix",
		"127.0.0.1":             "unix", // the rule, even where the port was forgotten
		filepath.Join(".", "s"): "unix",
	} {
		listener, err := Listen(address)
		if err != nil {
			t.Errorf("Listen(%q): %v", address, err)
			continue
		}
		if got := listener.Addr().Network(); got != network {
			t.Errorf("Listen(%q) is %s, want %s", address, got, network)
		}
		listener.Close()
		if _, err := os.Lstat(address); network == "unix" && err == nil {
			t.Errorf("Listen(%q): socket file is left after Close", address)
		}
	}
}

func TestListenIPv6(t *testing.T) {
	listener, err := Listen("[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	defer listener.Close()
	if got := listener.Addr().String(); !strings.HasPrefix(got, "[::1]:") {
		t.Errorf("listening on %s", got)
	}
}

func TestListenErrorText(t *testing.T) {
	taken, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, err = Listen(address)
	want := "listen (" + address + ") failed - listen tcp " + address + ": bind: address already in use"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// stale leaves a socket file whose owner is gone.
func stale(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

func TestListenTakesOverStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stale(t, path)
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the new listener does not answer: %v", err)
	}
	conn.Close()
}

func TestListenLeavesOthersAlone(t *testing.T) {
	tests := map[string]func(t *testing.T, path string){
		"live socket": func(t *testing.T, path string) {
			listener, err := Listen(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
		},
		"datagram socket": func(t *testing.T, path string) {
			conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
		},
		"file": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"folder": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"link to a stale socket": func(t *testing.T, path string) {
			stale(t, path+"x")
			if err := os.Symlink(path+"x", path); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, occupy := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			occupy(t, path)
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			listener, err := Listen(path)
			if err == nil {
				listener.Close()
				t.Fatal("the path was taken over")
			}
			want := "listen (" + path + ") failed - listen unix " + path + ": bind: address already in use"
			if err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("what was at the path is gone: %v", err)
			}
		})
	}
}
