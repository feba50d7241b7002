package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nsq/internal/protocol"
)

// model is the database as the specification tells it: a flat set of registrations, each with its
// producers, everything found by scanning.
type model struct {
	entries map[Registration]map[*modelPeer]time.Time // zero time: no tombstone
	peers   []*modelPeer
}

type modelPeer struct {
	real    *Producer
	peer    Peer
	updated time.Time
	hidden  bool
}

func (m *model) add(r Registration) map[*modelPeer]time.Time {
	if m.entries[r] == nil {
		m.entries[r] = map[*modelPeer]time.Time{}
	}
	return m.entries[r]
}

func (m *model) join(p *modelPeer, r Registration) {
	if _, ok := m.add(r)[p]; !ok {
		m.entries[r][p] = time.Time{}
	}
}

// leave removes p from all registrations that match, then drops ephemeral ones it left empty, and the
// channels of dropped topics.
func (m *model) leave(p *modelPeer, match func(Registration) bool) {
	for r, members := range m.entries {
		if _, ok := members[p]; !ok || !match(r) {
			continue
		}
		delete(members, p)
		m.drop(r)
	}
}

func (m *model) drop(r Registration) {
	name := r.Key
	if r.Category == "channel" {
		name = r.SubKey
	}
	if members, ok := m.entries[r]; ok && len(members) == 0 && protocol.IsEphemeral(name) {
		delete(m.entries, r)
		if r.Category == "topic" {
			m.forget(func(c Registration) bool { return c.Category == "channel" && c.Key == r.Key })
		}
	}
}

func (m *model) forget(match func(Registration) bool) {
	for r := range m.entries {
		if match(r) {
			delete(m.entries, r)
		}
	}
}

func (m *model) visible(p *modelPeer, now time.Time) bool {
	return !p.hidden && now.Sub(p.updated) <= inactive
}

// lookup renders what Lookup must answer.
func (m *model) lookup(topic string, now time.Time) string {
	members, known := m.entries[topicRegistration(topic)]
	var channels, producers []string
	for r := range m.entries {
		if r.Category == "channel" && r.Key == topic {
			channels = append(channels, r.SubKey)
		}
	}
	for p, stone := range members {
		if m.visible(p, now) && (stone.IsZero() || now.Sub(stone) >= tombstone) {
			producers = append(producers, p.peer.RemoteAddress)
		}
	}
	slices.Sort(channels)
	slices.Sort(producers)
	return fmt.Sprint(known, channels, producers)
}

func (m *model) nodes(now time.Time) string {
	var nodes []string
	for _, p := range m.peers {
		if !m.visible(p, now) {
			continue
		}
		var topics []string
		for r, members := range m.entries {
			if stone, ok := members[p]; ok && r.Category == "topic" {
				topics = append(topics, fmt.Sprint(r.Key, !stone.IsZero() && now.Sub(stone) < tombstone))
			}
		}
		slices.Sort(topics)
		nodes = append(nodes, fmt.Sprint(p.peer.RemoteAddress, topics))
	}
	slices.Sort(nodes)
	return strings.Join(nodes, "\n")
}

func realLookup(db *RegistrationDB, topic string, now time.Time) string {
	channels, peers, known := db.Lookup(topic, now)
	var producers []string
	for _, p := range peers {
		producers = append(producers, p.RemoteAddress)
	}
	slices.Sort(producers)
	return fmt.Sprint(known, channels, producers)
}

func realNodes(db *RegistrationDB, now time.Time) string {
	var nodes []string
	for _, n := range db.Nodes(now) {
		var topics []string
		for _, t := range n.Topics {
			topics = append(topics, fmt.Sprint(t.Name, t.Tombstoned))
		}
		nodes = append(nodes, fmt.Sprint(n.RemoteAddress, topics))
	}
	slices.Sort(nodes)
	return strings.Join(nodes, "\n")
}

// The database answers as the model does, whatever happened to both.
func TestAgainstModel(t *testing.T) { rapid.Check(t, checkAgainstModel) }

