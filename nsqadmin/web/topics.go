package web

import (
	"math"
	"net/http"
	"strings"
	"time"

	"nsq/internal/api"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/monitor"
)

func (s *site) topics(r request) page {
	p := page{Title: "Topics", Live: true}
	p.Tables = []table{build(r.view, s.topicTable(""), r.snapshot.Topics)}
	return p
}

// topicTable is a list of topics over all nodes.
func (s *site) topicTable(id string) spec[*monitor.Topic] {
	type T = *monitor.Topic
	return spec[T]{
		id: id, title: "Topics",
		caption: "Depth, in flight and deferred count the messages of a topic and of all its channels",
		empty:   "There are no topics.",
		order:   "topic",
		key:     func(t T) string { return t.TopicName },
		matches: func(t T, text string) bool { return strings.Contains(strings.ToLower(t.TopicName), text) },
		columns: []column[T]{
			{key: "topic", title: "Topic", compare: by(func(t T) string { return t.TopicName }), cell: func(t T) cell {
				return cell{Text: t.TopicName, Href: s.links.topic(t.TopicName), Labels: topicLabels(t)}
			}},
			number("depth", "Depth", func(t T) int64 { return t.Totals.Depth }),
			number("inflight", "In flight", func(t T) int64 { return t.Totals.InFlight }),
			number("deferred", "Deferred", func(t T) int64 { return t.Totals.Deferred }).narrow(),
			perSecond("publish", "Published/s", func(t T) float64 { return known(t.Totals.Known, t.Totals.Publish) }),
			perSecond("deliver", "Delivered/s", func(t T) float64 { return known(t.Totals.Known, t.Totals.Deliver) }),
			number("messages", "Messages", func(t T) int64 { return int64(t.MessageCount) }).narrow(),
			number("channels", "Channels", func(t T) int64 { return int64(len(t.Channels)) }),
			number("consumers", "Consumers", func(t T) int64 { return t.Totals.Clients }),
		},
	}
}

// number is a column of whole numbers.
func number[T any](key, title string, value func(T) int64) column[T] {
	return column[T]{key: key, title: title, num: true, compare: by(value), cell: func(t T) cell { return cell{Text: count(value(t))} }}
}

// perSecond is a column of rates; NaN is no figure, and smaller than any.
func perSecond[T any](key, title string, value func(T) float64) column[T] {
	return column[T]{key: key, title: title, num: true, compare: by(value), cell: func(t T) cell { return cell{Text: rate(value(t))} }}
}

// narrow is the column, left out on narrow screens.
func (c column[T]) narrow() column[T] {
	c.low = true
	return c
}

// known is a rate, or NaN before there is one.
func known(is bool, perSecond float64) float64 {
	if !is {
		return math.NaN()
	}
	return perSecond
}

func topicLabels(t *monitor.Topic) []label {
	var labels []label
	if t.Inactive {
		labels = append(labels, label{Text: "no producer", Kind: "warn", Hint: "Only nsqlookupd knows this topic: no node has it"})
	} else if len(t.Channels) == 0 {
		labels = append(labels, label{Text: "no channel", Kind: "warn", Hint: "Messages stay in the topic until it has a channel"})
	}
	return append(labels, pausedLabel(pausedTopics(t.Nodes), len(t.Nodes))...)
}

func pausedTopics(parts []*api.AdminTopic) (n int) {
	for _, part := range parts {
		if part.Paused {
			n++
		}
	}
	return n
}

func pausedChannels(parts []*api.AdminChannel) (n int) {
	for _, part := range parts {
		if part.Paused {
			n++
		}
	}
	return n
}

// pausedLabel tells a pause on some of the nodes from one on all.
func pausedLabel(paused, of int) []label {
	switch {
	case paused == 0:
		return nil
	case paused < of:
		return []label{{Text: "paused on " + count(paused) + " of " + count(of), Kind: "warn"}}
	}
	return []label{{Text: "paused", Kind: "warn"}}
}

func (s *site) topic(r request) page {
	name := r.PathValue("topic")
	crumbs := []choice{{Text: "Topics", Href: s.links.To("/topics")}, {Text: name, Current: true}}
	t := r.snapshot.Topic(name)
	if t == nil {
		return s.unknown(r, "Topic", name, crumbs)
	}
	p := page{Title: name, Live: true, Crumbs: crumbs, Labels: topicLabels(t), Figures: figures(t.Totals), History: s.history(r, monitor.Key{Topic: name}), Outside: s.topicGraphs(name)}
	if t.Inactive {
		p.Notices = append(p.Notices, notice{Kind: "warn", Text: "No node has this topic; nsqlookupd alone knows it. It comes to life with the first message published to it."})
	}
	if r.admin {
		p.Acts = s.topicActs(t)
	}
	p.Tables = []table{build(r.view, s.channelTable(), t.Channels)}
	p.More = []table{build(r.view, s.topicNodeTable(r, t), t.Nodes)}
	return p
}

// unknown is the page of a thing that the snapshot does not have.
func (s *site) unknown(r request, kind, name string, crumbs []choice) page {
	p := missing(kind+" "+name, kind+" “"+name+"” is not known to any daemon that answered.")
	p.Status = http.StatusOK        // the page is there: its address has always been answered so
	p.Crumbs, p.Live = crumbs, true // it may come
	if r.snapshot.Seq == 0 {
		p.Notices = nil // nothing is known yet: frame says so
		p.Status = 0
	}
	return p
}

