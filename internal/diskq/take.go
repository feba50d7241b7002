package diskq

import (
	"runtime"
	"sync"
	"time"
)

// patience is how long Take waits for a record that should be there before it asks the library
// whether it is.
const patience = 50 * time.Millisecond

// timers are those of past waits; their channels are empty.
var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// Take implements Queue.
func (q *disk) Take(dst [][]byte, max int) ([][]byte, error) {
	q.mu.RLock()
	if q.closed {
		q.mu.RUnlock()
		return dst, ErrClosed
	}
	if q.lib == nil {
		lost := q.lost
		q.mu.RUnlock()
		if lost {
			return dst, q.takeUp() // the next Take finds the records
		}
		return dst, nil
	}
	n := q.claim(max)
	before := len(dst)
	dst = receive(dst, n, q.lib.ReadChan())
	missing := n - (len(dst) - before)
	q.missing.Add(int64(missing))
	drained := q.trusted && n > 0 && q.depth.Load() == 0
	q.mu.RUnlock()

	if missing > 0 {
		q.correct()
	}
	if missing > 0 || drained {
		q.verify()
	}
	return dst, nil
}

// takeUp brings a lost queue back.
func (q *disk) takeUp() error {
	q.writer.Lock()
	defer q.writer.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	return q.restore()
}

// claim takes up to max records off the depth, so that no other Take waits for them.
func (q *disk) claim(max int) int {
	for {
		depth := q.depth.Load()
		n := min(int64(max), depth)
		if n <= 0 {
			return 0
		}
		if q.depth.CompareAndSwap(depth, depth-n) {
			return int(n)
		}
	}
}

// receive appends n records to dst, or fewer if one does not come.
func receive(dst [][]byte, n int, records <-chan []byte) [][]byte {
	var timer *time.Timer
	for range n {
		select {
		case record := <-records:
			dst = append(dst, record)
			continue
		default:
			runtime.Gosched() // the library may be reading it
		}
		if timer == nil {
			timer = timers.Get().(*time.Timer)
			defer timers.Put(timer)
			defer timer.Stop()
		}
		timer.Reset(patience)
		select {
		case record := <-records:
			dst = append(dst, record)
		case <-timer.C:
			return dst
		}
	}
	return dst
}

// correct sets the depth to what the library has, after records did not come. Where they were
// lost to damage, the library knows once it has passed it.
func (q *disk) correct() {
	q.writer.Lock()
	defer q.writer.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	missing := q.missing.Swap(0)
	if missing == 0 || q.lib == nil {
		return // another Take did it, or what did it looked at the files
	}
	expected, depth := q.depth.Load()+missing, max(0, q.lib.Depth())
	q.depth.Store(depth)
	if depth < expected {
		q.cfg.Logger.Warnf("DISKQUEUE(%s) %d records lost to damage", q.name, expected-depth)
	}
}

// verify looks at the files when a depth that was taken from metadata has come down to zero: where
// an old release counted too low after a crash, there are more records.
func (q *disk) verify() {
	q.writer.Lock()
	defer q.writer.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lib == nil || !q.trusted || q.depth.Load() > 0 {
		return
	}
	err := q.stop()
	if err == nil {
		err = q.reload()
	}
	if err != nil { // the next operation tries again and returns what is wrong
		q.cfg.Logger.Errorf("DISKQUEUE(%s) failed to verify depth - %s", q.name, err)
	}
}
