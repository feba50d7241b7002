package web

import (
	"slices"
	"strings"

	"nsq/internal/api"
	"nsq/nsqadmin/action"
	"nsq/nsqadmin/monitor"
)

// confirmation is the form that asks before an action; it stands on a page of its own or in a dialog.
type confirmation struct {
	Action   string // address that the form is sent to
	Question string
	Effects  []string
	Fields   []field
	Type     string // what has to be typed; empty if nothing
	Verb     string
	Danger   bool
	Back     string
}

func (s *site) confirm(r request) page {
	if !r.admin {
		return forbidden()
	}
	query := r.view.query
	a := action.Action{Kind: action.Kind(r.PathValue("action")), Topic: query.Get("topic"), Channel: query.Get("channel"), Node: query.Get("node")}
	if a.Kind == action.Create {
		return page{Title: "Create", Create: s.creation(clip(a.Topic), clip(a.Channel))}
	}
	// The name that has to be typed is not known here, and what else is wrong matters more.
	c := s.confirmation(r, a)
	if p, ok := s.check(r, a, c.Type); !ok {
		return p
	}
	return s.asking(c)
}

func (s *site) asking(c *confirmation) page {
	return page{Title: c.Verb, Heading: "Please confirm", Confirm: c}
}

// confirmation says what an action would do, as far as the snapshot knows.
func (s *site) confirmation(r request, a action.Action) *confirmation {
	v := verbs[a.Kind]
	c := &confirmation{
		Action:   s.links.To("/actions/" + string(a.Kind)),
		Question: v.verb + " " + name(a) + "?",
		Verb:     v.verb, Danger: v.danger,
		Back: s.links.topic(a.Topic),
	}
	for _, f := range []field{{"topic", a.Topic}, {"channel", a.Channel}, {"node", a.Node}} {
		if f.Value != "" {
			c.Fields = append(c.Fields, f)
		}
	}
	t := r.snapshot.Topic(a.Topic)
	switch {
	case a.Kind == action.Tombstone:
		c.Back = s.links.node(a.Node)
		s.tombstoneEffects(r, a, c)
	case a.Channel != "":
		c.Back = s.links.channel(a.Topic, a.Channel)
		if t != nil {
			channelEffects(t.Channel(a.Channel), a.Kind, c)
		}
	case t != nil:
		topicEffects(t, a.Kind, c)
	}
	if len(c.Effects) == 0 {
		c.Effects = []string{"No daemon that answered knows it; what it holds is not known."}
	}
	return c
}

func topicEffects(t *monitor.Topic, kind action.Kind, c *confirmation) {
	where := " on " + many(len(t.Nodes), "node", "nodes")
	held := t.Totals.Depth + t.Totals.InFlight + t.Totals.Deferred
	switch kind {
	case action.Delete:
		c.Effects = []string{
			many(held, "message will be lost", "messages will be lost") + where + ".",
			channelsGo(t),
			many(t.Totals.Clients, "consumer", "consumers") + " will be disconnected from it.",
		}
		if held > 0 {
			c.Type = t.TopicName
		}
	case action.Empty:
		c.Effects = []string{
			many(t.Depth, "message that waits", "messages that wait") + " in the topic itself" + where + " will be lost.",
			"Messages in its channels stay.",
		}
	case action.Pause:
		c.Effects = []string{"Messages are kept in the topic" + where + " and no channel gets any, until it is unpaused."}
	case action.Unpause:
		c.Effects = []string{"Messages flow to its channels again" + where + "."}
	}
}

// channelsGo names the channels that go with a topic.
func channelsGo(t *monitor.Topic) string {
	if len(t.Channels) == 0 {
		return "It has no channels."
	}
	var names []string
	for _, c := range t.Channels[:min(len(t.Channels), maxLabels)] {
		names = append(names, c.ChannelName)
	}
	text := many(len(t.Channels), "channel goes with it: ", "channels go with it: ") + strings.Join(names, ", ")
	if rest := len(t.Channels) - maxLabels; rest > 0 {
		text += " and " + count(rest) + " more"
	}
	return text + "."
}

func channelEffects(ch *monitor.Channel, kind action.Kind, c *confirmation) {
	if ch == nil {
		return
	}
	where := " on " + many(len(ch.Nodes), "node", "nodes")
	held := ch.Depth + ch.InFlightCount + ch.DeferredCount
	switch kind {
	case action.Delete:
		c.Effects = []string{
			many(held, "message will be lost", "messages will be lost") + where + ".",
			many(ch.ClientCount, "consumer", "consumers") + " will be disconnected.",
		}
		if held > 0 {
			c.Type = ch.ChannelName
		}
	case action.Empty:
		c.Effects = []string{many(held, "message", "messages") + where + " will be lost: those that wait, in flight and deferred."}
	case action.Pause:
		c.Effects = []string{"Messages are kept in the channel" + where + " and no consumer gets any, until it is unpaused.", many(ch.ClientCount, "consumer is", "consumers are") + " connected."}
	case action.Unpause:
		c.Effects = []string{"Messages flow to its consumers again" + where + "."}
	}
}

func (s *site) tombstoneEffects(r request, a action.Action, c *confirmation) {
	n := r.snapshot.Node(a.Node)
	if n == nil {
		return
	}
	if !r.snapshot.Direct {
		c.Effects = append(c.Effects, "Look-ups of the topic no longer name this node, for the time that nsqlookupd is configured for (45 s unless changed).")
	}
	c.Effects = append(c.Effects, "The topic will be deleted on this node with all its channels.")
	i := slices.IndexFunc(n.Stats, func(t *api.AdminTopic) bool { return t.TopicName == a.Topic })
	if i < 0 {
		return
	}
	held := n.Stats[i].Depth
	for _, ch := range n.Stats[i].Channels {
		held += ch.Depth + ch.InFlightCount + ch.DeferredCount
	}
	c.Effects = append(c.Effects, many(held, "message will be lost", "messages will be lost")+" there.", "A producer that publishes to this node again creates the topic anew.")
	if held > 0 {
		c.Type = a.Topic
	}
}
