package web

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"nsq/internal/api"
	"nsq/nsqadmin/action"
)

// remembered is how many actions the journal keeps.
const remembered = 100

// entry is an action that was asked for, and what became of it.
type entry struct {
	id      string
	at      time.Time
	action  action.Action
	results []api.AdminResult
	failed  bool     // nothing of it was done
	errors  []string // of requests that only read
}

// journal remembers the latest actions, so that a result page can be loaded again without the action
// being done again.
type journal struct {
	mu      sync.Mutex
	entries []entry // guarded by mu; the oldest first
}

// add gives the entry its name and keeps it.
func (j *journal) add(e entry) (id string) {
	e.id = rand.Text()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) == remembered {
		j.entries = slices.Delete(j.entries, 0, 1)
	}
	j.entries = append(j.entries, e)
	return e.id
}

func (j *journal) find(id string) (entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.IndexFunc(j.entries, func(e entry) bool { return e.id == id })
	if at < 0 {
		return entry{}, false
	}
	return j.entries[at], true
}

func (j *journal) all() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}
