package nsqadmin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// clientTLS is how nsqadmin talks to daemons that require TLS.
func (o *Options) clientTLS() (*tls.Config, error) {
	cert, key := o.HTTPClientTLSCert, o.HTTPClientTLSKey
	switch {
	case cert != "" && key == "":
		return nil, errors.New("--http-client-tls-key must be specified with --http-client-tls-cert")
	case cert == "" && key != "":
		return nil, errors.New("--http-client-tls-cert must be specified with --http-client-tls-key")
	}
	config := &tls.Config{InsecureSkipVerify: o.HTTPClientTLSInsecureSkipVerify}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("failed to LoadX509KeyPair %s, %s - %w", cert, key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if path := o.HTTPClientTLSRootCAFile; path != "" {
		roots, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("failed to read TLS root CA file %s - %w", path, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("failed to AppendCertsFromPEM %s", path)
		}
	}
	return config, nil
}
