// Package registry is the registration DB of nsqlookupd: which connected nsqd produces which topics
// and channels, and which topic and channel names are known at all. It knows no sockets, no JSON, no
// logging and no clock: callers pass the time in, names are valid before they arrive here, and every
// answer is a sorted copy.
//
// A topic owns its channels, so a channel never exists without its topic, and a producer of a channel
// is always a producer of the topic too. Work is proportional to what it touches: topics are found by
// name, and a producer knows its topics.
//
// Source: nsqlookupd spec, sections 4, 5.2 and 7.
package registry

import (
	"sync"
	"time"

	"nsq/internal/protocol"
)

// Peer is what is known of the nsqd behind one connection; it never changes.
type Peer struct {
	RemoteAddress    string // ip:port of the connection, brackets around IPv6; identifies the producer
	Hostname         string
	BroadcastAddress string
	TCPPort          int
	HTTPPort         int
	Version          string
	TopologyZone     string
	TopologyRegion   string
}

// Producer is the entry of one identified connection, from Identify to Disconnect.
type Producer struct {
	peer Peer // immutable

	// Guarded by RegistrationDB.mu.
	lastUpdate time.Time
	retired    bool // another connection announced the same address since this one was last heard
	topics     set[*topic]
}

// Peer returns what the producer said about itself.
func (p *Producer) Peer() Peer { return p.peer }

// Registration names an entry of the database: ("client", "", ""), ("topic", topic, "") or
// ("channel", topic, channel).
type Registration struct{ Category, Key, SubKey string }

// String is the form used as a key by /debug and in log lines.
func (r Registration) String() string { return r.Category + ":" + r.Key + ":" + r.SubKey }

func topicRegistration(name string) Registration {
	return Registration{Category: "topic", Key: name}
}

func channelRegistration(topic, name string) Registration {
	return Registration{Category: "channel", Key: topic, SubKey: name}
}

// RegistrationDB holds all registrations. Every method is one atomic step and may be called from any
// goroutine, except that the iteration of All takes one step a topic.
type RegistrationDB struct {
	inactive  time.Duration // immutable: silence after which a producer is hidden
	tombstone time.Duration // immutable: how long a tombstone hides a producer of a topic

	mu        sync.RWMutex // guards the following, and all that hangs below it
	producers set[*Producer]
	addresses map[address]set[*Producer] // the same producers by announced address
	topics    map[string]*topic
}

// address is where a nsqd says that its clients reach it.
type address struct {
	host string
	port int
}

type topic struct {
	name       string // immutable
	producers  set[*Producer]
	tombstones map[*Producer]time.Time // when set; only for producers of the topic, stays after it expired
	channels   map[string]set[*Producer]
}

type set[T comparable] map[T]struct{}

func (s set[T]) has(v T) bool { _, ok := s[v]; return ok }

// New returns an empty database. A producer that was silent for longer than inactive is hidden;
// tombstones hide a producer of a topic for the time tombstone.
func New(inactive, tombstone time.Duration) *RegistrationDB {
	return &RegistrationDB{
		inactive:  inactive,
		tombstone: tombstone,
		producers: set[*Producer]{},
		addresses: map[address]set[*Producer]{},
		topics:    map[string]*topic{},
	}
}

// Identify adds a producer. Older producers with the same broadcast address and TCP port are hidden
// until they are heard again: most likely they are what a broken network left behind.
func (db *RegistrationDB) Identify(peer Peer, now time.Time) *Producer {
	p := &Producer{peer: peer, lastUpdate: now, topics: set[*topic]{}}
	at := peer.address()
	db.mu.Lock()
	defer db.mu.Unlock()
	same := db.addresses[at]
	if same == nil {
		same = set[*Producer]{}
		db.addresses[at] = same
	}
	for older := range same {
		older.retired = true
	}
	same[p] = struct{}{}
	db.producers[p] = struct{}{}
	return p
}

// Refresh notes that the producer is alive and returns how long it had been silent.
func (db *RegistrationDB) Refresh(p *Producer, now time.Time) time.Duration {
	db.mu.Lock()
	defer db.mu.Unlock()
	silence := now.Sub(p.lastUpdate)
	p.refreshLocked(now)
	return silence
}

// Register makes p a producer of the topic and, unless channel is empty, of the channel. It returns the
// registrations that p was not in before; an entry that exists keeps its tombstone.
func (db *RegistrationDB) Register(p *Producer, topicName, channel string, now time.Time) []Registration {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !db.producers.has(p) {
		return nil
	}
	p.refreshLocked(now)
	var added []Registration
	t := db.topicLocked(topicName)
	if channel != "" {
		if members := t.channel(channel); !members.has(p) {
			members[p] = struct{}{}
			added = append(added, channelRegistration(topicName, channel))
		}
	}
	if !t.producers.has(p) {
		t.producers[p] = struct{}{}
		p.topics[t] = struct{}{}
		added = append(added, topicRegistration(topicName))
	}
	return added
}

