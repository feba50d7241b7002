package web

import (
	"strconv"
	"strings"
	"time"

	"nsq/internal/api"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/monitor"
)

func (s *site) nodes(r request) page {
	return page{Title: "Nodes", Live: true, Tables: []table{build(r.view, s.nodeTable(r), r.snapshot.Nodes)}}
}

func (s *site) nodeTable(r request) spec[*monitor.Node] {
	type N = *monitor.Node
	columns := []column[N]{
		{key: "node", title: "Node", compare: by(func(n N) string { return n.Hostname }), cell: func(n N) cell {
			c := s.host(n.Hostname, n.Address)
			c.Labels = nodeLabels(n)
			return c
		}},
		{key: "version", title: "Version", compare: by(func(n N) string { return n.Version }), cell: func(n N) cell { return cell{Text: n.Version} }},
		{key: "place", title: "Region/zone", low: true, compare: by(place), cell: func(n N) cell { return cell{Text: place(n)} }},
		{key: "tcp", title: "TCP port", num: true, low: true, compare: by(func(n N) int { return n.TCPPort }), cell: func(n N) cell { return cell{Text: strconv.Itoa(n.TCPPort)} }},
		number("topics", "Topics", func(n N) int64 { return int64(max(len(n.Stats), len(n.Topics))) }),
		number("depth", "Depth", func(n N) int64 { return n.Totals.Depth }),
		number("inflight", "In flight", func(n N) int64 { return n.Totals.InFlight }),
		perSecond("publish", "Published/s", func(n N) float64 { return known(n.Totals.Known, n.Totals.Publish) }),
		perSecond("deliver", "Delivered/s", func(n N) float64 { return known(n.Totals.Known, n.Totals.Deliver) }),
		number("consumers", "Consumers", func(n N) int64 { return n.Totals.Clients }),
	}
	if !r.snapshot.Direct {
		columns = append(columns, column[N]{key: "lookupds", title: "Lookupds", hint: "How many nsqlookupd know this node", num: true,
			compare: by(func(n N) int { return len(n.RemoteAddresses) }), cell: func(n N) cell {
				c := cell{Text: count(len(n.RemoteAddresses)) + " of " + count(len(r.snapshot.Lookupds)), Hint: strings.Join(n.RemoteAddresses, ", ")}
				if len(n.RemoteAddresses) < len(r.snapshot.Lookupds) {
					c.Labels = []label{{Text: "incomplete", Kind: "warn"}}
				}
				return c
			}})
	}
	return spec[N]{
		title: "nsqd nodes", order: "node", columns: columns,
		caption: "Depth and in flight count the messages of all topics and channels of a node",
		empty:   "There are no nodes.",
		key:     func(n N) string { return n.Address },
		matches: func(n N, text string) bool {
			return strings.Contains(strings.ToLower(strings.Join([]string{n.Hostname, n.Address, n.Version, place(n)}, " ")), text)
		},
	}
}

func place(n *monitor.Node) string { return strings.Trim(n.TopologyRegion+"/"+n.TopologyZone, "/") }

func nodeLabels(n *monitor.Node) []label {
	var labels []label
	if n.Err != "" {
		labels = append(labels, label{Text: "no answer", Kind: "bad", Hint: clip(n.Err)})
	}
	if n.Health != "" && n.Health != "OK" {
		labels = append(labels, label{Text: "unhealthy", Kind: "bad", Hint: clip(n.Health)})
	}
	if n.OutOfDate {
		labels = append(labels, label{Text: "older version", Kind: "warn", Hint: "Another node has a newer version"})
	}
	hidden := 0
	for _, t := range n.Topics {
		if t.Tombstoned {
			hidden++
		}
	}
	if hidden > 0 {
		labels = append(labels, label{Text: many(hidden, "topic tombstoned", "topics tombstoned"), Kind: "warn"})
	}
	return labels
}

