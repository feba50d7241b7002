package cluster

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"

	"nsq/internal/api"
	"nsq/internal/discover"
	"nsq/internal/protocol"
)

// Producer is a nsqd that can be asked for its statistics.
type Producer struct {
	Address  string // HTTP host:port
	Hostname string
	Region   string // of the topology, as is Zone; may be empty
	Zone     string
}

// ProducerOf is the node as a producer.
func ProducerOf(n *api.AdminNode) Producer {
	return Producer{Address: Address(n), Hostname: n.Hostname, Region: n.TopologyRegion, Zone: n.TopologyZone}
}

// Address is where a node answers HTTP, and its name in the API.
func Address(n *api.AdminNode) string {
	return net.JoinHostPort(n.BroadcastAddress, strconv.Itoa(n.HTTPPort))
}

// Nodes are all nsqds there are, by hostname and address, with the names of their topics.
func (c *Cluster) Nodes(ctx context.Context) ([]*api.AdminNode, Failures, error) {
	if !c.Direct() {
		nodes, _, failures, err := c.Directory(ctx)
		return nodes, failures, err
	}
	nodes, failures := c.Configured(ctx)
	producers := make([]Producer, len(nodes))
	byAddress := make(map[string]*api.AdminNode)
	for i, n := range nodes {
		producers[i] = ProducerOf(n)
		byAddress[producers[i].Address] = n
	}
	stats, more := c.Stats(ctx, producers, withoutClients())
	failures = append(failures, more...)
	if len(stats) == 0 {
		return nil, nil, &Unreachable{Kind: NSQD, Failures: failures}
	}
	listed := make([]*api.AdminNode, 0, len(stats))
	for _, s := range stats {
		n := byAddress[s.Producer.Address]
		SetTopics(n, s.Topics)
		listed = append(listed, n)
	}
	return listed, failures, nil
}

// SetTopics names the topics of a node that is known from no nsqlookupd.
func SetTopics(n *api.AdminNode, topics []*api.AdminTopic) {
	n.Topics = nil
	for _, t := range topics {
		n.Topics = append(n.Topics, api.AdminNodeTopic{Topic: t.TopicName})
	}
	slices.SortFunc(n.Topics, compareTopics)
}

// Configured are the nsqds of direct mode, without topics. One that does not tell of itself fails.
func (c *Cluster) Configured(ctx context.Context) ([]*api.AdminNode, Failures) {
	answers, failures := ask[api.Info](ctx, c, c.config.NSQDs, "/info", nil)
	var nodes []*api.AdminNode
	seen := make(map[string]bool)
	for _, a := range answers {
		n := nodeOfInfo(a.Address, a.Value)
		if address := Address(n); !seen[address] {
			seen[address] = true
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, compareNodes)
	return nodes, failures
}

// Silent is a configured nsqd of which nothing is known but its address.
func Silent(address string) *api.AdminNode { return nodeOfInfo(address, api.Info{}) }

// nodeOfInfo fills in what an old nsqd does not tell from the address at which it answered.
func nodeOfInfo(address string, info api.Info) *api.AdminNode {
	n := &api.AdminNode{
		Hostname:         info.Hostname,
		BroadcastAddress: info.BroadcastAddress,
		TCPPort:          info.TCPPort,
		HTTPPort:         info.HTTPPort,
		Version:          info.Version,
		TopologyZone:     info.TopologyZone,
		TopologyRegion:   info.TopologyRegion,
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address // it has answered, whatever it is
	}
	if n.BroadcastAddress == "" {
		n.BroadcastAddress = host
		n.HTTPPort, _ = strconv.Atoi(port) // a name of a port is none of ours: 0
	}
	n.Hostname = cmp.Or(n.Hostname, host)
	return n
}

// Directory is what the nsqlookupds tell of the nodes, and the topics that at least one of them
// offers to consumers.
func (c *Cluster) Directory(ctx context.Context) (nodes []*api.AdminNode, visible map[string]bool, failures Failures, err error) {
	answers, failures, err := askAny[nodeList](ctx, c, Lookupd, c.Lookupds(), "/nodes", nil)
	if err != nil {
		return nil, nil, nil, err
	}
	nodes, visible = mergeNodes(answers)
	return nodes, visible, failures, nil
}

// mergeNodes unites what several nsqlookupds know: all topics, hidden where one of them hides them.
func mergeNodes(answers []discover.Answer[nodeList]) (nodes []*api.AdminNode, visible map[string]bool) {
	visible = make(map[string]bool)
	known := make(map[string]*merged)
	for _, a := range answers {
		for i := range a.Value.Producers {
			p := &a.Value.Producers[i]
			if p.BroadcastAddress == "" {
				continue // nobody can reach it
			}
			key := discover.TCPAddress(p.Producer)
			if known[key] == nil {
				known[key] = newMerged(&p.Producer)
				nodes = append(nodes, known[key].node)
			}
			known[key].add(a.Address, p, visible)
		}
	}
	for _, m := range known {
		m.listTopics()
	}
	markOutOfDate(nodes)
	slices.SortStableFunc(nodes, compareNodes)
	return nodes, visible
}

// merged is a node while the answers are being united.
type merged struct {
	node   *api.AdminNode
	topics map[string]bool // by name: whether it is hidden
}

func newMerged(p *api.Producer) *merged {
	return &merged{topics: make(map[string]bool), node: &api.AdminNode{
		RemoteAddress:    p.RemoteAddress,
		Hostname:         p.Hostname,
		BroadcastAddress: p.BroadcastAddress,
		TCPPort:          p.TCPPort,
		HTTPPort:         p.HTTPPort,
		Version:          p.Version,
		TopologyZone:     p.TopologyZone,
		TopologyRegion:   p.TopologyRegion,
	}}
}

// add takes one nsqlookupd's view. Its list of tombstones may be shorter than that of topics.
func (m *merged) add(lookupd string, p *api.Node, visible map[string]bool) {
	m.node.RemoteAddresses = append(m.node.RemoteAddresses, lookupd+"/"+cmp.Or(p.RemoteAddress, "N/A"))
	for i, topic := range p.Topics {
		if !protocol.ValidName(topic) {
			continue
		}
		hidden := i < len(p.Tombstones) && p.Tombstones[i]
		m.topics[topic] = m.topics[topic] || hidden
		if !hidden {
			visible[topic] = true
		}
	}
}

func (m *merged) listTopics() {
	for topic, hidden := range m.topics {
		m.node.Topics = append(m.node.Topics, api.AdminNodeTopic{Topic: topic, Tombstoned: hidden})
	}
	slices.SortFunc(m.node.Topics, compareTopics)
}

// markOutOfDate finds the nodes that are older than the newest one.
func markOutOfDate(nodes []*api.AdminNode) {
	var newest release
	for _, n := range nodes {
		if v := parseRelease(n.Version); v.compare(newest) > 0 {
			newest = v
		}
	}
	for _, n := range nodes {
		n.OutOfDate = parseRelease(n.Version).compare(newest) < 0
	}
}

func compareNodes(a, b *api.AdminNode) int {
	return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(Address(a), Address(b)))
}

