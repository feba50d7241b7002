package web

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"nsq/internal/api"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/monitor"
)

func (s *site) channel(r request) page {
	topic, name := r.PathValue("topic"), r.PathValue("channel")
	crumbs := []choice{{Text: "Topics", Href: s.links.To("/topics")}, {Text: topic, Href: s.links.topic(topic)}, {Text: name, Current: true}}
	var c *monitor.Channel
	t := r.snapshot.Topic(topic)
	if t != nil {
		c = t.Channel(name)
	}
	if c == nil {
		return s.unknown(r, "Channel", name, crumbs)
	}
	paused := pausedChannels(c.Nodes)
	p := page{
		Title: topic + " / " + name, Heading: name, Live: true, Crumbs: crumbs,
		Labels:  pausedLabel(paused, len(c.Nodes)),
		Figures: figures(c.Totals),
		History: s.history(r, monitor.Key{Topic: topic, Channel: name}),
		Outside: s.channelGraphs(topic, name),
		Tables:  []table{build(r.view, s.channelNodeTable(c), c.Nodes)},
		More:    []table{build(r.view, s.clientTable("clients", "Consumers", "No consumer is connected: messages wait."), clientsOf(c.AdminChannel))},
	}
	p.Figures = append(p.Figures, figure{"Messages", count(c.MessageCount)})
	if r.admin {
		target := action.Action{Topic: topic, Channel: name}
		if !t.Inactive {
			p.Acts = append(s.pauseActs(target, paused, len(c.Nodes)), s.link(target, action.Empty))
		}
		p.Acts = append(p.Acts, s.link(target, action.Delete))
	}
	return p
}

func (s *site) channelNodeTable(c *monitor.Channel) spec[*api.AdminChannel] {
	type N = *api.AdminChannel
	columns := []column[N]{
		{key: "node", title: "Node", compare: by(func(n N) string { return n.Hostname }), cell: func(n N) cell {
			c := s.host(n.Hostname, n.Node)
			if n.Paused {
				c.Labels = append(c.Labels, label{Text: "paused", Kind: "warn"})
			}
			return c
		}},
		{key: "depth", title: "Depth", num: true, compare: by(func(n N) int64 { return n.Depth }), cell: func(n N) cell {
			return depth(n.Depth, n.MemoryDepth, n.BackendDepth)
		}},
		number("inflight", "In flight", func(n N) int64 { return n.InFlightCount }),
		number("deferred", "Deferred", func(n N) int64 { return n.DeferredCount }),
		number("requeued", "Requeued", func(n N) int64 { return int64(n.RequeueCount) }),
		number("timedout", "Timed out", func(n N) int64 { return int64(n.TimeoutCount) }),
		number("messages", "Messages", func(n N) int64 { return int64(n.MessageCount) }),
		number("consumers", "Consumers", func(n N) int64 { return int64(n.ClientCount) }),
	}
	total := []cell{
		{Text: "Total"}, depth(c.Depth, c.MemoryDepth, c.BackendDepth), {Text: count(c.InFlightCount)}, {Text: count(c.DeferredCount)},
		{Text: count(c.RequeueCount)}, {Text: count(c.TimeoutCount)}, {Text: count(c.MessageCount)}, {Text: count(c.ClientCount)},
	}
	if knowsPlaces(c.AdminChannel) {
		columns = append(columns, column[N]{title: "Delivery", hint: "Share of the messages sent within the zone, within the region, and elsewhere", low: true, cell: delivery})
		total = append(total, delivery(c.AdminChannel))
	}
	columns = append(columns, column[N]{title: "Latency", hint: "From publish to FIN", low: true, cell: func(n N) cell { return latency(n.Latency) }})
	total = append(total, latency(c.Latency))
	return spec[N]{
		id: "", title: "Nodes with this channel", order: "node", columns: columns,
		caption: "One row for each nsqd",
		empty:   "No node has this channel.",
		key:     func(n N) string { return n.Node },
		matches: func(n N, text string) bool { return strings.Contains(strings.ToLower(n.Node+" "+n.Hostname), text) },
		total:   func() []cell { return total },
	}
}

// knowsPlaces says whether nodes or consumers have been told where they are; else all messages seem to
// go elsewhere.
func knowsPlaces(c *api.AdminChannel) bool {
	told := func(client *api.AdminClient) bool {
		return client != nil && client.NodeRegion+client.NodeZone+client.TopologyRegion+client.TopologyZone != ""
	}
	return c.ZoneLocalMsgCount > 0 || c.RegionLocalMsgCount > 0 || slices.ContainsFunc(c.Clients, told)
}