func (s *site) node(r request) page {
	address := r.PathValue("node")
	crumbs := []choice{{Text: "Nodes", Href: s.links.To("/nodes")}, {Text: address, Current: true}}
	n := r.snapshot.Node(address)
	if n == nil {
		return s.unknown(r, "Node", address, crumbs)
	}
	p := page{Title: address, Live: true, Crumbs: crumbs, Labels: nodeLabels(n), History: s.history(r, monitor.Key{Node: address}), Facts: nodeFacts(n), Outside: s.nodeGraphs(address)}
	if n.Err != "" {
		p.Notices = append(p.Notices, notice{Kind: "bad", Text: "This node does not answer: " + clip(n.Err)})
	} else {
		p.Figures = figures(n.Totals)
	}
	if n.Health != "" && n.Health != "OK" {
		p.Notices = append(p.Notices, notice{Kind: "bad", Text: clip(n.Health)})
	}
	var channels []*api.AdminChannel
	var clients []subscription
	for _, t := range n.Stats {
		for _, c := range t.Channels {
			channels = append(channels, c)
			clients = append(clients, clientsOf(c)...)
		}
	}
	p.Tables = []table{
		build(r.view, s.nodeTopicTable(r, n), topicsOf(n)),
		build(r.view, s.nodeChannelTable(), channels),
	}
	p.More = []table{build(r.view, s.nodeClientTable(), clients)}
	return p
}

func nodeFacts(n *monitor.Node) []figure {
	facts := []figure{
		{"Hostname", n.Hostname},
		{"Broadcast address", n.BroadcastAddress},
		{"TCP port", strconv.Itoa(n.TCPPort)},
		{"HTTP port", strconv.Itoa(n.HTTPPort)},
		{"Version", n.Version},
	}
	if p := place(n); p != "" {
		facts = append(facts, figure{"Region/zone", p})
	}
	if n.Health != "" {
		facts = append(facts, figure{"Health", clip(n.Health)})
	}
	if !n.Started.IsZero() {
		facts = append(facts, figure{"Started", n.Started.Format(time.DateTime + " MST")})
	}
	for _, remote := range n.RemoteAddresses {
		facts = append(facts, figure{"Known to nsqlookupd", remote})
	}
	return facts
}

// topicOnNode is a topic of a node: what a nsqlookupd tells of it and what the node does.
type topicOnNode struct {
	name       string
	tombstoned bool
	stats      *api.AdminTopic // nil where the node does not report it
}

// topicsOf joins what is registered with what the node has.
func topicsOf(n *monitor.Node) []topicOnNode {
	hidden := map[string]bool{}
	for _, t := range n.Topics {
		hidden[t.Topic] = t.Tombstoned
	}
	var all []topicOnNode
	for _, t := range n.Stats {
		all = append(all, topicOnNode{t.TopicName, hidden[t.TopicName], t})
		delete(hidden, t.TopicName)
	}
	for name, tombstoned := range hidden {
		all = append(all, topicOnNode{name, tombstoned, nil})
	}
	return all
}

