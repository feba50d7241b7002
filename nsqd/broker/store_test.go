package broker

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"nsq/internal/diskq"
	"nsq/internal/protocol"
)

var errDisk = errors.New("no space left on device")

// memQueue is an overflow in memory that survives its broker and fails as it is told to.
type memQueue struct {
	mu      sync.Mutex
	records [][]byte
	budget  int   // records that Put takes before it fails; negative is no limit
	takeErr error // of every Take
	takes   int
	most    int // the largest depth ever
	closed  bool
	deleted bool
	putting func() // called by Put before it begins; may be nil
}

func newMemQueue() *memQueue { return &memQueue{budget: -1} }

func (q *memQueue) Put(records [][]byte) (n int, err error) {
	if q.putting != nil {
		q.putting()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, diskq.ErrClosed
	}
	for _, record := range records {
		if q.budget == 0 {
			err = errDisk
			break
		}
		if q.budget > 0 {
			q.budget--
		}
		q.records = append(q.records, bytes.Clone(record))
		n++
	}
	q.most = max(q.most, len(q.records))
	return n, err
}

func (q *memQueue) Take(dst [][]byte, limit int) ([][]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.takes++
	if q.closed {
		return dst, diskq.ErrClosed
	}
	if q.takeErr != nil {
		return dst, q.takeErr
	}
	n := min(limit, len(q.records))
	dst = append(dst, q.records[:n]...)
	q.records = slices.Delete(q.records, 0, n)
	return dst, nil
}

func (q *memQueue) Depth() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.records))
}

func (q *memQueue) Empty() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return diskq.ErrClosed
	}
	q.records = nil
	return nil
}

func (q *memQueue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	return nil
}

func (q *memQueue) Delete() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.deleted, q.records = true, true, nil
	return nil
}

// failAfter makes Put fail once it has stored n more records; negative heals it.
func (q *memQueue) failAfter(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.budget = n
}

func (q *memQueue) failTake(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.takeErr = err
}

func (q *memQueue) takeCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.takes
}

// bodies are those of the records that are stored.
func (q *memQueue) bodies() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []string
	for _, record := range q.records {
		all = append(all, string(record[protocol.MessageHeaderSize:]))
	}
	return all
}

// memStore is a Store in memory, for tests in which time is virtual or storage fails.
type memStore struct {
	mu       sync.Mutex
	queues   map[string]*memQueue
	delays   map[string]map[protocol.ID]int64
	metadata []byte
	saves    int
	saveErr  error
	openErr  map[string]error
	saving   func() // called before metadata is replaced; may be nil
	opened   func(name string, q *memQueue)
}

func newMemStore() *memStore {
	return &memStore{
		queues:  make(map[string]*memQueue),
		delays:  make(map[string]map[protocol.ID]int64),
		openErr: make(map[string]error),
	}
}

func (s *memStore) OpenQueue(topic, channel string) (diskq.Queue, error) {
	if protocol.IsEphemeral(channel) || channel == "" && protocol.IsEphemeral(topic) {
		return diskq.Discard(), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := queueName(topic, channel)
	if err := s.openErr[name]; err != nil {
		return nil, err
	}
	q := newMemQueue()
	if old := s.queues[name]; old != nil {
		old.mu.Lock()
		q.records = old.records
		old.mu.Unlock()
	}
	s.queues[name] = q
	if s.opened != nil {
		s.opened(name, q)
	}
	return q, nil
}

func (s *memStore) LoadDelays(topic, channel string) (map[protocol.ID]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.delays[queueName(topic, channel)]), nil
}

func (s *memStore) SaveDelays(topic, channel string, delays map[protocol.ID]int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(delays) == 0 {
		delete(s.delays, queueName(topic, channel))
		return nil
	}
	s.delays[queueName(topic, channel)] = maps.Clone(delays)
	return nil
}

func (s *memStore) LoadMetadata() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.metadata == nil {
		return nil, fs.ErrNotExist
	}
	return s.metadata, nil
}

func (s *memStore) SaveMetadata(data []byte) error {
	if s.saving != nil {
		s.saving()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves++
	if s.saveErr != nil {
		return s.saveErr
	}
	s.metadata = data
	return nil
}

func (s *memStore) MetadataName() string { return "/data/nsqd.dat" }

// queue is the overflow of a topic or channel as it was opened last.
func (s *memStore) queue(topic, channel string) *memQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[queueName(topic, channel)]
}

func (s *memStore) failSave(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saveErr = err
}

func (s *memStore) saveCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves
}

func (s *memStore) document() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.metadata)
}