// delivery shows how far messages had to travel, where the node counts that.
func delivery(c *api.AdminChannel) cell {
	all := float64(c.ZoneLocalMsgCount) + float64(c.RegionLocalMsgCount) + float64(c.GlobalMsgCount)
	if all == 0 {
		return cell{Text: none}
	}
	s := &share{
		Zone:   100 * float64(c.ZoneLocalMsgCount) / all,
		Region: 100 * float64(c.RegionLocalMsgCount) / all,
		Global: 100 * float64(c.GlobalMsgCount) / all,
	}
	s.Text = "zone " + rate(s.Zone) + "%, region " + rate(s.Region) + "%, elsewhere " + rate(s.Global) + "%"
	return cell{Share: s, Sub: s.Text}
}

// subscription is a consumer with what it is subscribed to.
type subscription struct {
	*api.AdminClient
	topic, channel string
}

func clientsOf(c *api.AdminChannel) []subscription {
	var all []subscription
	for _, client := range c.Clients {
		if client != nil {
			all = append(all, subscription{client, c.TopicName, c.ChannelName})
		}
	}
	return all
}

// key tells consumers apart: a connection has one remote address, but all have the same on unix sockets.
func (s subscription) key() string {
	return strings.Join([]string{s.Node, s.RemoteAddress, s.ClientID, s.topic, s.channel}, " ")
}

func (s *site) clientTable(id, title, empty string) spec[subscription] {
	type C = subscription
	return spec[C]{
		id: id, title: title, order: "client", empty: empty,
		caption: "One row for each connection",
		key:     C.key,
		matches: func(c C, text string) bool {
			return strings.Contains(strings.ToLower(strings.Join([]string{c.Hostname, c.ClientID, c.RemoteAddress, c.UserAgent, c.Node, c.topic, c.channel}, " ")), text)
		},
		columns: []column[C]{
			{key: "client", title: "Client", compare: by(func(c C) string { return c.Hostname }), cell: func(c C) cell {
				cell := cell{Text: c.Hostname, Sub: c.RemoteAddress, Labels: clientLabels(c)}
				if cell.Text == "" {
					cell.Text = c.RemoteAddress
				}
				if c.ClientID != "" && c.ClientID != c.Hostname {
					cell.Text += " (" + c.ClientID + ")"
				}
				return cell
			}},
			{key: "node", title: "Node", compare: by(func(c C) string { return c.Node }), cell: func(c C) cell {
				return cell{Text: c.Node, Href: s.links.node(c.Node)}
			}},
			number("inflight", "In flight", func(c C) int64 { return c.InFlightCount }),
			{key: "ready", title: "RDY", hint: "How many messages the consumer is ready for at a time", num: true, compare: by(func(c C) int64 { return c.ReadyCount }), cell: func(c C) cell {
				out := cell{Text: count(c.ReadyCount)}
				if c.ReadyCount == 0 {
					out.Labels = []label{{Text: "not ready", Kind: "warn"}}
				}
				return out
			}},
			number("finished", "Finished", func(c C) int64 { return int64(c.FinishCount) }),
			number("requeued", "Requeued", func(c C) int64 { return int64(c.RequeueCount) }),
			number("messages", "Messages", func(c C) int64 { return int64(c.MessageCount) }),
			{key: "connected", title: "Connected", num: true, compare: by(func(c C) int64 { return c.Connected }), cell: func(c C) cell {
				return cell{Text: span(time.Duration(c.Connected).Truncate(time.Second))}
			}},
			{key: "agent", title: "User agent", low: true, compare: by(func(c C) string { return c.UserAgent }), cell: func(c C) cell { return cell{Text: c.UserAgent} }},
		},
	}
}

// clientLabels are the attributes of a connection.
func clientLabels(c subscription) []label {
	var labels []label
	add := func(is bool, l label) {
		if is {
			labels = append(labels, l)
		}
	}
	add(c.SampleRate > 0, label{Text: "sampled " + count(c.SampleRate) + "%"})
	add(c.TLS, label{Text: "TLS", Hint: strings.Join(strings.Fields(c.TLSVersion+" "+c.TLSCipherSuite+" "+c.TLSProtocol), " ")})
	add(c.Deflate, label{Text: "deflate"})
	add(c.Snappy, label{Text: "snappy"})
	add(c.Authed, label{Text: "user " + c.AuthIdentity, Href: webAddress(c.AuthIdentityURL)})
	place := strings.Trim(c.TopologyRegion+"/"+c.TopologyZone, "/")
	sameRegion := c.TopologyRegion != "" && c.TopologyRegion == c.NodeRegion
	switch {
	case place == "":
	case sameRegion && c.TopologyZone != "" && c.TopologyZone == c.NodeZone:
		add(true, label{Text: place + ", same zone", Kind: "good"})
	case sameRegion:
		add(true, label{Text: place + ", same region"})
	default:
		add(true, label{Text: place})
	}
	return labels
}

// webAddress is an address that may be linked to, or nothing: the text is a client's.
func webAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}
