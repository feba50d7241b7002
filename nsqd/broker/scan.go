package broker

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// scanInterval is the least time between two rounds of the scan, and so the most by which a
// timeout or the end of a deferral is late.
const scanInterval = 10 * time.Millisecond

// channelsPerWorker is how many channels make one more worker worth while.
const channelsPerWorker = 4

// scanner knows which channels have something to expire and when. A channel registers the time of
// the earliest; nothing is visited that is not due. Times are of the broker's monotonic clock.
type scanner struct {
	poke chan struct{} // one slot: an earlier time than all before was registered

	mu  sync.Mutex
	due dueHeap
}

// scanEntry is a channel's place among those that wait for the scan.
type scanEntry struct {
	registered atomic.Int64 // when the scan is going to visit; never while not registered
	index      int          // in the heap, guarded by the scanner's lock; -1 outside
	channel    *Channel
}

func newScanner() *scanner { return &scanner{poke: make(chan struct{}, 1)} }

// schedule makes sure that the channel is visited at due or before.
func (s *scanner) schedule(e *scanEntry, due int64) {
	if due >= e.registered.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if due >= e.registered.Load() {
		return
	}
	e.registered.Store(due)
	if e.index < 0 {
		heap.Push(&s.due, e)
	} else {
		heap.Fix(&s.due, e.index)
	}
	if e.index == 0 {
		select {
		case s.poke <- struct{}{}:
		default:
		}
	}
}

// forget takes a channel out.
func (s *scanner) forget(e *scanEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.index >= 0 {
		heap.Remove(&s.due, e.index)
	}
	e.registered.Store(never)
}

// collect takes up to limit channels that are due, and says when the next one is.
func (s *scanner) collect(now int64, limit int) (due []*Channel, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.due) > 0 && s.due[0].registered.Load() <= now && len(due) < limit {
		e := heap.Pop(&s.due).(*scanEntry)
		e.registered.Store(never)
		due = append(due, e.channel)
	}
	if len(s.due) == 0 {
		return due, never
	}
	return due, s.due[0].registered.Load()
}

// queueScanLoop hands channels that are due to a pool of workers until stop is closed, and returns
// when the workers have ended.
func (b *Broker) queueScanLoop(stop <-chan struct{}) {
	work := make(chan *Channel)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(work)
	pool := 0

	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := b.mono()
		due, next := b.scan.collect(now, b.config.QueueScanSelectionCount)
		for want := b.scanWorkers(); pool < want; pool++ {
			workers.Go(func() {
				for c := range work {
					c.expire(b.mono())
				}
			})
		}
		for _, c := range due {
			work <- c
		}
		if len(due) == b.config.QueueScanSelectionCount {
			continue // more may be due
		}
		wait := time.Duration(next - now)
		if len(due) > 0 {
			wait = max(wait, scanInterval)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.scan.poke:
			// Whoever registered is not due before a moment from now; a round is not begun for each.
			select {
			case <-time.After(scanInterval):
			case <-stop:
				return
			}
		case <-stop:
			return
		}
	}
}

// scanWorkers is the size of the pool: one for every four channels, within the limit.
func (b *Broker) scanWorkers() int {
	return min(max(int(b.channelCount.Load())/channelsPerWorker, 1), b.config.QueueScanWorkerPoolMax)
}

// dueHeap orders entries by when they are due.
type dueHeap []*scanEntry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].registered.Load() < h[j].registered.Load() }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	e := x.(*scanEntry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
