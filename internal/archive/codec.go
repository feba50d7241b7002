package archive

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is how files are compressed.
type Compression int

// The compressions. A compressed file is a sequence of complete gzip members or zstd frames, one for
// each sync, that the usual tools read as one.
const (
	Plain Compression = iota
	Gzip              // levels 1 to 9
	Zstd              // levels 1 to 22, of which there are four different ones
)

// suffix is what names of such files end with.
func (c Compression) suffix() string {
	switch c {
	case Gzip:
		return ".gz"
	case Zstd:
		return ".zst"
	}
	return ""
}

// encoder makes one member, or frame, between Reset and Close.
type encoder interface {
	io.WriteCloser
	Reset(out io.Writer)
}

// newEncoder returns nil for plain files.
func (c Compression) newEncoder(level int) (encoder, error) {
	switch c {
	case Gzip:
		w, err := gzip.NewWriterLevel(nil, level)
		if err != nil {
			return nil, fmt.Errorf("make gzip writer: %w", err)
		}
		return w, nil
	case Zstd:
		// A topic has one writer: goroutines for its frames would gain nothing. An empty frame has
		// to be written out, or else the file would be no zstd file.
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
		if err != nil {
			return nil, fmt.Errorf("make zstd writer: %w", err)
		}
		return w, nil
	}
	return nil, nil
}