func compareTopics(a, b api.AdminNodeTopic) int { return cmp.Compare(a.Topic, b.Topic) }

// lookupPath is where a nsqlookupd tells who produces a topic.
const lookupPath = "/lookup"

// Found is who produces a topic, and the channels that the nsqlookupds know of it.
type Found struct {
	Producers []Producer
	Channels  []string // sorted; nil in direct mode
	Known     bool     // in direct mode: at least one nsqd has the topic
}

// Find finds the producers of a topic. With nsqlookupds, a topic that none of them knows is an
// *Unreachable that says UnknownTopic.
func (c *Cluster) Find(ctx context.Context, topic string) (Found, Failures, error) {
	if c.Direct() {
		return c.findDirect(ctx, topic)
	}
	answers, failures, err := askAny[producerList](ctx, c, Lookupd, c.Lookupds(), lookupPath, url.Values{"topic": {topic}})
	found := Found{Known: err == nil}
	seen := make(map[string]bool)
	var channels [][]string
	for _, a := range answers {
		channels = append(channels, a.Value.Channels)
		for _, p := range a.Value.Producers {
			address := discover.HTTPAddress(p)
			if p.BroadcastAddress == "" || seen[address] {
				continue
			}
			seen[address] = true
			found.Producers = append(found.Producers,
				Producer{Address: address, Hostname: p.Hostname, Region: p.TopologyRegion, Zone: p.TopologyZone})
		}
	}
	found.Channels = union(channels)
	return found, failures, err
}

func (c *Cluster) findDirect(ctx context.Context, topic string) (Found, Failures, error) {
	query := withoutClients()
	query.Set("topic", topic)
	answers, failures, err := askAny[api.Stats](ctx, c, NSQD, c.config.NSQDs, "/stats", query)
	if err != nil {
		return Found{}, nil, err
	}
	var having []string
	for _, a := range answers {
		if slices.Contains(topicNames(a.Value.Topics), topic) { // an old nsqd answers all topics
			having = append(having, a.Address)
		}
	}
	infos, more := ask[api.Info](ctx, c, having, "/info", nil)
	failures = append(failures, more...)
	if len(infos) == 0 && len(having) > 0 {
		return Found{}, nil, &Unreachable{Kind: NSQD, Failures: failures}
	}
	found := Found{Known: len(having) > 0}
	for _, a := range infos {
		found.Producers = append(found.Producers, ProducerOf(nodeOfInfo(a.Address, a.Value)))
	}
	return found, failures, nil
}
