package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Nobody is sent anywhere with the secret: a redirection to another host is no answer.
func TestRedirectElsewhere(t *testing.T) {
	for _, method := range []string{MethodGet, MethodPost} {
		elsewhere := newFake(t, answering(200, good))
		s := newFake(t, func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, elsewhere.URL+req.RequestURI, http.StatusTemporaryRedirect)
		})
		c, _ := newClient(t, Config{Addresses: []string{s.URL}, Method: method})
		_, err := c.Query(t.Context(), request)
		expectRefusal(t, err, "answered with status 307")
		if elsewhere.asked.Load() != 0 {
			t.Error("the other host was asked")
		}
	}
	loop := newFake(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, req.RequestURI, http.StatusFound)
	})
	c, _ := newClient(t, Config{Addresses: []string{loop.URL}})
	_, err := c.Query(t.Context(), request)
	expectRefusal(t, err, "answered with status 302")
	if loop.asked.Load() > 5 {
		t.Errorf("asked %d times", loop.asked.Load())
	}
}

// Whatever a server answers, the error shows neither the secret nor the answer.
func TestHostileServers(t *testing.T) {
	endless := strings.Repeat("x", 64<<10)
	echo := func(req *http.Request) string {
		body, _ := io.ReadAll(req.Body)
		return req.RequestURI + string(body)
	}
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"endless answer", func(w http.ResponseWriter, req *http.Request) {
			for {
				if _, err := io.WriteString(w, endless); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		{"answer one byte too long", answering(200, good+strings.Repeat(" ", maxAnswer+1-len(good))), "more than 1048576 bytes"},
		{"broken off answer", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, good)
		}, "no HTTP answer"},
		{"echo in an error", func(w http.ResponseWriter, req *http.Request) {
			answering(500, echo(req))(w, req)
		}, "answered with status 500"},
		{"echo as an answer", func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, echo(req)) }, "not JSON"},
		{"echo as a location", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Location", "http://[::1"+echo(req))
			w.WriteHeader(http.StatusFound)
		}, "no HTTP answer"},
		{"echo as a wrong value", func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprintf(w, `{"ttl":%q}`, echo(req))
		}, `wrong type at "ttl"`},
		{"echo as an expression", func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprintf(w, `{"ttl":1,"authorizations":[{"topic":%q}]}`, echo(req)+"(")
		}, "missing closing )"},
		{"echo as a permission", func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprintf(w, `{"ttl":1,"authorizations":[{"permissions":[%q]}]}`, echo(req))
		}, "unknown permission"},
		{"panic", func(w http.ResponseWriter, req *http.Request) { panic(http.ErrAbortHandler) }, "no HTTP answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, method := range []string{MethodGet, MethodPost} {
				s := newFake(t, test.handler)
				fine := newFake(t, answering(200, good))
				c, _ := newClient(t, Config{Addresses: []string{s.URL}, Method: method})
				_, err := c.Query(t.Context(), request)
				expectRefusal(t, err, test.want)
				if errors.Is(err, ErrRefused) {
					t.Errorf("%v is a refusal", err)
				}

				c, out := newClient(t, Config{Addresses: []string{s.URL, fine.URL}, Method: method})
				if _, err := c.Query(t.Context(), request); err != nil {
					t.Errorf("the other server: %v", err)
				}
				if logged := out.String(); !strings.Contains(logged, test.want) || strings.Contains(logged, secret) {
					t.Errorf("logged %s", logged)
				}
			}
		})
	}
}

// What is not HTTP and sends the request back does not get the secret into an error either.
func TestEchoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer listener.Close()
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				io.Copy(conn, conn)
			})
		}
	})
	for _, method := range []string{MethodGet, MethodPost} {
		c, _ := newClient(t, Config{Addresses: []string{listener.Addr().String() + "/" + secret}, Method: method})
		_, err = c.Query(t.Context(), request)
		expectRefusal(t, err, "no HTTP answer")
		c.Close()
	}
	c, _ := newClient(t, Config{Addresses: []string{"https://" + listener.Addr().String()}})
	_, err = c.Query(t.Context(), request)
	expectRefusal(t, err, "https://"+listener.Addr().String())
}

// The longest answer that is allowed is read.
func TestLongAnswer(t *testing.T) {
	s := newFake(t, answering(200, good+strings.Repeat(" ", maxAnswer-len(good))))
	c, _ := newClient(t, Config{Addresses: []string{s.URL}})
	if _, err := c.Query(t.Context(), request); err != nil {
		t.Error(err)
	}
}

// A server that is slow, before or within its answer, is given up; the next is asked.
func TestSlowServers(t *testing.T) {
	for name, begin := range map[string]string{"no answer": "", "half an answer": good[:20]} {
		hang := func(w http.ResponseWriter, req *http.Request) {
			if begin != "" {
				io.WriteString(w, begin)
				http.NewResponseController(w).Flush()
			}
			<-req.Context().Done()
		}
		slow, slower, fine := newFake(t, hang), newFake(t, hang), newFake(t, answering(200, good))
		c, _ := newClient(t, Config{Addresses: []string{slow.URL, slower.URL}, RequestTimeout: 100 * time.Millisecond})
		_, err := c.Query(t.Context(), request)
		expectRefusal(t, err, slow.URL+": no answer in time")
		expectRefusal(t, err, slower.URL+": no answer in time")

		// Whoever asks may lose patience, too; then nobody else is asked.
		ctx, cancel := context.WithCancel(t.Context())
		quit := newFake(t, func(w http.ResponseWriter, req *http.Request) {
			cancel()
			hang(w, req)
		})
		c, _ = newClient(t, Config{Addresses: []string{quit.URL, fine.URL}})
		if _, err := c.Query(ctx, request); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), fine.URL) {
			t.Errorf("%s: %v", name, err)
		}
		if fine.asked.Load() != 0 {
			t.Errorf("%s: another server was asked for nobody", name)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	c, _ := newClient(t, Config{Addresses: []string{address, "http://user:pa55@" + address + "/k3y?key=k3y"}})
	_, err = c.Query(t.Context(), request)
	expectRefusal(t, err, "http://"+address+": dial tcp "+address+": connect: connection refused")
	for _, private := range []string{"pa55", "k3y"} {
		if strings.Contains(err.Error(), private) {
			t.Errorf("error %q has %q", err, private)
		}
	}
}
