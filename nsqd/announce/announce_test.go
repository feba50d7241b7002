package announce

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/lookup"
)

// What exists at the start is told at once, what changes is told when it does, in the lines that
// nsqlookupd has always seen, and a PING comes every 15 s.
func TestConversation(t *testing.T) {
	inWorld(t, 1, []string{"t", "t c2", "t c1", "u"}, func(t *testing.T, w *world) {
		w.hears("a", "connected", "IDENTIFY", "REGISTER t c1", "REGISTER t c2", "REGISTER u")
		w.logs("INFO: LOOKUP(a): adding peer")
		w.logs("INFO: LOOKUP connecting to a")
		w.logs("INFO: LOOKUPD(a): peer info {BroadcastAddress:lookup1 Hostname:h HTTPPort:4161 TCPPort:4160 Version:1.3.0}")

		w.exist("t", "t c2", "t c1", "u", "u c", "v#ephemeral")
		after(gather)
		w.hears("a", "REGISTER u c", "REGISTER v#ephemeral")
		w.logs("INFO: LOOKUPD(a): channel REGISTER u c")
		w.logs("INFO: LOOKUPD(a): topic REGISTER v#ephemeral")

		w.exist("t", "t c2", "v#ephemeral")
		after(gather)
		w.hears("a", "UNREGISTER t c1", "UNREGISTER u c", "UNREGISTER u")
		w.logs("INFO: LOOKUPD(a): topic UNREGISTER u")

		w.Changed()
		after(gather)
		w.hears("a")
		after(15*time.Second - 3*gather)
		w.hears("a", "PING")
		w.logs("DEBUG: LOOKUPD(a): sending heartbeat")
		after(30 * time.Second)
		w.hears("a", "PING", "PING")
		w.end()
		w.hears("a")
		w.logs("INFO: LOOKUP: closing")
	})
}

// A thousand creations in a row are few differences, not a thousand, and nothing is missing.
func TestPokesCoalesce(t *testing.T) {
	inWorld(t, 1, nil, func(t *testing.T, w *world) {
		w.hears("a", "connected", "IDENTIFY")
		var names, want []string
		for i := range 1000 {
			names = append(names, fmt.Sprintf("t%03d", i))
			want = append(want, fmt.Sprintf("REGISTER t%03d", i))
			w.exist(names...)
		}
		after(time.Second)
		w.hears("a", want...)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.looks > 3 {
			t.Errorf("Source was called %d times", w.looks)
		}
	})
}

// A topic that was deleted and created again between two looks is unregistered and registered, since
// a nsqlookupd may have been told to forget the old one.
func TestRecreated(t *testing.T) {
	inWorld(t, 1, []string{"t", "t c", "u"}, func(t *testing.T, w *world) {
		w.hears("a", "connected", "IDENTIFY", "REGISTER t c", "REGISTER u")
		w.existAs(2, "t", "t c", "u")
		after(gather)
		w.hears("a", "UNREGISTER t c", "UNREGISTER t", "UNREGISTER u", "REGISTER t c", "REGISTER u")
	})
}

// A nsqlookupd that restarts is told everything again, within a second of its return.
func TestRestartedLookupd(t *testing.T) {
	inWorld(t, 1, []string{"t", "t c"}, func(t *testing.T, w *world) {
		after(time.Minute)
		f := w.fakes["a"]
		f.die()
		after(700 * time.Millisecond)
		w.logs("ERROR: LOOKUPD(a): connection - read answer length: EOF")
		w.logs("ERROR: LOOKUPD(a): connect - connection refused")
		f.heard()
		f.change(func(f *fake) { f.away = false })
		after(time.Second)
		w.hears("a", "connected", "IDENTIFY", "REGISTER t c")
	})
}

