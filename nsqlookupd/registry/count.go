package registry

import "time"

// Counts is the size of the database at one moment.
type Counts struct {
	Topics     int
	Channels   int // of all topics
	Producers  int // connected nsqd that have identified themselves
	Nodes      int // those of them that answers show
	Tombstones int // topics of a producer that a tombstone hides at the moment
}

// Count counts, in the time that looking at each topic and each producer takes.
func (db *RegistrationDB) Count(now time.Time) Counts {
	db.mu.RLock()
	defer db.mu.RUnlock()
	counts := Counts{Topics: len(db.topics), Producers: len(db.producers)}
	for p := range db.producers {
		if db.activeLocked(p, now) {
			counts.Nodes++
		}
	}
	for _, t := range db.topics {
		counts.Channels += len(t.channels)
		for p := range t.tombstones {
			if db.tombstonedLocked(t, p, now) {
				counts.Tombstones++
			}
		}
	}
	return counts
}