func (s *site) nodeTopicTable(r request, n *monitor.Node) spec[topicOnNode] {
	type T = topicOnNode
	value := func(of func(*api.AdminTopic) int64) func(T) int64 {
		return func(t T) int64 {
			if t.stats == nil {
				return 0
			}
			return of(t.stats)
		}
	}
	waiting := value(func(t *api.AdminTopic) int64 { return t.Depth })
	columns := []column[T]{
		{key: "topic", title: "Topic", compare: by(func(t T) string { return t.name }), cell: func(t T) cell {
			c := cell{Text: t.name, Href: s.links.topic(t.name)}
			if t.tombstoned {
				c.Labels = append(c.Labels, label{Text: "tombstoned", Kind: "warn", Hint: "Hidden from look-ups on this node"})
			}
			if t.stats != nil && t.stats.Paused {
				c.Labels = append(c.Labels, label{Text: "paused", Kind: "warn"})
			}
			if t.stats == nil && n.Err == "" {
				c.Labels = append(c.Labels, label{Text: "registered only", Kind: "warn", Hint: "nsqlookupd lists it, the node does not have it"})
			}
			return c
		}},
		{key: "depth", title: "Depth", num: true, compare: by(waiting), cell: func(t T) cell {
			if t.stats == nil {
				return cell{Text: none}
			}
			return depth(t.stats.Depth, t.stats.MemoryDepth, t.stats.BackendDepth)
		}},
		number("messages", "Messages", value(func(t *api.AdminTopic) int64 { return int64(t.MessageCount) })),
		number("channels", "Channels", value(func(t *api.AdminTopic) int64 { return int64(len(t.Channels)) })),
	}
	if r.admin {
		columns = append(columns, column[T]{title: "Action", cell: func(t T) cell { return cell{Act: s.tombstoneAct(t.name, n.Address)} }})
	}
	return spec[T]{
		title: "Topics on this node", order: "topic", columns: columns,
		caption: "Depth counts what waits in the topic itself, before its channels",
		empty:   "This node has no topics.",
		key:     func(t T) string { return t.name },
		matches: func(t T, text string) bool { return strings.Contains(strings.ToLower(t.name), text) },
	}
}

func (s *site) nodeChannelTable() spec[*api.AdminChannel] {
	type C = *api.AdminChannel
	return spec[C]{
		id: "channels", title: "Channels on this node", order: "topic",
		caption: "One row for each channel",
		empty:   "This node has no channels.",
		key:     func(c C) string { return c.TopicName + " " + c.ChannelName },
		matches: func(c C, text string) bool {
			return strings.Contains(strings.ToLower(c.TopicName+" "+c.ChannelName), text)
		},
		columns: []column[C]{
			{key: "channel", title: "Channel", compare: by(func(c C) string { return c.ChannelName }), cell: func(c C) cell {
				out := cell{Text: c.ChannelName, Href: s.links.channel(c.TopicName, c.ChannelName)}
				if c.Paused {
					out.Labels = []label{{Text: "paused", Kind: "warn"}}
				}
				return out
			}},
			{key: "topic", title: "Topic", compare: by(func(c C) string { return c.TopicName }), cell: func(c C) cell {
				return cell{Text: c.TopicName, Href: s.links.topic(c.TopicName)}
			}},
			{key: "depth", title: "Depth", num: true, compare: by(func(c C) int64 { return c.Depth }), cell: func(c C) cell {
				return depth(c.Depth, c.MemoryDepth, c.BackendDepth)
			}},
			number("inflight", "In flight", func(c C) int64 { return c.InFlightCount }),
			number("deferred", "Deferred", func(c C) int64 { return c.DeferredCount }),
			number("requeued", "Requeued", func(c C) int64 { return int64(c.RequeueCount) }),
			number("timedout", "Timed out", func(c C) int64 { return int64(c.TimeoutCount) }),
			number("messages", "Messages", func(c C) int64 { return int64(c.MessageCount) }),
			number("consumers", "Consumers", func(c C) int64 { return int64(c.ClientCount) }),
		},
	}
}

// nodeClientTable says what a client is subscribed to instead of the node, which is the page's.
func (s *site) nodeClientTable() spec[subscription] {
	t := s.clientTable("clients", "Consumers on this node", "No consumer is connected to this node.")
	for i, c := range t.columns {
		if c.key == "node" {
			t.columns[i] = column[subscription]{key: "subscription", title: "Channel", compare: by(func(c subscription) string { return c.topic + " " + c.channel }),
				cell: func(c subscription) cell {
					return cell{Text: c.channel, Href: s.links.channel(c.topic, c.channel), Sub: c.topic}
				}}
		}
	}
	return t
}

func (s *site) tombstoneAct(topic, node string) *act {
	a := s.link(action.Action{Topic: topic, Node: node}, action.Tombstone)
	a.Label = "Tombstone " + topic + " on " + node
	return &a
}