// A nsqlookupd that stays away is tried less and less often, but again at once when there is news and
// the last try is not too recent; after it was back for a while the pauses begin anew.
func TestBackoff(t *testing.T) {
	inWorld(t, 1, nil, func(t *testing.T, w *world) {
		f := w.fakes["a"]
		after(time.Minute)
		if tries := len(f.heard()); tries < 8 || tries > 25 {
			t.Errorf("%d tries in the first minute", tries)
		}
		after(5 * time.Minute)
		if tries := len(f.heard()); tries < 20 || tries > 41 {
			t.Errorf("%d tries in five minutes", tries)
		}
		for range 1000 {
			w.Changed()
			after(10 * time.Millisecond)
		}
		if tries := len(f.heard()); tries < 9 || tries > 11 {
			t.Errorf("%d tries in ten seconds full of news", tries)
		}
		f.change(func(f *fake) { f.away = false })
		after(time.Minute)
		f.die()
		f.heard()
		after(200 * time.Millisecond)
		if tries := len(f.heard()); tries == 0 {
			t.Error("the pauses did not begin anew")
		}
	}, func(a *fake) { a.away = true })
}

// A nsqlookupd that hangs up on us again and again is not hammered.
func TestPeerThatHangsUp(t *testing.T) {
	behaviours := map[string]func(line string) string{
		"register": func(line string) string {
			if line == "REGISTER t" {
				return "E_INVALID client must IDENTIFY"
			}
			return introduction
		},
		"identify": func(string) string { return "E_INVALID" },
		"nonsense": func(string) string { return "OK" },
	}
	logged := map[string]string{
		"register": "ERROR: LOOKUPD(a): REGISTER t - E_INVALID client must IDENTIFY",
		"identify": "INFO: LOOKUPD(a): lookupd returned E_INVALID",
		"nonsense": "ERROR: LOOKUPD(a): parsing response - OK",
	}
	for name, answer := range behaviours {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, []string{"t"}, func(t *testing.T, w *world) {
				f := w.fakes["a"]
				after(time.Minute)
				tries := 0
				for _, line := range f.heard() {
					if line == "connected" {
						tries++
					}
				}
				if tries < 5 || tries > 25 {
					t.Errorf("%d connections in a minute", tries)
				}
				w.logs(logged[name])
				f.change(func(f *fake) { f.answer = nil })
				after(16 * time.Second)
				if lines := f.heard(); !slices.Contains(lines, "REGISTER t") {
					t.Errorf("not registered once the peer behaves: %q", lines)
				}
			}, func(a *fake) { a.answer = answer })
		})
	}
}

// An error in answer to PING or UNREGISTER costs the connection, and everything is told anew.
func TestErrorAnswersReopenTheConnection(t *testing.T) {
	for _, refused := range []string{"PING", "UNREGISTER u"} {
		t.Run(refused, func(t *testing.T) {
			inWorld(t, 1, []string{"t", "u"}, func(t *testing.T, w *world) {
				w.hears("a", "connected", "IDENTIFY", "REGISTER t", "REGISTER u")
				f := w.fakes["a"]
				f.change(func(f *fake) {
					f.answer = func(line string) string {
						if line == refused {
							f.answer = nil
							return "E_INVALID no"
						}
						return lookup.OK
					}
				})
				after(2 * time.Second)
				w.exist("t")
				after(14 * time.Second)
				lines := f.heard()
				i := slices.Index(lines, refused)
				want := []string{refused, "connected", "IDENTIFY", "REGISTER t"}
				if i < 0 || len(lines) < i+len(want) || cmp.Diff(want, lines[i:i+len(want)]) != "" {
					t.Errorf("the peer was told %q", lines)
				}
				w.logs("ERROR: LOOKUPD(a): " + refused + " - E_INVALID no")
			})
		})
	}
}

