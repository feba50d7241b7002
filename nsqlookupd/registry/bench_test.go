package registry

import (
	"fmt"
	"testing"
)

// crowd is a database of nodes that all produce the same topics.
func crowd(nodes, topics int) (*RegistrationDB, []*Producer) {
	db := New(inactive, tombstone)
	producers := make([]*Producer, nodes)
	for n := range producers {
		producers[n] = db.Identify(peer(fmt.Sprintf("host%d", n), n), at(0))
		for t := range topics {
			db.Register(producers[n], fmt.Sprintf("topic%d", t), "", at(0))
		}
	}
	return db, producers
}

// The cost of /nodes is that of what it answers.
func BenchmarkNodes(b *testing.B) {
	for _, topics := range []int{50, 500, 5000} {
		b.Run(fmt.Sprintf("1000x%d", topics), func(b *testing.B) {
			db, producers := crowd(1000, topics)
			for b.Loop() {
				if len(db.Nodes(at(0))) != len(producers) {
					b.Fatal("nodes are missing")
				}
			}
		})
	}
}

// A connection that ends pays for its own registrations, not for those of the others.
func BenchmarkDisconnect(b *testing.B) {
	for _, topics := range []int{50, 500, 5000} {
		b.Run(fmt.Sprintf("1000x%d", topics), func(b *testing.B) {
			db, _ := crowd(1000, topics)
			for b.Loop() {
				p := db.Identify(peer("leaver", 0), at(0))
				for t := range 50 {
					db.Register(p, fmt.Sprintf("topic%d", t), "", at(0))
				}
				if db.Disconnect(p) != 50 {
					b.Fatal("registrations were lost")
				}
			}
		})
	}
}

// A look-up costs the producers of its topic.
func BenchmarkLookup(b *testing.B) {
	for _, nodes := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%dx500", nodes), func(b *testing.B) {
			db, _ := crowd(nodes, 500)
			for b.Loop() {
				if _, producers, _ := db.Lookup("topic7", at(0)); len(producers) != nodes {
					b.Fatal("producers are missing")
				}
			}
		})
	}
}
