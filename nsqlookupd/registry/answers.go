package registry

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Node is a connected nsqd and the topics that it produces.
type Node struct {
	Peer
	Topics []NodeTopic // by name
}

// NodeTopic is a topic as one of its producers has it.
type NodeTopic struct {
	Name       string
	Tombstoned bool // hidden from look-ups of this topic at the moment
}

// Entry is a producer inside one registration, unfiltered.
type Entry struct {
	Peer
	LastUpdate   time.Time
	Tombstoned   bool      // a tombstone was set, whether or not it has expired
	TombstonedAt time.Time // zero without one
}

// Topics returns the names of all known topics, also those without producers.
func (db *RegistrationDB) Topics() []string {
	db.mu.RLock()
	names := keys(db.topics)
	db.mu.RUnlock()
	slices.Sort(names)
	return names
}

// Channels returns the names of all known channels of the topic, none if it is unknown.
func (db *RegistrationDB) Channels(topicName string) []string {
	names := []string{}
	db.mu.RLock()
	if t := db.topics[topicName]; t != nil {
		names = keys(t.channels)
	}
	db.mu.RUnlock()
	slices.Sort(names)
	return names
}

// Lookup returns the known channels of the topic and those of its producers that are active and not
// tombstoned. It says whether the topic is known.
func (db *RegistrationDB) Lookup(topicName string, now time.Time) (channels []string, producers []Peer, known bool) {
	channels, visible, known := db.lookup(topicName, now)
	slices.Sort(channels)
	slices.SortFunc(visible, func(a, b *Producer) int { return comparePeers(&a.peer, &b.peer) })
	producers = make([]Peer, 0, len(visible))
	for _, p := range visible {
		producers = append(producers, p.peer)
	}
	return channels, producers, known
}

// lookup copies what Lookup needs; sorting waits until the lock is gone.
func (db *RegistrationDB) lookup(topicName string, now time.Time) ([]string, []*Producer, bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	t := db.topics[topicName]
	if t == nil {
		return nil, nil, false
	}
	visible := make([]*Producer, 0, len(t.producers))
	for p := range t.producers {
		if db.activeLocked(p, now) && !db.tombstonedLocked(t, p, now) {
			visible = append(visible, p)
		}
	}
	return keys(t.channels), visible, true
}

// Nodes returns all active producers with their topics.
func (db *RegistrationDB) Nodes(now time.Time) []Node {
	nodes := db.nodes(now)
	for _, n := range nodes {
		slices.SortFunc(n.Topics, func(a, b NodeTopic) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(nodes, func(a, b Node) int { return comparePeers(&a.Peer, &b.Peer) })
	return nodes
}

func (db *RegistrationDB) nodes(now time.Time) []Node {
	db.mu.RLock()
	defer db.mu.RUnlock()
	nodes := make([]Node, 0, len(db.producers))
	for p := range db.producers {
		if !db.activeLocked(p, now) {
			continue
		}
		topics := make([]NodeTopic, 0, len(p.topics))
		for t := range p.topics {
			topics = append(topics, NodeTopic{Name: t.name, Tombstoned: db.tombstonedLocked(t, p, now)})
		}
		nodes = append(nodes, Node{Peer: p.peer, Topics: topics})
	}
	return nodes
}

// All iterates over every registration that has producers, without any filter. The database is locked
// only between yields, for one topic at a time: a slow reader of a huge answer delays nobody, and what
// changes meanwhile may or may not be seen.
func (db *RegistrationDB) All() iter.Seq2[Registration, []Entry] {
	return func(yield func(Registration, []Entry) bool) {
		if clients := db.clients(); len(clients) > 0 && !yield(Registration{Category: "client"}, clients) {
			return
		}
		for _, name := range db.Topics() {
			for _, r := range db.topicEntries(name) {
				if !yield(r.registration, r.entries) {
					return
				}
			}
		}
	}
}

func (db *RegistrationDB) clients() []Entry {
	db.mu.RLock()
	entries := entriesLocked(db.producers, nil)
	db.mu.RUnlock()
	sortEntries(entries)
	return entries
}

// registered is a registration with its producers.
type registered struct {
	registration Registration
	entries      []Entry
}

// topicEntries returns the topic's own registration and then those of its channels.
func (db *RegistrationDB) topicEntries(name string) []registered {
	all := db.topicEntriesUnsorted(name)
	for _, r := range all {
		sortEntries(r.entries)
	}
	slices.SortFunc(all, func(a, b registered) int {
		return cmp.Compare(a.registration.SubKey, b.registration.SubKey)
	})
	return all
}

func (db *RegistrationDB) topicEntriesUnsorted(name string) []registered {
	db.mu.RLock()
	defer db.mu.RUnlock()
	t := db.topics[name]
	if t == nil || len(t.producers) == 0 {
		return nil
	}
	all := []registered{{topicRegistration(name), entriesLocked(t.producers, t.tombstones)}}
	for channel, members := range t.channels {
		if len(members) > 0 {
			all = append(all, registered{channelRegistration(name, channel), entriesLocked(members, nil)})
		}
	}
	return all
}

func entriesLocked(producers set[*Producer], tombstones map[*Producer]time.Time) []Entry {
	entries := make([]Entry, 0, len(producers))
	for p := range producers {
		at, tombstoned := tombstones[p]
		entries = append(entries, Entry{
			Peer: p.peer, LastUpdate: p.lastUpdate, Tombstoned: tombstoned, TombstonedAt: at,
		})
	}
	return entries
}

func (db *RegistrationDB) activeLocked(p *Producer, now time.Time) bool {
	return !p.retired && now.Sub(p.lastUpdate) <= db.inactive
}

func (db *RegistrationDB) tombstonedLocked(t *topic, p *Producer, now time.Time) bool {
	at, ok := t.tombstones[p]
	return ok && now.Sub(at) < db.tombstone
}

func (p Peer) address() address { return address{p.BroadcastAddress, p.TCPPort} }

// answersTo compares with both ways in which tools write host and port of a raw IPv6 address.
func (p Peer) answersTo(node string) bool {
	port := ":" + strconv.Itoa(p.HTTPPort)
	return node == p.BroadcastAddress+port || node == "["+p.BroadcastAddress+"]"+port
}

// comparePeers compares step by step: most pairs differ in the first.
func comparePeers(a, b *Peer) int {
	if c := cmp.Compare(a.Hostname, b.Hostname); c != 0 {
		return c
	}
	if c := cmp.Compare(a.BroadcastAddress, b.BroadcastAddress); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.TCPPort, b.TCPPort), cmp.Compare(a.RemoteAddress, b.RemoteAddress))
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return comparePeers(&a.Peer, &b.Peer) })
}

// keys is never nil and has no room to spare.
func keys[V any](m map[string]V) []string {
	return slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
}
