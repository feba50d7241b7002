package monitor

import (
	"strings"
	"time"

	"nsq/internal/api"
	"nsq/internal/cluster"
)

// Snapshot is the cluster at one time. It is never modified once it can be seen: any goroutine may
// read it, none may write to it or to what it points to.
type Snapshot struct {
	Seq      uint64        // number of the collection, 0: nothing has been collected yet
	At       time.Time     // when the collection ended
	Took     time.Duration // how long it took
	Direct   bool          // the nsqds are configured, there are no nsqlookupds
	Lookupds []Lookupd     // in the order of the configuration; nil in direct mode
	Nodes    []*Node       // by hostname, then address
	Topics   []*Topic      // by name; those without a producer too
	Totals   Totals        // of the cluster
	Failures cluster.Failures
}

// Age is how long ago the collection ended.
func (s *Snapshot) Age(now time.Time) time.Duration { return now.Sub(s.At) }

// Node finds a node by its HTTP address; nil if there is none.
func (s *Snapshot) Node(address string) *Node {
	for _, n := range s.Nodes {
		if n.Address == address {
			return n
		}
	}
	return nil
}

// Topic finds a topic; nil if there is none.
func (s *Snapshot) Topic(name string) *Topic {
	for _, t := range s.Topics { // not a binary search: a few thousand compares are nothing here
		if t.TopicName == name {
			return t
		}
	}
	return nil
}

// Lookupd is a nsqlookupd and whether it answers.
type Lookupd struct {
	Address string // HTTP host:port
	Err     string // empty: it answered
}

// Node is a nsqd. What it did not answer is missing: Err says why, and only Address and what the
// nsqlookupds tell of it are set.
type Node struct {
	*api.AdminNode                   // as /api/nodes lists it; never nil
	Address        string            // HTTP host:port, as in URLs of nsqadmin
	Err            string            // why its statistics are missing; empty: they are here
	Health         string            // "OK" or what is wrong, as the node says; empty if unknown
	Started        time.Time         // zero if unknown
	Stats          []*api.AdminTopic // parts, with their channels and clients, in the order of the answer
	Totals         Totals

	at time.Time // when the statistics came
}

// Unwell says whether something is wrong with the node.
func (n *Node) Unwell() bool {
	return n.Err != "" || n.OutOfDate || n.Health != "" && n.Health != "OK"
}

// Topic is a topic over all nodes that have it.
type Topic struct {
	*api.AdminTopic            // summed; Channels of it are in Channels too; never nil
	Channels        []*Channel // by name
	Inactive        bool       // known to a nsqlookupd and produced by nobody it names
	Totals          Totals
}

// Channel finds a channel; nil if there is none.
func (t *Topic) Channel(name string) *Channel {
	for _, c := range t.Channels {
		if c.ChannelName == name {
			return c
		}
	}
	return nil
}

// Channel is a channel over all nodes that have it.
type Channel struct {
	*api.AdminChannel // summed; never nil. Of a topic without producers only the names are known
	Totals            Totals
}

// Totals are the numbers that are sampled: of the cluster, a node, a topic with its channels, or a
// channel.
type Totals struct {
	Depth    int64 // messages that wait, in topics and in channels
	InFlight int64
	Deferred int64
	Clients  int64 // consumers
	Rates
}

// Rates are per second, over the time between two collections.
type Rates struct {
	Known   bool    // false: there is nothing to compare with yet, the rates are 0
	Publish float64 // messages into topics; of a channel: messages from its topic
	// Deliver is messages sent to consumers or, from a nsqd that does not count them, messages that
	// have left the channel.
	Deliver float64
	Requeue float64
	Timeout float64
}

func (r *Rates) add(o Rates) {
	r.Known = r.Known || o.Known
	r.Publish += o.Publish
	r.Deliver += o.Deliver
	r.Requeue += o.Requeue
	r.Timeout += o.Timeout
}

func compareNodes(a, b *Node) int {
	if c := strings.Compare(a.Hostname, b.Hostname); c != 0 {
		return c
	}
	return strings.Compare(a.Address, b.Address)
}
