package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// keptBuffer is the most bytes of a buffer that is kept for the next records.
const keptBuffer = 1 << 20

// file is an open file that only grows, by whole records. It is not safe for concurrent use.
type file struct {
	name     name
	path     string
	f        *os.File
	encoder  encoder      // nil in plain files
	encoding bool         // a member is begun
	pending  bytes.Buffer // what is not written yet: lines, or the compressed member
	size     int64        // bytes in the file, as far as this process knows
	count    int64        // bytes at the opening and of records since then, not compressed
	own      bool         // nobody else writes to the file, and it was empty at the opening
}

// add puts a record and a newline at the end of what is pending.
func (f *file) add(body []byte) error {
	f.count += int64(len(body)) + 1
	if f.encoder == nil {
		f.pending.Write(body)
		f.pending.WriteByte('\n')
		return nil
	}
	f.begin()
	if _, err := f.encoder.Write(body); err != nil {
		return fmt.Errorf("compress for %s: %w", f.path, err)
	}
	if _, err := f.encoder.Write([]byte{'\n'}); err != nil {
		return fmt.Errorf("compress for %s: %w", f.path, err)
	}
	return nil
}

func (f *file) begin() {
	if !f.encoding {
		f.encoder.Reset(&f.pending)
		f.encoding = true
	}
}

// flush writes the pending lines. Members are written by sync alone, complete.
func (f *file) flush() error {
	if f.encoder != nil {
		return nil
	}
	return f.write()
}

// sync has everything that was added on the disk when it returns nil. An empty file that is compressed
// gets an empty member, without which it would be broken.
func (f *file) sync() error {
	if f.encoder != nil && f.size == 0 {
		f.begin()
	}
	if f.encoding {
		f.encoding = false
		if err := f.encoder.Close(); err != nil {
			return fmt.Errorf("compress for %s: %w", f.path, err)
		}
	}
	if err := f.write(); err != nil {
		return err
	}
	if err := f.f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	info, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	if removed(info) {
		return fmt.Errorf("file %s was removed while it was written", f.path)
	}
	return nil
}

// write writes what is pending, or nothing of it.
func (f *file) write() error {
	if f.pending.Len() == 0 {
		return nil
	}
	n, err := f.f.Write(f.pending.Bytes())
	f.pending.Reset()
	if f.pending.Cap() > keptBuffer {
		f.pending = bytes.Buffer{}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write records: %w", err), f.cut(n))
	}
	f.size += int64(n)
	return nil
}

// cut takes away the last n bytes, which were written just now, unless others have written behind them.
func (f *file) cut(n int) error {
	if n <= 0 {
		return nil
	}
	end, err := f.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("find half a record: %w", err)
	}
	info, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	if info.Size() != end {
		return fmt.Errorf("half a record stays in %s: somebody else has written behind it", f.path)
	}
	if err := f.f.Truncate(end - int64(n)); err != nil {
		return fmt.Errorf("cut half a record: %w", err)
	}
	return nil
}

// endLine makes the next record begin on a line of its own, whatever a crash has left.
func (f *file) endLine() (ended bool, err error) {
	var last [1]byte
	if f.size == 0 {
		return false, nil
	}
	if _, err := f.f.ReadAt(last[:], f.size-1); err != nil {
		return false, fmt.Errorf("read end of file: %w", err)
	}
	if last[0] == '\n' {
		return false, nil
	}
	f.pending.WriteByte('\n')
	return true, nil
}
