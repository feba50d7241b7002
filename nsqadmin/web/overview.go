package web

import (
	"cmp"
	"slices"
	"strings"

	"nsq/nsqadmin/monitor"
)

// maxProblems bounds what the overview lists as unwell; busiest is how many topics it shows.
const (
	maxProblems = 30
	busiest     = 20
)

// problems is what is unwell, the worst first.
type problems struct {
	Title string
	List  []problem
	Rest  string
}

// problem is one thing that is unwell.
type problem struct {
	Key   string // what it is patched by
	Label label
	Name  string
	Href  string
	Text  string
}

func (s *site) overview(r request) page {
	p := page{Title: "Overview", Heading: "Cluster", Live: true, History: s.history(r, monitor.Key{})}
	snapshot := r.snapshot
	p.Figures = append([]figure{
		{"Topics", count(len(snapshot.Topics))},
		{"Nodes", count(len(snapshot.Nodes))},
	}, figures(snapshot.Totals)...)
	if snapshot.Seq > 0 {
		p.Problems = s.problems(snapshot)
	}
	top := s.topicTable("topics")
	top.title, top.order, top.matches = "Busiest topics", "depth", nil
	if len(snapshot.Topics) > busiest {
		top.caption = "The " + count(busiest) + " with the most messages waiting or coming in; “Topics” has all"
	}
	p.Tables = []table{build(r.view, top, busiestOf(snapshot.Topics))}
	return p
}

func busiestOf(topics []*monitor.Topic) []*monitor.Topic {
	sorted := slices.Clone(topics)
	slices.SortStableFunc(sorted, func(a, b *monitor.Topic) int {
		return cmp.Or(cmp.Compare(b.Totals.Depth, a.Totals.Depth), cmp.Compare(b.Totals.Publish, a.Totals.Publish))
	})
	return sorted[:min(len(sorted), busiest)]
}

func (s *site) problems(snapshot *monitor.Snapshot) *problems {
	all := s.daemonProblems(snapshot)
	var messages []problem
	for _, t := range snapshot.Topics {
		messages = append(messages, s.topicProblems(t)...)
	}
	slices.SortStableFunc(messages, func(a, b problem) int { return cmp.Compare(a.Label.Kind, b.Label.Kind) }) // "bad" before "warn"
	all = append(all, messages...)
	p := &problems{Title: "Nothing is unwell", List: all[:min(len(all), maxProblems)]}
	if len(all) > 0 {
		p.Title = many(len(all), "thing is unwell", "things are unwell")
	}
	if rest := len(all) - len(p.List); rest > 0 {
		p.Rest = "And " + count(rest) + " more."
	}
	return p
}

func (s *site) daemonProblems(snapshot *monitor.Snapshot) (all []problem) {
	for _, l := range snapshot.Lookupds {
		if l.Err != "" {
			all = append(all, problem{Key: "lookupd " + l.Address, Label: label{Text: "lookupd", Kind: "bad"}, Name: l.Address, Href: s.links.To("/lookup"), Text: "does not answer: " + clip(l.Err)})
		}
	}
	add := func(n *monitor.Node, kind, text string) {
		all = append(all, problem{Key: "node " + n.Address, Label: label{Text: "node", Kind: kind}, Name: n.Address, Href: s.links.node(n.Address), Text: text})
	}
	for _, n := range snapshot.Nodes {
		switch {
		case n.Err != "":
			add(n, "bad", "does not answer: "+clip(n.Err))
		case n.Health != "" && n.Health != "OK":
			add(n, "bad", "says: "+clip(n.Health))
		case n.OutOfDate:
			add(n, "warn", "runs version "+n.Version+", older than another node's")
		}
	}
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(a.Label.Kind, b.Label.Kind) })
	return all
}

// topicProblems are messages that wait for something that does not come by itself.
func (s *site) topicProblems(t *monitor.Topic) (all []problem) {
	if t.Inactive {
		return nil // the lookup page has these
	}
	if paused := pausedTopics(t.Nodes); paused > 0 && t.Depth > 0 {
		all = append(all, problem{Key: "topic " + t.TopicName, Label: label{Text: "topic", Kind: "warn"}, Name: t.TopicName, Href: s.links.topic(t.TopicName), Text: "is paused while " + wait(t.Depth)})
	} else if len(t.Channels) == 0 && t.Depth > 0 {
		all = append(all, problem{Key: "topic " + t.TopicName, Label: label{Text: "topic", Kind: "warn"}, Name: t.TopicName, Href: s.links.topic(t.TopicName), Text: "has no channel while " + wait(t.Depth)})
	}
	for _, c := range t.Channels {
		if kind, text := stuck(c); kind != "" {
			all = append(all, problem{
				Key: "channel " + t.TopicName + " " + c.ChannelName, Label: label{Text: "channel", Kind: kind},
				Name: t.TopicName + " / " + c.ChannelName, Href: s.links.channel(t.TopicName, c.ChannelName), Text: text,
			})
		}
	}
	return all
}

