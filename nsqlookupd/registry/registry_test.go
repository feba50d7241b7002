package registry

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	inactive  = 300 * time.Second
	tombstone = 45 * time.Second
)

// at is a moment of the tests' own time line.
func at(d time.Duration) time.Time { return time.Unix(1_000_000, 0).Add(d) }

func peer(host string, port int) Peer {
	return Peer{
		RemoteAddress: fmt.Sprintf("192.0.2.1:%d", port), Hostname: host, BroadcastAddress: host,
		TCPPort: 4150, HTTPPort: 4151, Version: "1.0",
	}
}

func want(t *testing.T, what string, got, wanted any) {
	t.Helper()
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// hosts are the producers that a look-up of the topic shows, nil for an unknown topic.
func hosts(db *RegistrationDB, topic string, now time.Time) []string {
	_, producers, known := db.Lookup(topic, now)
	if !known {
		return nil
	}
	names := []string{}
	for _, p := range producers {
		names = append(names, p.Hostname)
	}
	return names
}

// Register reports what is new, adds the topic with a channel, and answers are sorted.
func TestRegister(t *testing.T) {
	db := New(inactive, tombstone)
	b := db.Identify(peer("b", 1), at(0))
	a := db.Identify(peer("a", 2), at(0))
	want(t, "first", db.Register(b, "t", "c2", at(0)), []Registration{{"channel", "t", "c2"}, {"topic", "t", ""}})
	want(t, "second channel", db.Register(b, "t", "c1", at(0)), []Registration{{"channel", "t", "c1"}})
	want(t, "again", db.Register(b, "t", "c1", at(0)), []Registration(nil))
	want(t, "topic only", db.Register(a, "t", "", at(0)), []Registration{{"topic", "t", ""}})
	db.Register(a, "s", "", at(0))

	channels, producers, known := db.Lookup("t", at(0))
	want(t, "known", known, true)
	want(t, "channels", channels, []string{"c1", "c2"})
	want(t, "producers", producers, []Peer{peer("a", 2), peer("b", 1)})
	want(t, "topics", db.Topics(), []string{"s", "t"})
	want(t, "channels of no topic", db.Channels("no"), []string{})
	want(t, "nodes", db.Nodes(at(0)), []Node{
		{Peer: peer("a", 2), Topics: []NodeTopic{{Name: "s"}, {Name: "t"}}},
		{Peer: peer("b", 1), Topics: []NodeTopic{{Name: "t"}}},
	})
}

// Permanent names outlive their producers; ephemeral ones do not, however they lose the last.
func TestEphemeralNamesEndWithTheirLastProducer(t *testing.T) {
	ends := map[string]func(*RegistrationDB, *Producer){
		"unregister": func(db *RegistrationDB, p *Producer) {
			for _, topic := range []string{"t", "e#ephemeral"} {
				db.Unregister(p, topic, "", at(0))
			}
		},
		"disconnect": func(db *RegistrationDB, p *Producer) {
			want(t, "registrations left", db.Disconnect(p), 5)
			want(t, "registrations left again", db.Disconnect(p), 0)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			db := New(inactive, tombstone)
			var ps []*Producer
			for i := range 2 {
				p := db.Identify(peer(fmt.Sprint(i), i), at(0))
				ps = append(ps, p)
				db.Register(p, "t", "c", at(0))
				db.Register(p, "t", "ce#ephemeral", at(0))
				db.Register(p, "e#ephemeral", "c", at(0))
			}
			db.CreateChannel("t", "asked#ephemeral")
			end(db, ps[0])
			want(t, "topics while one is left", db.Topics(), []string{"e#ephemeral", "t"})
			want(t, "channels while one is left", db.Channels("t"), []string{"asked#ephemeral", "c", "ce#ephemeral"})
			end(db, ps[1])
			want(t, "topics", db.Topics(), []string{"t"})
			want(t, "channels", db.Channels("t"), []string{"asked#ephemeral", "c"})
			want(t, "channels of the ephemeral topic", db.Channels("e#ephemeral"), []string{})
			want(t, "producers", hosts(db, "t", at(0)), []string{})
		})
	}
}

