package httpx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"time"

	"nsq/internal/log"
)

const (
	// A client may open its connection well before its first request, or keep it between requests.
	headerTimeout = 30 * time.Second
	idleTimeout   = 5 * time.Minute
	maxHeader     = 1 << 20 // bytes
)

// Server serves HTTP/1 on one listener. It bounds the time for which a peer can hold a connection
// without making progress: with a header, a body, an answer that it does not read, or nothing.
// Its methods may be called from any goroutine.
type Server struct {
	name    string
	log     *log.Logger
	handler http.Handler
	conns   *connTracker
	accept  net.Listener // what http accepts from: tracked connections, in TLS if configured
	http    *http.Server
}

// NewServer returns a server for the listener, which belongs to it from now on. The name, HTTP for
// example, opens its log lines.
func NewServer(listener net.Listener, handler http.Handler, logger *log.Logger, name string) *Server {
	s := &Server{name: name, log: logger, handler: handler, conns: newConnTracker(listener)}
	s.accept = s.conns
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serveRequest),
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          stdlog.New(libraryLog{logger}, "", 0),
		ConnState:         s.conns.stateChanged,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, trackedConn(c))
		},
	}
	return s
}

// NewTLSServer is NewServer over TLS. No application protocol is negotiated.
func NewTLSServer(listener net.Listener, config *tls.Config, handler http.Handler, logger *log.Logger, name string) *Server {
	s := NewServer(listener, handler, logger, name)
	config = config.Clone()
	config.NextProtos = nil
	s.accept = tls.NewListener(s.conns, config)
	return s
}

// Addr is the address of the listener.
func (s *Server) Addr() net.Addr { return s.conns.Addr() }

// Serve answers requests until the server is closed, then it returns nil, or until accepting fails
// for good, then it returns that error. Errors that may pass are retried.
func (s *Server) Serve() error {
	s.log.Infof("%s: listening on %s", s.name, s.Addr())
	if err := s.http.Serve(s.accept); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http.Serve() error - %w", err)
	}
	return nil
}

// Close stops accepting and waits for the requests in progress. Connections without one are closed
// at once, and a peer that stops sending in the middle of a body is not waited for longer than a
// second. When ctx is done the remaining connections are closed and its error is returned; their
// handlers may still be running then.
func (s *Server) Close(ctx context.Context) error {
	s.log.Infof("%s: closing %s", s.name, s.Addr())
	s.conns.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop HTTP server: %w", err), s.http.Close())
	}
	// net/http knows the listener only if Serve was called.
	if closing := s.accept.Close(); closing != nil && !errors.Is(closing, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("close listener: %w", closing))
	}
	return err
}

func (s *Server) serveRequest(w http.ResponseWriter, req *http.Request) {
	if req.ContentLength == 0 { // a body of unknown length has -1
		s.handler.ServeHTTP(w, req)
		return
	}
	u := newUpload(w, req)
	// On a copy, for net/http depends on the type of the original's body.
	req = req.WithContext(req.Context())
	req.Body = u
	s.handler.ServeHTTP(uploadWriter{w, u}, req)
	u.settle()
}

// libraryLog passes the messages of net/http on to our log.
type libraryLog struct{ log *log.Logger }

func (l libraryLog) Write(p []byte) (int, error) {
	l.log.Warnf("%s", strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
