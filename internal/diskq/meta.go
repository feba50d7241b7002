package diskq

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"nsq/internal/statefile"
)

// position is a place in the data files of a queue.
type position struct {
	file   int64 // number of the data file
	offset int64 // bytes from its beginning
}

func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.file, other.file), cmp.Compare(p.offset, other.offset))
}

// meta is the content of a metadata file.
type meta struct {
	depth int64
	read  position // the first record not taken
	write position // where the next record goes
}

// maxMeta is more than the longest metadata that can be right.
const maxMeta = 256

// errMeta says that metadata was read and makes no sense.
var errMeta = errors.New("malformed")

// metaMode is the mode of a metadata file.
const metaMode = 0o600

const metaFormat = "%d\n%d,%d\n%d,%d\n"

// parseMeta reads metadata and accepts it only to the byte as it is written: a number that lost
// digits at the end of a file cut short would be a number all the same. Depth may be negative, as
// old releases let it become; positions are in range and in order.
func parseMeta(data []byte) (meta, error) {
	var m meta
	if len(data) > maxMeta {
		return meta{}, fmt.Errorf("%w: more than %d bytes", errMeta, maxMeta)
	}
	_, err := fmt.Sscanf(string(data), metaFormat,
		&m.depth, &m.read.file, &m.read.offset, &m.write.file, &m.write.offset)
	if err != nil {
		return meta{}, fmt.Errorf("%w: %w", errMeta, err)
	}
	if !bytes.Equal(m.encode(), data) {
		return meta{}, fmt.Errorf("%w: more than the five numbers", errMeta)
	}
	for _, p := range []position{m.read, m.write} {
		if p.file < 0 || p.file > 2*maxFileNumber || p.offset < 0 {
			return meta{}, fmt.Errorf("%w: position %d,%d out of range", errMeta, p.file, p.offset)
		}
	}
	if m.read.compare(m.write) > 0 {
		return meta{}, fmt.Errorf("%w: read position %d,%d beyond write position %d,%d",
			errMeta, m.read.file, m.read.offset, m.write.file, m.write.offset)
	}
	return m, nil
}

func (m meta) encode() []byte {
	return fmt.Appendf(nil, metaFormat, m.depth, m.read.file, m.read.offset, m.write.file, m.write.offset)
}

// readMeta reads and parses a metadata file.
func readMeta(path string) (meta, error) {
	f, err := os.Open(path)
	if err != nil {
		return meta{}, err
	}
	defer f.Close() // read only: nothing can be lost
	data, err := io.ReadAll(io.LimitReader(f, maxMeta+1))
	if err != nil {
		return meta{}, err
	}
	return parseMeta(data)
}

// writeMeta replaces the metadata of a queue, durably and in one step.
func (c *Config) writeMeta(name string, m meta) error {
	return statefile.Write(c.metaPath(name), m.encode(), metaMode)
}

// probe finds out whether the disk takes a metadata file.
func (c *Config) probe(name string) error {
	return statefile.Probe(c.metaPath(name), meta{}.encode(), metaMode)
}

// settle makes durable what the library does not when it closes: the last data file and the names
// in the folder. With cut, it ends that file where its last record ends.
func (c *Config) settle(name string, cut bool) error {
	m, err := readMeta(c.metaPath(name))
	if err != nil {
		return err
	}
	path := c.dataPath(name, m.write.file)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return statefile.SyncDir(c.Path) // nothing was written since the last file
	case err != nil:
		return err
	}
	if cut && info.Size() > m.write.offset {
		if err := os.Truncate(path, m.write.offset); err != nil {
			return err
		}
	}
	return errors.Join(syncFile(path), statefile.SyncDir(c.Path))
}

// nextFile lets writing go on in a new file. The library must be closed.
func (c *Config) nextFile(name string) error {
	m, err := readMeta(c.metaPath(name))
	if err != nil {
		return err
	}
	if m.write.offset == 0 {
		return nil
	}
	m.write = position{file: m.write.file + 1}
	return c.writeMeta(name, m)
}
