// Package tlsconf makes TLS configurations for servers and clients from the paths of files and a
// policy, and keeps them up to date with the files. It does not know who shakes hands with them,
// nor which settings the paths come from.
//
// Source: nsqd-tcp spec, sections 7 and 8; nsqd-http spec, section 14; nsqd-config spec, section 7.
package tlsconf

import (
	"crypto/tls"
	"fmt"

	"nsq/internal/log"
)

// What a server wants of its clients' certificates.
const (
	PolicyNone          = ""               // they are not asked for one
	PolicyRequire       = "require"        // any will do
	PolicyRequireVerify = "require-verify" // it must be signed by a root
)

// ServerConfig is what a Server is made from.
type ServerConfig struct {
	CertFile         string      // path of the PEM certificate, followed by its intermediates
	KeyFile          string      // path of the PEM key
	RootCAFile       string      // path of the PEM certificates that sign those of clients; empty: the system's
	ClientAuthPolicy string      // one of the policies
	MinVersion       uint16      // oldest version of TLS, such as tls.VersionTLS13; 0: TLS 1.2
	Logger           *log.Logger // tells of files that changed
}

// Server is the server's side of TLS. It is safe for concurrent use.
type Server struct {
	live   *live
	config *tls.Config
}

// NewServer reads the files. The texts of its errors are those of a nsqd that cannot start.
func NewServer(config ServerConfig) (*Server, error) {
	files := files{cert: config.CertFile, key: config.KeyFile, roots: config.RootCAFile}
	live, err := newLive(files, config.Logger, "failed to build TLS config", func() (*tls.Config, error) {
		return buildServer(&config, files)
	})
	if err != nil {
		return nil, err
	}
	return &Server{live: live, config: &tls.Config{
		MinVersion: live.current.Load().MinVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return live.latest(), nil
		},
	}}, nil
}

// Config is the configuration to serve with, always the same. Each handshake uses the files as
// they are at that time, as far as the last second has seen them. No application protocol is
// negotiated, so that HTTP stays at 1.1. The caller must not modify it.
func (s *Server) Config() *tls.Config { return s.config }

// Reload reads the files again now, changed or not. On an error what was read before stays in use.
func (s *Server) Reload() error { return s.live.reload() }

func buildServer(config *ServerConfig, files files) (*tls.Config, error) {
	built, err := base(config.MinVersion)
	if err != nil {
		return nil, err
	}
	certificate, err := files.certificate()
	if err != nil {
		return nil, err
	}
	built.Certificates = []tls.Certificate{certificate}
	roots, err := files.pool()
	if err != nil {
		return nil, err
	}
	switch config.ClientAuthPolicy {
	case PolicyNone:
	case PolicyRequire:
		// Without the roots: a client that was told them would keep a certificate of others back.
		built.ClientAuth = tls.RequireAnyClientCert
	case PolicyRequireVerify:
		built.ClientAuth = tls.RequireAndVerifyClientCert
		built.ClientCAs = roots
	default:
		return nil, fmt.Errorf("unknown client auth policy %q", config.ClientAuthPolicy)
	}
	// Connections live long, and a ticket would outlive the certificates it was given under.
	built.SessionTicketsDisabled = true
	return built, nil
}

// ClientConfig is what a Client is made from.
type ClientConfig struct {
	RootCAFile         string      // path of the PEM certificates that sign those of servers; empty: the system's
	CertFile           string      // path of the PEM certificate to present; with KeyFile empty too: none
	KeyFile            string      // path of its PEM key
	MinVersion         uint16      // oldest version of TLS, such as tls.VersionTLS13; 0: TLS 1.2
	InsecureSkipVerify bool        // accept any certificate of a server
	Logger             *log.Logger // tells of files that changed
}

// Client is the client's side of TLS. It is safe for concurrent use.
type Client struct{ live *live }

// NewClient reads the files. The texts of its errors are those of a nsqd that cannot start.
func NewClient(config ClientConfig) (*Client, error) {
	files := files{cert: config.CertFile, key: config.KeyFile, roots: config.RootCAFile}
	live, err := newLive(files, config.Logger, "failed to build client TLS config", func() (*tls.Config, error) {
		return buildClient(&config, files)
	})
	if err != nil {
		return nil, err
	}
	return &Client{live: live}, nil
}

// Config is the configuration for the next connections. It is the same pointer until the files
// change, which is looked at once a second at most. The caller must not modify it.
func (c *Client) Config() *tls.Config { return c.live.latest() }

// Reload reads the files again now, changed or not. On an error what was read before stays in use.
func (c *Client) Reload() error { return c.live.reload() }

func buildClient(config *ClientConfig, files files) (*tls.Config, error) {
	built, err := base(config.MinVersion)
	if err != nil {
		return nil, err
	}
	if built.RootCAs, err = files.pool(); err != nil {
		return nil, err
	}
	if files.cert != "" || files.key != "" {
		certificate, err := files.certificate()
		if err != nil {
			return nil, err
		}
		built.Certificates = []tls.Certificate{certificate}
	}
	built.InsecureSkipVerify = config.InsecureSkipVerify
	return built, nil
}
