//go:build !unix

package archive

import "io/fs"

// removed is false: an open file cannot be removed here.
func removed(fs.FileInfo) bool { return false }
