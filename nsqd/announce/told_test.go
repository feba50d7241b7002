package announce

import (
	"testing"

	"pgregory.net/rapid"

	"nsq/internal/lookup"
)

// registrations are few names, so that many of them meet.
func registrations() *rapid.Generator[[]lookup.Registration] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lookup.Registration {
		return lookup.Registration{
			Topic:      rapid.SampledFrom([]string{"t", "u", "v"}).Draw(t, "topic"),
			Channel:    rapid.SampledFrom([]string{"", "c", "d"}).Draw(t, "channel"),
			Generation: rapid.Uint64Range(1, 2).Draw(t, "generation"),
		}
	}), 0, 12)
}

// Whatever existed and exists, the commands lead a nsqlookupd from the one to the other, each of them
// changes something, and nothing needs a second round.
func TestChangesLeadThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := tell(registrations().Draw(t, "have")), tell(registrations().Draw(t, "want"))
		known := lookupd{}
		known.follow(t, told{}.changesTo(have))
		known.follow(t, have.changesTo(want))
		for name, topic := range want {
			channels, ok := known[name]
			if !ok || len(channels) != len(topic.channels) {
				t.Fatalf("topic %s: %v, want %v", name, channels, topic.channels)
			}
			for channel := range topic.channels {
				if !channels[channel] {
					t.Fatalf("channel %s of %s is missing", channel, name)
				}
			}
		}
		if len(known) != len(want) {
			t.Fatalf("topics %v, want %v", known, want)
		}
		if again := want.changesTo(want); len(again) != 0 {
			t.Fatalf("changes to the same: %v", again)
		}
	})
}

// lookupd does what a nsqlookupd does with our commands.
type lookupd map[string]map[string]bool

func (l lookupd) follow(t *rapid.T, changes []lookup.Change) {
	for _, c := range changes {
		channels, known := l[c.Topic]
		switch {
		case c.Remove && c.Channel == "":
			if !known || len(channels) > 0 {
				t.Fatalf("%s with channels %v, known %v", c, channels, known)
			}
			delete(l, c.Topic)
		case c.Remove:
			if !channels[c.Channel] {
				t.Fatalf("%s although it is not registered", c)
			}
			delete(channels, c.Channel)
		default:
			if !known {
				channels = map[string]bool{}
				l[c.Topic] = channels
			} else if c.Channel == "" || channels[c.Channel] {
				t.Fatalf("%s although it is registered", c)
			}
			if c.Channel != "" {
				channels[c.Channel] = true
			}
		}
	}
}
