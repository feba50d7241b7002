//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package statefile

import "os"

// flock does nothing: the system has no such lock for folders.
func flock(*os.File) error { return nil }
