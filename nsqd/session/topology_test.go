package session

import (
	"fmt"
	"testing"

	"nsq/nsqd/broker"
)

// place turns topology awareness on for a node in this region and zone.
func place(region, zone string) func(*setup) {
	return func(s *setup) {
		s.limits.TopologyAware, s.limits.TopologyRegion, s.limits.TopologyZone = true, region, zone
	}
}

// subscribeIn subscribes a client that says in IDENTIFY where it is.
func (n *node) subscribeIn(region, zone string, ready int) *conn {
	n.t.Helper()
	c := n.dial(fmt.Sprintf(`"topology_region":%q`, region), fmt.Sprintf(`"topology_zone":%q`, zone))
	c.send(fmt.Sprintf("SUB t ch\nRDY %d\n", ready))
	c.wantOK(1)
	settled()
	return c
}

// wantTaken says how many messages have been delivered so far, by how near the clients are.
func (n *node) wantTaken(zone, region, anywhere uint64) {
	n.t.Helper()
	settled()
	got := n.channel("t", "ch").FromMemory
	if got[broker.SameZone] != zone || got[broker.SameRegion] != region || got[broker.Anywhere] != anywhere {
		n.t.Errorf("%d taken in the zone, %d in the region, %d elsewhere; want %d, %d, %d",
			got[broker.SameZone], got[broker.SameRegion], got[broker.Anywhere], zone, region, anywhere)
	}
}

// publishOneByOne lets all clients be idle before each message.
func (n *node) publishOneByOne(count int) {
	for range count {
		n.publish("t", "x")
		settled()
	}
}

// A message goes to the nearest client that is idle, whatever the order in which they came; to those
// farther away when the near ones are gone or have enough.
func TestNearestConsumerFirst(t *testing.T) {
	places := [3][2]string{{"r", "z"}, {"r", "other"}, {"elsewhere", "far"}}
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				var clients [3]*conn // by distance
				for _, distance := range order {
					clients[distance] = n.subscribeIn(places[distance][0], places[distance][1], 30)
				}
				n.publishOneByOne(20)
				n.wantTaken(20, 0, 0)
				clients[0].send("RDY 0\n")
				settled()
				n.publishOneByOne(20)
				n.wantTaken(20, 20, 0)
				clients[1].raw.Close()
				settled() // its messages are back, and others take them
				n.wantTaken(20, 20, 20)
				clients[0].send("RDY 22\n") // room for two more
				settled()
				n.publishOneByOne(4)
				n.wantTaken(22, 20, 22)
				if stats := n.channel("t", "ch"); stats.Depth != 0 || stats.InFlightCount != 44 {
					t.Errorf("depth %d, %d in flight", stats.Depth, stats.InFlightCount)
				}
			}, place("r", "z"))
		})
	}
}

// How near a client is, by what node and client say.
func TestProximity(t *testing.T) {
	const zone, region, anywhere = "zone", "region", "anywhere"
	for _, test := range []struct {
		nodeRegion, nodeZone, region, zone, want string
	}{
		{"r", "z", "r", "z", zone},
		{"r", "z", "r", "y", region},
		{"r", "z", "r", "", region},
		{"r", "z", "s", "z", anywhere}, // zones of different regions have nothing in common
		{"r", "z", "", "z", anywhere},
		{"r", "z", "", "", anywhere},
		{"r", "", "r", "", region},
		{"r", "", "s", "", anywhere},
		{"", "z", "", "z", zone},
		{"", "z", "", "", anywhere},
		{"", "", "", "", anywhere}, // nothing is no place
		{"", "", "r", "z", anywhere},
	} {
		t.Run(fmt.Sprintf("%q in %q", [2]string{test.region, test.zone}, [2]string{test.nodeRegion, test.nodeZone}), func(t *testing.T) {
			with(t, overPipe, func(n *node) {
				c := n.subscribeIn(test.region, test.zone, 1)
				n.publish("t", "x")
				c.wantMessage(1, "x")
				count := map[string]uint64{test.want: 1}
				n.wantTaken(count[zone], count[region], count[anywhere])
			}, place(test.nodeRegion, test.nodeZone))
		})
	}
	t.Run("without IDENTIFY", func(t *testing.T) {
		with(t, overPipe, func(n *node) {
			c := n.subscribe("t", "ch", 1)
			n.publish("t", "x")
			c.wantMessage(1, "x")
			n.wantTaken(0, 0, 1)
		}, place("r", "z"))
	})
}

// Without the experiment all clients are equal, and the answer to IDENTIFY and the statistics tell
// the places all the same.
func TestTopologyOff(t *testing.T) {
	with(t, overPipe, func(n *node) {
		n.subscribeIn("r", "z", 100)
		n.subscribeIn("elsewhere", "far", 100)
		n.publishOneByOne(20)
		n.wantTaken(0, 0, 20)
		for _, client := range n.sessions.Clients() {
			if client.InFlightCount != 10 {
				t.Errorf("%d messages for a client in %q, want 10", client.InFlightCount, client.TopologyZone)
			}
		}
		if c := n.sessions.Clients()[0]; c.TopologyRegion+c.TopologyZone != "rz" && c.TopologyRegion+c.TopologyZone != "elsewherefar" {
			t.Errorf("a client is in %q, %q", c.TopologyRegion, c.TopologyZone)
		}
		c := n.dial()
		c.send(identify(`{"feature_negotiation":true,"topology_region":"x"}`))
		if _, answer := c.frame(); answer[len(answer)-len(`"topology_region":"r","topology_zone":"z"}`):] != `"topology_region":"r","topology_zone":"z"}` {
			t.Errorf("answer %s", answer)
		}
	}, func(s *setup) { s.limits.TopologyRegion, s.limits.TopologyZone = "r", "z" })
}
