// Package version holds the one version of all programs and the line that they print for it.
//
// Source: packaging spec, section 2.
package version

import (
	"fmt"
	"runtime"
)

// Version is the release, readable as semver: nsqadmin compares it across nodes.
const Version = "1.4.0"

// Line is what a daemon prints for --version and logs first, for example
// "nsqd v1.4.0 (built w/go1.26.8)".
func Line(program string) string {
	return fmt.Sprintf("%s v%s (built w/%s)", program, Version, runtime.Version())
}
