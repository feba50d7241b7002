package protocol

import "strings"

// MaxNameLength is the length limit of a topic or channel name in bytes, suffix included.
const MaxNameLength = 64

// ephemeralSuffix marks topics and channels that leave no trace on disk.
const ephemeralSuffix = "#ephemeral"

// ValidName says whether a topic or channel may be called so: 1 to 64 bytes of A-Z a-z 0-9 . _ -,
// the last of them optionally the suffix "#ephemeral", which cannot stand alone.
//
// Source: nsqd-tcp spec, section 3.2.
func ValidName(name string) bool {
	if len(name) > MaxNameLength {
		return false
	}
	stem := strings.TrimSuffix(name, ephemeralSuffix)
	for i := range len(stem) {
		if !nameByte[stem[i]] {
			return false
		}
	}
	return stem != ""
}

// IsEphemeral says whether the name carries the "#ephemeral" suffix.
func IsEphemeral(name string) bool { return strings.HasSuffix(name, ephemeralSuffix) }

// nameByte tells for each byte whether a name may contain it.
var nameByte = func() (ok [256]bool) {
	for c := range ok {
		ok[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '.' || c == '_' || c == '-'
	}
	return ok
}()
