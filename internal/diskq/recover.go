package diskq

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
)

// maxDistrusted bounds the record sizes that are accepted from files beyond MaxRecord. The library
// allocates what the length field of a record says before it reads it, so that a damaged length
// costs up to this much memory, once for each damaged file.
const maxDistrusted = 128 << 20

// segment is a data file as it was found.
type segment struct {
	number int64
	size   int64
}

// state is what a queue starts from.
type state struct {
	depth     int64
	counted   bool  // depth was counted record by record
	fresh     bool  // there is no metadata file
	inherited bool  // writing would go on behind records in the same file
	limit     int32 // longest record to read
}

// verdict is how far metadata can be believed.
type verdict int

const (
	intact  verdict = iota
	unclean         // written to after the metadata; the depth in it is right as of then
	damaged         // its depth means nothing
)

// recover looks at the files of a queue and repairs them until the library reads every intact
// record from them.
func (c *Config) recover(name string, found *files) (state, error) {
	for _, temp := range found.temps {
		if err := remove(temp); err != nil {
			c.Logger.Warnf("DISKQUEUE(%s) failed to remove stale metadata - %s", name, err)
		}
	}
	s := state{limit: c.limit(nil)}
	if !found.meta && len(found.data) == 0 {
		s.fresh = true
		return s, nil
	}
	segments, err := c.survey(name, found.data)
	if err != nil {
		return state{}, err
	}
	s.limit = c.limit(segments)

	m, reason, judgement, err := c.assess(name, segments)
	if err != nil {
		return state{}, fmt.Errorf("read metadata: %w", err)
	}
	live := segmentsFrom(segments, m.read.file)
	if judgement == intact {
		s.depth = m.depth
		s.inherited = m.depth > 0 && m.write.offset > 0
		return s, nil
	}
	c.Logger.Warnf("DISKQUEUE(%s) %s", name, reason)
	if judgement == damaged {
		if live, err = c.closeGaps(name, live); err != nil {
			return state{}, fmt.Errorf("renumber data files: %w", err)
		}
		s.counted = true
	}
	if m, err = c.repair(name, m, live, judgement, s.limit); err != nil {
		return state{}, fmt.Errorf("count records: %w", err)
	}
	if judgement == damaged {
		c.Logger.Warnf("DISKQUEUE(%s) metadata rebuilt, %d records from %d,%d",
			name, m.depth, m.read.file, m.read.offset)
	}
	s.depth = m.depth
	switch err := c.writeMeta(name, m); {
	case err == nil:
	case judgement == unclean:
		// The library goes on in a new file by itself. A disk that is full has to be read to get room.
		c.Logger.Warnf("DISKQUEUE(%s) failed to write metadata - %s", name, err)
	default:
		return state{}, fmt.Errorf("write metadata: %w", err)
	}
	return s, nil
}

// limit is the longest record to read: a record that was stored under a larger MaxRecord is no
// damage, and no record is larger than its file.
func (c *Config) limit(segments []segment) int32 {
	longest := int64(c.MaxRecord)
	for _, s := range segments {
		longest = max(longest, min(s.size-4, maxDistrusted))
	}
	return int32(min(longest, math.MaxInt32-4)) // the library adds the 4 bytes of the length in an int32
}

// survey returns the data files with their sizes.
func (c *Config) survey(name string, numbers []int64) ([]segment, error) {
	segments := make([]segment, 0, len(numbers))
	for _, number := range numbers {
		info, err := os.Stat(c.dataPath(name, number))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		segments = append(segments, segment{number, info.Size()})
	}
	return segments, nil
}

// segmentsFrom returns the part of segments with at least that number.
func segmentsFrom(segments []segment, number int64) []segment {
	i, _ := slices.BinarySearchFunc(segments, number, func(s segment, n int64) int { return cmp.Compare(s.number, n) })
	return segments[i:]
}

// assess reads the metadata and judges it against the data files. Where there is none that can be
// believed, reading starts with the first file there is. Metadata that cannot be read at the moment
// is an error: rebuilding it would forget what was consumed.
func (c *Config) assess(name string, segments []segment) (m meta, reason string, v verdict, err error) {
	m, err = readMeta(c.metaPath(name))
	if err != nil {
		if !errors.Is(err, errMeta) && !errors.Is(err, fs.ErrNotExist) {
			return meta{}, "", damaged, err
		}
		if len(segments) > 0 {
			m.read.file = segments[0].number
		}
		return m, fmt.Sprintf("no usable metadata - %s", err), damaged, nil
	}
	reason, v = judge(m, segmentsFrom(segments, m.read.file), int64(c.MinRecord))
	if v == unclean {
		reason = fmt.Sprintf("%s metadata writePos %d < file size of %d, skipping to new file",
			c.dataPath(name, m.write.file), m.write.offset, segments[len(segments)-1].size)
	}
	return m, reason, v, nil
}