// A nsqlookupd that freezes delays neither the others nor the one who pokes.
func TestFrozenPeerDelaysNobody(t *testing.T) {
	inWorld(t, 2, nil, func(t *testing.T, w *world) {
		w.hears("b", "connected", "IDENTIFY")
		w.fakes["a"].change(func(f *fake) { f.frozen = true })
		for i := range 20 {
			start := time.Now()
			w.exist(fmt.Sprint("t", i))
			if took := time.Since(start); took != 0 {
				t.Fatalf("Changed took %s", took)
			}
			after(2 * gather)
			if lines := w.fakes["b"].heard(); !slices.Contains(lines, fmt.Sprint("REGISTER t", i)) {
				t.Fatalf("b was told %q", lines)
			}
			after(time.Second)
		}
		w.logs("ERROR: LOOKUPD(a): REGISTER t0 - no answer within 1s")
		w.fakes["a"].heard()
		w.fakes["a"].change(func(f *fake) { f.frozen = false })
		after(16 * time.Second)
		if lines := w.fakes["a"].heard(); !slices.Contains(lines, "REGISTER t19") {
			t.Errorf("a was told %q after it woke up", lines)
		}
	})
}

// A hostile length ends the connection and nothing else.
func TestHostileLengths(t *testing.T) {
	for text, length := range map[string][]byte{
		"response body size (-1) is negative":                             {0xff, 0xff, 0xff, 0xff},
		"response body size (2147483647) is greater than limit (5242880)": {0x7f, 0xff, 0xff, 0xff},
	} {
		inWorld(t, 1, nil, func(t *testing.T, w *world) {
			after(time.Second)
			w.logs("ERROR: LOOKUPD(a): IDENTIFY - " + text)
			w.fakes["a"].change(func(f *fake) { f.raw = nil })
			after(5 * time.Second)
			w.logs("INFO: LOOKUPD(a): peer info {BroadcastAddress:lookup1 Hostname:h HTTPPort:4161 TCPPort:4160 Version:1.3.0}")
		}, func(a *fake) { a.raw = length })
	}
}

// A peer without a broadcast address is complained about and served all the same.
func TestNoBroadcastAddress(t *testing.T) {
	inWorld(t, 1, []string{"t"}, func(t *testing.T, w *world) {
		w.hears("a", "connected", "IDENTIFY", "REGISTER t")
		w.logs("ERROR: LOOKUPD(a): no broadcast address")
	}, func(a *fake) { a.raw = lookup.AppendFrame(nil, `{"tcp_port":1}`) })
}

// The list of nsqlookupds can change while it runs: who stays keeps the connection.
func TestSetAddresses(t *testing.T) {
	inWorld(t, 2, []string{"t"}, func(t *testing.T, w *world) {
		after(time.Second)
		w.fakes["a"].heard()
		w.fakes["b"].heard()
		w.SetAddresses([]string{"b", "c", "c", "b"})
		if diff := cmp.Diff([]string{"b", "c"}, w.Addresses()); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		w.hears("c", "connected", "IDENTIFY", "REGISTER t")
		w.logs("INFO: LOOKUP(a): removing peer")
		w.logs("INFO: LOOKUP(c): adding peer")
		w.exist("t", "u")
		after(gather)
		w.hears("a")
		w.hears("b", "REGISTER u")
		w.hears("c", "REGISTER u")
		w.SetAddresses(nil)
		after(time.Minute)
		for _, f := range w.fakes {
			f.heard()
		}
		w.SetAddresses([]string{"a"})
		w.hears("a", "connected", "IDENTIFY", "REGISTER t", "REGISTER u")
		w.hears("b")
	})
}

// Run ends at once, whatever its peers are doing.
func TestStop(t *testing.T) {
	inWorld(t, 3, nil, func(t *testing.T, w *world) {
		w.fakes["a"].die()
		after(time.Minute)
		w.fakes["b"].change(func(f *fake) { f.frozen = true })
		w.exist("t")
		after(gather)
		start := time.Now()
		w.end()
		if took := time.Since(start); took != 0 {
			t.Errorf("stopping took %s", took)
		}
	})
}