// Unregister takes p out of the channel or, if channel is empty, out of the topic and all its channels.
// It returns the registrations that p was in. Names stay known, but ephemeral ones that are left
// without producers are dropped, a topic together with its channels.
func (db *RegistrationDB) Unregister(p *Producer, topicName, channel string, now time.Time) []Registration {
	db.mu.Lock()
	defer db.mu.Unlock()
	p.refreshLocked(now)
	t := db.topics[topicName]
	if t == nil {
		return nil
	}
	if channel != "" {
		return t.leaveChannel(p, channel, nil)
	}
	return db.leaveTopicLocked(t, p, nil)
}

// Disconnect removes p as if it had unregistered from all its topics, and returns how many
// registrations it was in.
func (db *RegistrationDB) Disconnect(p *Producer) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !db.producers.has(p) {
		return 0
	}
	delete(db.producers, p)
	at := p.peer.address()
	if delete(db.addresses[at], p); len(db.addresses[at]) == 0 {
		delete(db.addresses, at)
	}
	var left []Registration
	for t := range p.topics {
		left = db.leaveTopicLocked(t, p, left)
	}
	return len(left)
}

// CreateTopic makes the topic known.
func (db *RegistrationDB) CreateTopic(name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.topicLocked(name)
}

// CreateChannel makes the channel and its topic known.
func (db *RegistrationDB) CreateChannel(topicName, name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.topicLocked(topicName).channel(name)
}

// DeleteTopic forgets the topic, its channels and who produces them, and says whether it was known.
// Its producers stay connected and come back with their next Register.
func (db *RegistrationDB) DeleteTopic(name string) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.topics[name]
	if t == nil {
		return false
	}
	for p := range t.producers {
		delete(p.topics, t)
	}
	delete(db.topics, name)
	return true
}

// DeleteChannel forgets the channel and says whether it was known. The topic and its producers stay.
func (db *RegistrationDB) DeleteChannel(topicName, name string) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.topics[topicName]
	if t == nil || t.channels[name] == nil {
		return false
	}
	delete(t.channels, name)
	return true
}

// Tombstone hides the producers of the topic that answer to node, "host:httpPort" with or without
// brackets around an IPv6 address, for the tombstone lifetime. It returns how many these are.
func (db *RegistrationDB) Tombstone(topicName, node string, now time.Time) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.topics[topicName]
	if t == nil {
		return 0
	}
	hit := 0
	for p := range t.producers {
		if !p.peer.answersTo(node) {
			continue
		}
		if t.tombstones == nil {
			t.tombstones = map[*Producer]time.Time{}
		}
		t.tombstones[p] = now
		hit++
	}
	return hit
}

func (p *Producer) refreshLocked(now time.Time) {
	p.lastUpdate = now
	p.retired = false
}

func (db *RegistrationDB) topicLocked(name string) *topic {
	t := db.topics[name]
	if t == nil {
		t = &topic{name: name, producers: set[*Producer]{}, channels: map[string]set[*Producer]{}}
		db.topics[name] = t
	}
	return t
}

// leaveTopicLocked appends to left what p was in.
func (db *RegistrationDB) leaveTopicLocked(t *topic, p *Producer, left []Registration) []Registration {
	for name, members := range t.channels {
		if members.has(p) {
			left = t.leaveChannel(p, name, left)
		}
	}
	if t.producers.has(p) {
		delete(t.producers, p)
		delete(t.tombstones, p)
		delete(p.topics, t)
		left = append(left, topicRegistration(t.name))
	}
	if len(t.producers) == 0 && protocol.IsEphemeral(t.name) {
		delete(db.topics, t.name)
	}
	return left
}

// channel returns the producers of the channel, which it creates if need be.
func (t *topic) channel(name string) set[*Producer] {
	members := t.channels[name]
	if members == nil {
		members = set[*Producer]{}
		t.channels[name] = members
	}
	return members
}

// leaveChannel appends to left the channel's registration if p was in it.
func (t *topic) leaveChannel(p *Producer, name string, left []Registration) []Registration {
	members := t.channels[name]
	if members.has(p) {
		delete(members, p)
		left = append(left, channelRegistration(t.name, name))
	}
	if len(members) == 0 && protocol.IsEphemeral(name) {
		delete(t.channels, name)
	}
	return left
}