func checkAgainstModel(t *rapid.T) {
	topicNames := []string{"t", "u", "e#ephemeral"}
	topicName := rapid.SampledFrom(topicNames)
	channelName := rapid.SampledFrom([]string{"c", "d", "e#ephemeral"})
	optionalChannel := rapid.SampledFrom([]string{"", "c", "d", "e#ephemeral"})

	db := New(inactive, tombstone)
	m := &model{entries: map[Registration]map[*modelPeer]time.Time{}}
	now, connections := at(0), 0
	pick := func(t *rapid.T) *modelPeer {
		if len(m.peers) == 0 {
			t.Skip("nobody is connected")
		}
		return rapid.SampledFrom(m.peers).Draw(t, "producer")
	}
	heard := func(p *modelPeer) *modelPeer { p.updated, p.hidden = now, false; return p }

	t.Repeat(map[string]func(*rapid.T){
		"wait": func(t *rapid.T) {
			now = now.Add(time.Duration(rapid.IntRange(1, 150).Draw(t, "seconds")) * time.Second)
		},
		"identify": func(t *rapid.T) {
			connections++
			p := &modelPeer{peer: peer(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host"), connections), updated: now}
			for _, older := range m.peers {
				older.hidden = older.hidden || older.peer.BroadcastAddress == p.peer.BroadcastAddress
			}
			m.peers = append(m.peers, p)
			p.real = db.Identify(p.peer, now)
		},
		"refresh": func(t *rapid.T) { p := heard(pick(t)); db.Refresh(p.real, now) },
		"register": func(t *rapid.T) {
			p, topic, channel := heard(pick(t)), topicName.Draw(t, "topic"), optionalChannel.Draw(t, "channel")
			db.Register(p.real, topic, channel, now)
			m.join(p, topicRegistration(topic))
			if channel != "" {
				m.join(p, channelRegistration(topic, channel))
			}
		},
		"unregister": func(t *rapid.T) {
			p, topic, channel := heard(pick(t)), topicName.Draw(t, "topic"), optionalChannel.Draw(t, "channel")
			db.Unregister(p.real, topic, channel, now)
			if channel != "" {
				m.leave(p, func(r Registration) bool { return r == channelRegistration(topic, channel) })
				m.drop(channelRegistration(topic, channel))
			} else {
				m.leave(p, func(r Registration) bool { return r.Key == topic })
				m.drop(topicRegistration(topic))
			}
		},
		"disconnect": func(t *rapid.T) {
			p := pick(t)
			db.Disconnect(p.real)
			m.leave(p, func(Registration) bool { return true })
			m.peers = slices.DeleteFunc(m.peers, func(q *modelPeer) bool { return p == q })
		},
		"create": func(t *rapid.T) {
			topic, channel := topicName.Draw(t, "topic"), optionalChannel.Draw(t, "channel")
			m.add(topicRegistration(topic))
			if channel == "" {
				db.CreateTopic(topic)
				return
			}
			db.CreateChannel(topic, channel)
			m.add(channelRegistration(topic, channel))
		},
		"delete topic": func(t *rapid.T) {
			topic := topicName.Draw(t, "topic")
			db.DeleteTopic(topic)
			m.forget(func(r Registration) bool { return r.Key == topic })
		},
		"delete channel": func(t *rapid.T) {
			topic, channel := topicName.Draw(t, "topic"), channelName.Draw(t, "channel")
			db.DeleteChannel(topic, channel)
			delete(m.entries, channelRegistration(topic, channel))
		},
		"tombstone": func(t *rapid.T) {
			topic, host := topicName.Draw(t, "topic"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host")
			db.Tombstone(topic, host+":4151", now)
			for p := range m.entries[topicRegistration(topic)] {
				if p.peer.BroadcastAddress == host {
					m.entries[topicRegistration(topic)][p] = now
				}
			}
		},
		"": func(t *rapid.T) {
			for _, topic := range topicNames {
				if got, want := realLookup(db, topic, now), m.lookup(topic, now); got != want {
					t.Fatalf("lookup of %s\n got %s\nwant %s", topic, got, want)
				}
			}
			if got, want := realNodes(db, now), m.nodes(now); got != want {
				t.Fatalf("nodes\n got %s\nwant %s", got, want)
			}
			checkAll(t, db, m)
		},
	})
}

// checkAll compares the unfiltered contents, so that nothing of a producer that left stays behind.
func checkAll(t *rapid.T, db *RegistrationDB, m *model) {
	want := map[Registration]int{}
	for r, members := range m.entries {
		if len(members) > 0 {
			want[r] = len(members)
		}
	}
	if len(m.peers) > 0 {
		want[Registration{Category: "client"}] = len(m.peers)
	}
	for r, entries := range db.All() {
		if len(entries) != want[r] {
			t.Fatalf("%s has %d producers, want %d", r, len(entries), want[r])
		}
		delete(want, r)
	}
	if len(want) > 0 {
		t.Fatalf("missing %v", want)
	}
}
