//go:build unix

package archive

import (
	"io/fs"
	"syscall"
)

// removed says whether an open file has no name any more: what is in it is lost when it is closed.
func removed(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
