package tlsconf

import (
	"crypto/tls"
	"fmt"
)

// defaultMinVersion is the oldest version that nobody has to ask for.
const defaultMinVersion = tls.VersionTLS12

// base is a configuration of the versions from least on, and of the cipher suites that they need.
func base(least uint16) (*tls.Config, error) {
	switch least {
	case 0:
		least = defaultMinVersion
	case tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13:
	default:
		return nil, fmt.Errorf("unknown minimum version of TLS %#04x", least)
	}
	config := &tls.Config{MinVersion: least}
	if least < tls.VersionTLS12 {
		config.CipherSuites = oldCipherSuites()
	}
	return config, nil
}

// oldCipherSuites are the default ones and those that a peer of TLS 1.0 may be limited to. The
// library puts them last in its order of preference.
func oldCipherSuites() []uint16 {
	suites := []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA}
	for _, suite := range tls.CipherSuites() {
		suites = append(suites, suite.ID)
	}
	return suites
}
