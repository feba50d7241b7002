package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"nsq/internal/diskq"
	"nsq/internal/protocol"
	"nsq/internal/statefile"
)

// Store is the seam to storage: where a broker keeps what memory does not hold. Its methods are
// called from any goroutine, and never two at a time for the same topic and channel; all of them may
// block on disk.
//
// An empty channel name stands for the topic itself.
type Store interface {
	// OpenQueue opens the overflow of a topic or channel, with what it held before.
	OpenQueue(topic, channel string) (diskq.Queue, error)
	// LoadDelays returns what SaveDelays kept, nil if there is nothing.
	LoadDelays(topic, channel string) (map[protocol.ID]int64, error)
	// SaveDelays replaces the delays of messages in the overflow. An empty map leaves no trace.
	SaveDelays(topic, channel string, delays map[protocol.ID]int64) error
	// LoadMetadata returns what SaveMetadata kept, and fs.ErrNotExist if there is nothing.
	LoadMetadata() ([]byte, error)
	// SaveMetadata replaces the metadata; it is durable on return.
	SaveMetadata(data []byte) error
	// MetadataName says where the metadata is, for messages to people.
	MetadataName() string
}

// ClassicStore keeps messages in disk queues and metadata in nsqd.dat, in files that NSQ 1.3 reads
// and writes too. Beside them it keeps the delays of messages that were deferred when the daemon
// stopped, in files that NSQ 1.3 leaves alone:
//
//	<queue>.deferred.dat   a line a message: id, space, decimal number, line feed
//
// Source: nsqd-storage spec, sections 1 to 6.
type ClassicStore struct {
	Path   string // the data folder
	Queues diskq.Config
}

const fileMode = 0o600

// OpenQueue opens a disk queue, or one that drops what is ephemeral. The queue of a permanent
// channel of an ephemeral topic begins empty: nothing could have brought its topic back.
func (s *ClassicStore) OpenQueue(topic, channel string) (diskq.Queue, error) {
	name := queueName(topic, channel)
	switch {
	case protocol.IsEphemeral(channel), channel == "" && protocol.IsEphemeral(topic):
		return diskq.Discard(), nil
	case protocol.IsEphemeral(topic):
		orphan, err := s.Queues.Open(name)
		if err != nil {
			return nil, err
		}
		if err := orphan.Delete(); err != nil {
			return nil, err
		}
	}
	return s.Queues.Open(name)
}

func queueName(topic, channel string) string {
	if channel == "" {
		return diskq.TopicName(topic)
	}
	return diskq.ChannelName(topic, channel)
}

func (s *ClassicStore) delaysName(topic, channel string) string {
	return filepath.Join(s.Path, queueName(topic, channel)+".deferred.dat")
}

// LoadDelays reads the file of delays. Lines that are damaged cost only themselves: their messages
// are delivered without a delay.
func (s *ClassicStore) LoadDelays(topic, channel string) (map[protocol.ID]int64, error) {
	data, err := os.ReadFile(s.delaysName(topic, channel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read delays: %w", err)
	}
	delays := make(map[protocol.ID]int64)
	for line := range strings.Lines(string(data)) {
		id, number, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || len(id) != protocol.IDSize {
			continue
		}
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			delays[protocol.ID([]byte(id))] = n
		}
	}
	return delays, nil
}

// SaveDelays writes the file of delays, or removes it.
func (s *ClassicStore) SaveDelays(topic, channel string, delays map[protocol.ID]int64) error {
	name := s.delaysName(topic, channel)
	if len(delays) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove delays: %w", err)
		}
		return nil
	}
	var data bytes.Buffer
	for id, n := range delays {
		fmt.Fprintf(&data, "%s %d\n", id[:], n)
	}
	if err := statefile.Write(name, data.Bytes(), fileMode); err != nil {
		return fmt.Errorf("write delays: %w", err)
	}
	return nil
}

// MetadataName is the path of nsqd.dat.
func (s *ClassicStore) MetadataName() string { return filepath.Join(s.Path, "nsqd.dat") }

// LoadMetadata reads nsqd.dat.
func (s *ClassicStore) LoadMetadata() ([]byte, error) { return os.ReadFile(s.MetadataName()) }

// SaveMetadata replaces nsqd.dat.
func (s *ClassicStore) SaveMetadata(data []byte) error {
	return statefile.Write(s.MetadataName(), data, fileMode)
}

// delays remembers how long the messages that a queue's overflow holds are still to wait, which
// their records can not tell. Numbers are nanoseconds: for a topic the delay from the hand-over to a
// channel, for a channel the wall-clock time since the Unix epoch when the message is due.
type delays struct {
	store          Store
	topic, channel string

	any atomic.Bool // something is remembered; written under mu, spares the lock where nothing is

	mu   sync.Mutex // guards the following
	byID map[protocol.ID]int64
	kept bool // the store may hold some
}

func (d *delays) load(store Store, topic, channel string) error {
	byID, err := store.LoadDelays(topic, channel)
	if err != nil {
		return err
	}
	d.store, d.topic, d.channel = store, topic, channel
	d.byID, d.kept = byID, byID != nil
	d.any.Store(len(byID) > 0)
	return nil
}

// take returns the number of a message and forgets it.
func (d *delays) take(id protocol.ID) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.byID[id]
	delete(d.byID, id)
	d.any.Store(len(d.byID) > 0)
	return n, ok
}

func (d *delays) add(id protocol.ID, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = make(map[protocol.ID]int64)
	}
	d.byID[id] = n
	d.any.Store(true)
}

// save makes the store hold what is remembered.
func (d *delays) save() error {
	d.mu.Lock()
	byID, kept := maps.Clone(d.byID), d.kept
	d.kept = len(byID) > 0
	d.mu.Unlock()
	if !kept && len(byID) == 0 {
		return nil
	}
	return d.store.SaveDelays(d.topic, d.channel, byID)
}

// clear forgets everything, here and in the store.
func (d *delays) clear() error {
	d.mu.Lock()
	d.byID = nil
	d.any.Store(false)
	d.mu.Unlock()
	return d.save()
}