// Unregistering a channel leaves the topic alone, and also clears an empty ephemeral channel that the
// sender never produced.
func TestUnregisterChannel(t *testing.T) {
	db := New(inactive, tombstone)
	p := db.Identify(peer("a", 1), at(0))
	db.Register(p, "t", "c", at(0))
	db.CreateChannel("t", "x#ephemeral")
	want(t, "a channel of p", db.Unregister(p, "t", "c", at(0)), []Registration{{"channel", "t", "c"}})
	want(t, "not one of p", db.Unregister(p, "t", "x#ephemeral", at(0)), []Registration(nil))
	want(t, "unknown channel", db.Unregister(p, "t", "no", at(0)), []Registration(nil))
	want(t, "unknown topic", db.Unregister(p, "no", "", at(0)), []Registration(nil))
	want(t, "channels", db.Channels("t"), []string{"c"})
	want(t, "topics", db.Topics(), []string{"t"})
	want(t, "producers", hosts(db, "t", at(0)), []string{"a"})
}

// A silent producer is hidden strictly after the timeout, and every command brings it back.
func TestInactiveProducersAreHidden(t *testing.T) {
	commands := map[string]func(db *RegistrationDB, p *Producer, now time.Time){
		"PING": func(db *RegistrationDB, p *Producer, now time.Time) {
			want(t, "silence", db.Refresh(p, now), now.Sub(at(0)))
		},
		"REGISTER":   func(db *RegistrationDB, p *Producer, now time.Time) { db.Register(p, "t", "", now) },
		"UNREGISTER": func(db *RegistrationDB, p *Producer, now time.Time) { db.Unregister(p, "no", "", now) },
	}
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			db := New(inactive, tombstone)
			p := db.Identify(peer("a", 1), at(0))
			db.Register(p, "t", "", at(0))
			want(t, "at the timeout", hosts(db, "t", at(inactive)), []string{"a"})
			late := at(inactive + 1)
			want(t, "after the timeout", hosts(db, "t", late), []string{})
			want(t, "nodes", db.Nodes(late), []Node{})
			command(db, p, late)
			want(t, "heard again", hosts(db, "t", late), []string{"a"})
			want(t, "nodes", len(db.Nodes(late)), 1)
		})
	}
}

// A new connection with the same announced address hides the older one until that is heard again; other
// addresses do not matter.
func TestIdentifyRetiresOlderProducerOfSameAddress(t *testing.T) {
	db := New(inactive, tombstone)
	otherPort := peer("a", 3)
	otherPort.TCPPort++
	for _, p := range []Peer{peer("a", 1), otherPort, peer("b", 4)} {
		db.Register(db.Identify(p, at(0)), "t", "", at(0))
	}
	db.Identify(peer("c", 9), at(0))
	old := db.Identify(peer("c", 5), at(0))
	db.Register(old, "t", "", at(0))
	want(t, "before", hosts(db, "t", at(0)), []string{"a", "a", "b", "c"})

	fresh := db.Identify(peer("c", 6), at(time.Second))
	want(t, "retired", hosts(db, "t", at(time.Second)), []string{"a", "a", "b"})
	want(t, "nodes", len(db.Nodes(at(time.Second))), 4)
	db.Register(fresh, "t", "", at(time.Second))
	want(t, "replaced", hosts(db, "t", at(time.Second)), []string{"a", "a", "b", "c"})

	db.Refresh(old, at(2*time.Second))
	want(t, "both alive after all", hosts(db, "t", at(2*time.Second)), []string{"a", "a", "b", "c", "c"})
	db.Disconnect(fresh)
	want(t, "the older one stays", hosts(db, "t", at(2*time.Second)), []string{"a", "a", "b", "c"})
}

// A tombstone hides one producer of one topic for its lifetime, in both spellings of the node.
func TestTombstone(t *testing.T) {
	db := New(inactive, tombstone)
	v6 := peer("fd00::1", 1)
	p := db.Identify(v6, at(0))
	for _, topic := range []string{"t", "u"} {
		db.Register(p, topic, "c", at(0))
	}
	want(t, "wrong node", db.Tombstone("t", "fd00::1:4150", at(0)), 0)
	want(t, "wrong topic", db.Tombstone("no", "fd00::1:4151", at(0)), 0)
	for i, node := range []string{"fd00::1:4151", "[fd00::1]:4151"} {
		start := time.Duration(i) * time.Hour
		db.Refresh(p, at(start))
		want(t, "match", db.Tombstone("t", node, at(start)), 1)
		db.Register(p, "t", "c", at(start))
		want(t, "hidden", hosts(db, "t", at(start+tombstone-1)), []string{})
		want(t, "other topic", hosts(db, "u", at(start)), []string{"fd00::1"})
		want(t, "nodes", db.Nodes(at(start)), []Node{{v6, []NodeTopic{{"t", true}, {"u", false}}}})
		want(t, "over", hosts(db, "t", at(start+tombstone)), []string{"fd00::1"})
	}
	db.Tombstone("t", "fd00::1:4151", at(time.Hour))
	db.Unregister(p, "t", "", at(time.Hour))
	db.Register(p, "t", "", at(time.Hour))
	want(t, "a new entry has none", hosts(db, "t", at(time.Hour)), []string{"fd00::1"})
}