// stuck says what keeps the messages of a channel from being finished, and how bad that is.
func stuck(c *monitor.Channel) (kind, text string) {
	switch {
	case c.Depth > 0 && c.ClientCount == 0 && pausedChannels(c.Nodes) == 0:
		return "bad", "has no consumer while " + wait(c.Depth)
	case c.Depth > 0 && pausedChannels(c.Nodes) > 0:
		return "warn", "is paused while " + wait(c.Depth)
	case c.Totals.Known && c.Totals.Timeout > 0:
		return "bad", "has messages timing out: " + rate(c.Totals.Timeout) + " a second"
	case c.Depth > 0 && c.ClientCount > 0 && noneReady(c):
		return "bad", "has no consumer that is ready (RDY 0) while " + wait(c.Depth)
	case c.Totals.Known && c.Totals.Requeue > 1 && c.Totals.Requeue > c.Totals.Deliver/2:
		return "warn", "has most messages requeued: " + rate(c.Totals.Requeue) + " a second"
	}
	return "", ""
}

// noneReady says whether it is known that no consumer takes messages.
func noneReady(c *monitor.Channel) bool {
	for _, client := range c.Clients {
		if client != nil && client.ReadyCount > 0 {
			return false
		}
	}
	return len(c.Clients) > 0
}

func wait(depth int64) string { return many(depth, "message waits", "messages wait") }

func (s *site) lookup(r request) page {
	p := page{Title: "Lookup", Live: true}
	if r.admin {
		p.Create = s.creation("", "")
	}
	if r.snapshot.Direct {
		p.Notices = []notice{{Kind: "warn", Text: "No nsqlookupd is configured: nsqadmin asks the nodes themselves."}}
		return p
	}
	var idle []*monitor.Topic
	for _, t := range r.snapshot.Topics {
		if t.Inactive {
			idle = append(idle, t)
		}
	}
	p.Tables = []table{build(r.view, s.idleTable(r), idle)}
	p.More = []table{build(r.view, lookupdTable(), r.snapshot.Lookupds)}
	return p
}

func lookupdTable() spec[monitor.Lookupd] {
	type L = monitor.Lookupd
	return spec[L]{
		id: "lookupds", title: "nsqlookupd", caption: "As configured", empty: "There are none.",
		key: func(l L) string { return l.Address },
		columns: []column[L]{
			{title: "Address", cell: func(l L) cell { return cell{Text: l.Address} }},
			{title: "State", cell: func(l L) cell {
				if l.Err != "" {
					return cell{Labels: []label{{Text: "no answer", Kind: "bad"}}, Sub: clip(l.Err)}
				}
				return cell{Labels: []label{{Text: "answers", Kind: "good"}}}
			}},
		},
	}
}

func (s *site) idleTable(r request) spec[*monitor.Topic] {
	type T = *monitor.Topic
	columns := []column[T]{
		{key: "topic", title: "Topic", compare: by(func(t T) string { return t.TopicName }), cell: func(t T) cell {
			return cell{Text: t.TopicName, Href: s.links.topic(t.TopicName)}
		}},
		{title: "Channels", cell: func(t T) cell { return s.channelLabels(t) }},
	}
	if r.admin {
		columns = append(columns, column[T]{title: "Action", cell: func(t T) cell { return cell{Act: s.deleteAct(t.TopicName)} }})
	}
	return spec[T]{
		title: "Topics without a producer", order: "topic", columns: columns,
		caption: "nsqlookupd knows these, no node has them",
		empty:   "Every topic has a producer.",
		key:     func(t T) string { return t.TopicName },
		matches: func(t T, text string) bool { return strings.Contains(strings.ToLower(t.TopicName), text) },
	}
}

// maxLabels bounds the channels that stand in one cell.
const maxLabels = 20

func (s *site) channelLabels(t *monitor.Topic) cell {
	var c cell
	for _, channel := range t.Channels[:min(len(t.Channels), maxLabels)] {
		c.Labels = append(c.Labels, label{Text: channel.ChannelName, Href: s.links.channel(t.TopicName, channel.ChannelName)})
	}
	if rest := len(t.Channels) - maxLabels; rest > 0 {
		c.Sub = "and " + count(rest) + " more"
	}
	if len(t.Channels) == 0 {
		c.Text = none
	}
	return c
}

// counter is the one number of the counter page.
type counter struct{ Total, Rate string }

func (s *site) counter(r request) page {
	var total uint64
	for _, t := range r.snapshot.Topics {
		for _, c := range t.Channels {
			total += c.MessageCount
		}
	}
	t := r.snapshot.Totals
	return page{Title: "Counter", Live: true, Counter: &counter{count(total), rate(known(t.Known, t.Deliver))}}
}
