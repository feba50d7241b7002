package announce

import (
	"cmp"
	"slices"

	"nsq/internal/lookup"
)

// told is what a nsqlookupd knows of us, or what it should know: topics by name.
type told map[string]*toldTopic

type toldTopic struct {
	generation uint64
	channels   map[string]uint64 // generations by name
}

// tell arranges what exists. A channel implies its topic.
func tell(exists []lookup.Registration) told {
	all := told{}
	for _, r := range exists {
		topic := all[r.Topic]
		if topic == nil {
			topic = &toldTopic{channels: map[string]uint64{}}
			all[r.Topic] = topic
		}
		if r.Channel == "" {
			topic.generation = r.Generation
		} else {
			topic.channels[r.Channel] = r.Generation
		}
	}
	return all
}

// changesTo returns the commands that lead from what is known to what should be: first the removals,
// channels before their topic, then the additions. Registering a channel registers its topic, so a
// topic has a line of its own only if it has no channels.
func (have told) changesTo(want told) []lookup.Change {
	var removed, added []lookup.Change
	for name, old := range have {
		if now := want[name]; now == nil || now.generation != old.generation {
			removed = append(removed, removal(name, ""))
			for channel := range old.channels {
				removed = append(removed, removal(name, channel))
			}
			continue
		}
		for channel, generation := range old.channels {
			if now, ok := want[name].channels[channel]; !ok || now != generation {
				removed = append(removed, removal(name, channel))
			}
		}
	}
	for name, now := range want {
		old := have[name]
		if old != nil && old.generation != now.generation {
			old = nil
		}
		if old == nil && len(now.channels) == 0 {
			added = append(added, addition(name, ""))
		}
		for channel, generation := range now.channels {
			if old == nil || !old.has(channel, generation) {
				added = append(added, addition(name, channel))
			}
		}
	}
	slices.SortFunc(removed, channelsFirst)
	slices.SortFunc(added, channelsFirst)
	return append(removed, added...)
}

func (t *toldTopic) has(channel string, generation uint64) bool {
	known, ok := t.channels[channel]
	return ok && known == generation
}

func addition(topic, channel string) lookup.Change {
	return lookup.Change{Registration: lookup.Registration{Topic: topic, Channel: channel}}
}

func removal(topic, channel string) lookup.Change {
	change := addition(topic, channel)
	change.Remove = true
	return change
}

// channelsFirst orders by topic, then by channel, and a topic's own line after those of its channels.
func channelsFirst(a, b lookup.Change) int {
	if c := cmp.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	if (a.Channel == "") != (b.Channel == "") {
		return -cmp.Compare(a.Channel, b.Channel)
	}
	return cmp.Compare(a.Channel, b.Channel)
}
