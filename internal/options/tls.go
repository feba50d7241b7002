package options

import (
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"
)

// TLSRequirement says from which clients TLS is demanded; its numbers are what
// /config/tls_required answers.
type TLSRequirement int

// The requirements.
const (
	TLSNotRequired        TLSRequirement = iota // "false"
	TLSRequiredExceptHTTP                       // "tcp-https": the TCP protocol only
	TLSRequiredEverywhere                       // "true": plain HTTP is refused too
)

// String is the requirement as the command line and the file write it.
func (r TLSRequirement) String() string {
	switch r {
	case TLSNotRequired:
		return "false"
	case TLSRequiredExceptHTTP:
		return "tcp-https"
	}
	return "true"
}

func parseTLSRequirement(text string) (TLSRequirement, error) {
	word := strings.ToLower(text)
	if word == "tcp-https" {
		return TLSRequiredExceptHTTP, nil
	}
	required, err := strconv.ParseBool(word)
	switch {
	case err != nil:
		// The error is the library's with the text as it was given.
		_, err = strconv.ParseBool(text)
		return 0, err
	case required:
		return TLSRequiredEverywhere, nil
	}
	return TLSNotRequired, nil
}

// TLSRequired is a TLSRequirement; the bare flag means true.
func TLSRequired(at *TLSRequirement) Value {
	number := func(r TLSRequirement) any { return int(r) }
	kind := word("requirement", parseTLSRequirement, TLSRequirement.String, number)
	kind.boolean = true
	kind.literal = func(r TLSRequirement) string {
		if r == TLSRequiredExceptHTTP {
			return quoted(r.String())
		}
		return r.String()
	}
	return &value[TLSRequirement]{at: at, kind: kind, bounds: "true, false, tcp-https"}
}

// TLSVersion is a version of TLS by its number on the wire, which /config/tls_min_version answers.
type TLSVersion uint16

// DefaultTLSVersion is what the empty text means. Older versions are there for those who ask for
// them.
const DefaultTLSVersion TLSVersion = tls.VersionTLS12

// tlsVersions lists the versions by name.
var tlsVersions = map[string]TLSVersion{
	"":       DefaultTLSVersion,
	"tls1.0": tls.VersionTLS10,
	"tls1.1": tls.VersionTLS11,
	"tls1.2": tls.VersionTLS12,
	"tls1.3": tls.VersionTLS13,
}

// String is the version as the command line and the file write it.
func (v TLSVersion) String() string {
	for name, version := range tlsVersions {
		if name != "" && version == v {
			return name
		}
	}
	return fmt.Sprintf("%#04x", uint16(v))
}

func parseTLSVersion(text string) (TLSVersion, error) {
	version, ok := tlsVersions[strings.ToLower(text)]
	if !ok {
		return 0, fmt.Errorf("unknown tlsVersionOption %q", text)
	}
	return version, nil
}

// TLSMinVersion is a TLSVersion.
func TLSMinVersion(at *TLSVersion) Value {
	number := func(v TLSVersion) any { return int(v) }
	return &value[TLSVersion]{
		at:     at,
		kind:   word("version", parseTLSVersion, TLSVersion.String, number),
		bounds: "tls1.0, tls1.1, tls1.2, tls1.3",
	}
}