// Deleting names over HTTP takes producers with them, and a producer comes back with a new REGISTER.
func TestDelete(t *testing.T) {
	db := New(inactive, tombstone)
	p := db.Identify(peer("a", 1), at(0))
	db.Register(p, "t", "c", at(0))
	want(t, "unknown channel", db.DeleteChannel("t", "no"), false)
	want(t, "channel of unknown topic", db.DeleteChannel("no", "c"), false)
	want(t, "channel", db.DeleteChannel("t", "c"), true)
	want(t, "producers", hosts(db, "t", at(0)), []string{"a"})
	want(t, "unknown topic", db.DeleteTopic("no"), false)
	want(t, "topic", db.DeleteTopic("t"), true)
	want(t, "topics", db.Topics(), []string{})
	want(t, "node without topics", db.Nodes(at(0)), []Node{{peer("a", 1), []NodeTopic{}}})
	want(t, "registered anew", len(db.Register(p, "t", "c", at(0))), 2)
}

// All shows everything that has producers, hidden ones too, and lets the database be changed between
// two yields.
func TestAll(t *testing.T) {
	db := New(inactive, tombstone)
	p := db.Identify(peer("a", 1), at(0))
	db.Register(p, "t", "c", at(0))
	db.Tombstone("t", "a:4151", at(1))
	db.CreateChannel("t", "empty")
	db.CreateTopic("none")
	plain := Entry{Peer: peer("a", 1), LastUpdate: at(0)}
	marked := plain
	marked.Tombstoned, marked.TombstonedAt = true, at(1)

	seen := map[string][]Entry{}
	for r, entries := range db.All() {
		seen[r.String()] = entries
		db.CreateTopic("written while somebody reads")
	}
	want(t, "all", seen, map[string][]Entry{"client::": {plain}, "topic:t:": {marked}, "channel:t:c": {plain}})
	for range db.All() {
		break // must not go on yielding
	}
}

// What was answered belongs to the caller.
func TestAnswersAreCopies(t *testing.T) {
	db := New(inactive, tombstone)
	p := db.Identify(peer("a", 1), at(0))
	db.Register(p, "t", "c", at(0))
	channels, producers, _ := db.Lookup("t", at(0))
	channels[0], producers[0].Hostname = "x", "x"
	db.Topics()[0] = "x"
	db.Nodes(at(0))[0].Topics[0].Name = "x"
	channels, producers, _ = db.Lookup("t", at(0))
	want(t, "channels", channels, []string{"c"})
	want(t, "producers", producers, []Peer{peer("a", 1)})
	want(t, "topics", db.Topics(), []string{"t"})
	want(t, "nodes", db.Nodes(at(0))[0].Topics, []NodeTopic{{Name: "t"}})
}

// Counts follow silence, tombstones and their end.
func TestCount(t *testing.T) {
	db := New(inactive, tombstone)
	want(t, "empty", db.Count(at(0)), Counts{})
	a := db.Identify(peer("a", 1), at(0))
	db.Register(a, "t", "c", at(0))
	db.Register(a, "u", "", at(0))
	db.CreateChannel("u", "d")
	db.CreateChannel("u", "e")
	db.CreateTopic("v")
	b := db.Identify(peer("b", 2), at(0))
	db.Register(b, "t", "c", at(0))
	db.Tombstone("t", "a:4151", at(0))
	want(t, "all", db.Count(at(0)), Counts{Topics: 3, Channels: 3, Producers: 2, Nodes: 2, Tombstones: 1})

	db.Refresh(b, at(tombstone))
	want(t, "tombstone over", db.Count(at(tombstone)), Counts{Topics: 3, Channels: 3, Producers: 2, Nodes: 2})
	db.Refresh(b, at(inactive))
	want(t, "one silent", db.Count(at(inactive+1)), Counts{Topics: 3, Channels: 3, Producers: 2, Nodes: 1})
	db.Disconnect(a)
	db.DeleteTopic("u")
	want(t, "one left", db.Count(at(inactive+1)), Counts{Topics: 2, Channels: 1, Producers: 1, Nodes: 1})
}