// figures are the numbers of a topic, a channel or a node at a glance.
func figures(t monitor.Totals) []figure {
	return []figure{
		{"Depth", count(t.Depth)},
		{"In flight", count(t.InFlight)},
		{"Deferred", count(t.Deferred)},
		{"Published/s", rate(known(t.Known, t.Publish))},
		{"Delivered/s", rate(known(t.Known, t.Deliver))},
		{"Requeued/s", rate(known(t.Known, t.Requeue))},
		{"Timed out/s", rate(known(t.Known, t.Timeout))},
		{"Consumers", count(t.Clients)},
	}
}

func (s *site) topicActs(t *monitor.Topic) []act {
	target := action.Action{Topic: t.TopicName}
	if t.Inactive {
		return []act{s.link(target, action.Delete)}
	}
	acts := s.pauseActs(target, pausedTopics(t.Nodes), len(t.Nodes))
	return append(acts, s.link(target, action.Empty), s.link(target, action.Delete))
}

// pauseActs offers what would change something: both where some nodes are paused and some not.
func (s *site) pauseActs(target action.Action, paused, of int) (acts []act) {
	if paused < of {
		acts = append(acts, s.link(target, action.Pause))
	}
	if paused > 0 {
		acts = append(acts, s.link(target, action.Unpause))
	}
	return acts
}

func (s *site) channelTable() spec[*monitor.Channel] {
	type C = *monitor.Channel
	return spec[C]{
		id: "channels", title: "Channels", order: "channel",
		caption: "Each over all nodes",
		empty:   "There are no channels: messages stay in the topic until it has one.",
		key:     func(c C) string { return c.ChannelName },
		matches: func(c C, text string) bool { return strings.Contains(strings.ToLower(c.ChannelName), text) },
		columns: []column[C]{
			{key: "channel", title: "Channel", compare: by(func(c C) string { return c.ChannelName }), cell: func(c C) cell {
				return cell{Text: c.ChannelName, Href: s.links.channel(c.TopicName, c.ChannelName), Labels: pausedLabel(pausedChannels(c.Nodes), len(c.Nodes))}
			}},
			{key: "depth", title: "Depth", num: true, compare: by(func(c C) int64 { return c.Depth }), cell: func(c C) cell {
				return depth(c.Depth, c.MemoryDepth, c.BackendDepth)
			}},
			number("inflight", "In flight", func(c C) int64 { return c.InFlightCount }),
			number("deferred", "Deferred", func(c C) int64 { return c.DeferredCount }),
			perSecond("deliver", "Delivered/s", func(c C) float64 { return known(c.Totals.Known, c.Totals.Deliver) }),
			number("requeued", "Requeued", func(c C) int64 { return int64(c.RequeueCount) }).narrow(),
			number("timedout", "Timed out", func(c C) int64 { return int64(c.TimeoutCount) }).narrow(),
			number("messages", "Messages", func(c C) int64 { return int64(c.MessageCount) }).narrow(),
			number("consumers", "Consumers", func(c C) int64 { return int64(c.ClientCount) }),
			{title: "Latency", hint: "From publish to FIN, averaged over the nodes", low: true, cell: func(c C) cell { return latency(c.Latency) }},
		},
	}
}

// depth shows how many messages wait, and where.
func depth(all, memory, disk int64) cell {
	c := cell{Text: count(all)}
	if disk > 0 {
		c.Sub = count(memory) + " + " + count(disk) + " on disk"
	}
	return c
}

// latency lists the percentiles; the tooltip has the extremes.
func latency(l *api.AdminLatency) cell {
	if l == nil || len(l.Percentiles) == 0 || l.Count == 0 {
		return cell{Text: none}
	}
	var texts, hints []string
	for _, q := range l.Percentiles {
		if q == nil {
			continue
		}
		name := percentile(q.Quantile) + "\u00a0" // a line breaks between percentiles only
		texts = append(texts, name+span(time.Duration(q.Average)))
		hints = append(hints, name+"from "+span(time.Duration(q.Min))+" to "+span(time.Duration(q.Max)))
	}
	return cell{Text: strings.Join(texts, ", "), Hint: strings.Join(hints, ", ")}
}

// host names a node and links to its page.
func (s *site) host(hostname, address string) cell {
	c := cell{Text: address, Href: s.links.node(address)}
	if hostname != "" && !strings.HasPrefix(address, hostname+":") {
		c.Sub = hostname
	}
	return c
}

func (s *site) topicNodeTable(r request, t *monitor.Topic) spec[*api.AdminTopic] {
	type N = *api.AdminTopic
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
		number("messages", "Messages", func(n N) int64 { return int64(n.MessageCount) }),
		number("channels", "Channels", func(n N) int64 { return int64(len(n.Channels)) }),
		{title: "Latency", hint: "From publish to FIN", low: true, cell: func(n N) cell { return latency(n.Latency) }},
	}
	total := []cell{{Text: "Total"}, depth(t.Depth, t.MemoryDepth, t.BackendDepth), {Text: count(t.MessageCount)}, {Text: count(len(t.Channels))}, latency(t.Latency)}
	if r.admin {
		columns = append(columns, column[N]{title: "Action", cell: func(n N) cell { return cell{Act: s.tombstoneAct(t.TopicName, n.Node)} }})
		total = append(total, cell{})
	}
	return spec[N]{
		id: "nodes", title: "Nodes with this topic", order: "node", columns: columns,
		caption: "Depth counts what waits in the topic itself, before its channels",
		empty:   "No node has this topic.",
		key:     func(n N) string { return n.Node },
		matches: func(n N, text string) bool { return strings.Contains(strings.ToLower(n.Node+" "+n.Hostname), text) },
		total:   func() []cell { return total },
	}
}