// judge says whether metadata and the data files from its read position on fit together, and if
// not, why.
func judge(m meta, live []segment, minRecord int64) (string, verdict) {
	var last segment
	if len(live) == 0 {
		// A queue that was emptied, or rolled with nothing left to read, has no file yet.
		if m.read != m.write || m.write.offset != 0 {
			return "data files are missing", damaged
		}
		last.number = m.write.file
	} else {
		last = live[len(live)-1]
		if live[0].number != m.read.file || last.number-live[0].number != int64(len(live)-1) {
			return "data files are missing", damaged
		}
	}
	switch {
	case last.number > m.write.file:
		return fmt.Sprintf("data file %d is newer than the metadata", last.number), damaged
	case last.number == m.write.file-1 && m.write.offset == 0:
		last = segment{number: m.write.file} // rolled, and stopped before the first record
	case last.number < m.write.file:
		return "data files are missing", damaged
	}
	if last.size < m.write.offset {
		return fmt.Sprintf("data file %d is cut short", last.number), damaged
	}
	if len(live) > 0 && live[0].size < m.read.offset {
		return fmt.Sprintf("data file %d is cut short", live[0].number), damaged
	}
	unread := m.write.offset - m.read.offset
	for _, s := range live {
		if s.number < m.write.file {
			unread += s.size
		}
	}
	if m.depth < 0 || m.depth > unread/(4+minRecord) || m.depth == 0 && unread > 0 {
		return fmt.Sprintf("depth %d does not fit %d bytes of records", m.depth, unread), damaged
	}
	if last.size > m.write.offset {
		return "", unclean
	}
	return "", intact
}

// closeGaps renumbers data files so that none is missing between them: the library would look for
// each missing number in turn.
func (c *Config) closeGaps(name string, live []segment) ([]segment, error) {
	closed := slices.Clone(live)
	for i := range closed {
		want := live[0].number + int64(i)
		if closed[i].number == want {
			continue
		}
		if err := os.Rename(c.dataPath(name, closed[i].number), c.dataPath(name, want)); err != nil {
			return nil, err
		}
		closed[i].number = want
	}
	return closed, nil
}

// repair returns metadata for what is there. Writing goes to a new file, because the end of the
// last one may be anything.
func (c *Config) repair(name string, m meta, live []segment, v verdict, limit int32) (meta, error) {
	if len(live) == 0 {
		m.write.offset = 0
		return meta{read: m.write, write: m.write}, nil
	}
	from := m.read
	if live[0].number != from.file {
		from = position{file: live[0].number}
	}
	fixed := meta{read: from}
	if v == unclean {
		fixed.depth, from = m.depth, m.write
	}
	for _, s := range segmentsFrom(live, from.file) {
		n, err := c.count(name, s, from.offset, limit)
		if err != nil {
			return meta{}, err
		}
		fixed.depth += n
		from.offset = 0
	}
	fixed.write.file = live[len(live)-1].number + 1
	return fixed, nil
}

// count returns the number of whole records in a data file from an offset on, up to the first
// damage. A file that opens and cannot be read is damage.
func (c *Config) count(name string, s segment, from int64, limit int32) (int64, error) {
	f, err := os.Open(c.dataPath(name, s.number))
	if err != nil {
		return 0, err
	}
	defer f.Close() // read only: nothing can be lost
	n, err := countRecords(f, from, s.size, c.MinRecord, limit)
	if err != nil {
		c.Logger.Warnf("DISKQUEUE(%s) failed to count records - %s", name, err)
	}
	return n, nil
}

// countRecords counts the whole records of lengths shortest to longest between two offsets; it
// ends early, without an error, at the first thing that is none.
func countRecords(r io.ReaderAt, from, size int64, shortest, longest int32) (n int64, err error) {
	window := make([]byte, 64<<10)
	var held []byte         // what was read of the file
	start, at := from, from // offsets of held and of the next record
	for size-at >= 4 {
		if at+4 > start+int64(len(held)) {
			got, err := r.ReadAt(window[:min(int64(len(window)), size-at)], at)
			if got < 4 {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				return n, err
			}
			start, held = at, window[:got]
		}
		length := int32(binary.BigEndian.Uint32(held[at-start:]))
		if length < shortest || length > longest || int64(length) > size-at-4 {
			return n, nil
		}
		at += 4 + int64(length)
		n++
	}
	return n, nil
}
