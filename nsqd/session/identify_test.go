package session

import (
	"strings"
	"testing"
	"time"

	"nsq/internal/protocol"
)

// What a client asks for is in effect, or refused with its value, in the order of the checks.
func TestNegotiation(t *testing.T) {
	with(t, overPipe, negotiations)
}

func negotiations(n *node) {
	for _, test := range []struct {
		asked string
		want  string // a part of the answer, or the error
	}{
		{`"heartbeat_interval":1000`, ""},
		{`"heartbeat_interval":60000`, ""},
		{`"heartbeat_interval":-1`, ""},
		{`"heartbeat_interval":999`, "E_BAD_BODY IDENTIFY heartbeat interval (999) is invalid"},
		{`"heartbeat_interval":60001`, "E_BAD_BODY IDENTIFY heartbeat interval (60001) is invalid"},
		{`"heartbeat_interval":-2`, "E_BAD_BODY IDENTIFY heartbeat interval (-2) is invalid"},
		{`"heartbeat_interval":9223372036854775807`, "E_BAD_BODY IDENTIFY heartbeat interval (9223372036854775807) is invalid"},
		{`"output_buffer_timeout":25`, `"output_buffer_timeout":25,`},
		{`"output_buffer_timeout":30000`, `"output_buffer_timeout":30000,`},
		{`"output_buffer_timeout":-1`, `"output_buffer_timeout":0,`},
		{`"output_buffer_timeout":0`, `"output_buffer_timeout":250,`},
		{`"output_buffer_timeout":24`, "E_BAD_BODY IDENTIFY output buffer timeout (24) is invalid"},
		{`"output_buffer_timeout":30001`, "E_BAD_BODY IDENTIFY output buffer timeout (30001) is invalid"},
		{`"output_buffer_size":64`, `"output_buffer_size":64,"output_buffer_timeout":250`},
		{`"output_buffer_size":65536`, `"output_buffer_size":65536,"output_buffer_timeout":250`},
		{`"output_buffer_size":-1`, `"output_buffer_size":1,"output_buffer_timeout":0`},
		{`"output_buffer_size":-1,"output_buffer_timeout":100`, `"output_buffer_size":1,"output_buffer_timeout":0`},
		{`"output_buffer_size":63`, "E_BAD_BODY IDENTIFY output buffer size (63) is invalid"},
		{`"output_buffer_size":65537`, "E_BAD_BODY IDENTIFY output buffer size (65537) is invalid"},
		{`"sample_rate":99`, `"sample_rate":99,`},
		{`"sample_rate":100`, "E_BAD_BODY IDENTIFY sample rate (100) is invalid"},
		{`"sample_rate":-1`, "E_BAD_BODY IDENTIFY sample rate (-1) is invalid"},
		{`"msg_timeout":1000`, `"msg_timeout":1000,`},
		{`"msg_timeout":900000`, `"msg_timeout":900000,`},
		{`"msg_timeout":null`, `"msg_timeout":60000,`},
		{`"msg_timeout":999`, "E_BAD_BODY IDENTIFY msg timeout (999) is invalid"},
		{`"msg_timeout":-1`, "E_BAD_BODY IDENTIFY msg timeout (-1) is invalid"},
		{`"msg_timeout":900001`, "E_BAD_BODY IDENTIFY msg timeout (900001) is invalid"},
		{`"deflate_level":3`, `"deflate":false,"deflate_level":6,`}, // not granted, so not in effect
		{`"deflate":true,"deflate_level":3`, `"deflate":true,"deflate_level":3,`},
		{`"deflate":true,"deflate_level":100`, `"deflate":true,"deflate_level":6,`},
		{`"deflate":true,"deflate_level":-5`, `"deflate":true,"deflate_level":6,`},
		{`"MSG_TIMEOUT":2000,"short_id":"s","long_id":"l"`, `"msg_timeout":2000,`},
		{`"msg_timeout":1,"sample_rate":100,"output_buffer_size":1,"output_buffer_timeout":1,"heartbeat_interval":1`, "E_BAD_BODY IDENTIFY heartbeat interval (1) is invalid"},
		{`"msg_timeout":1,"sample_rate":100,"output_buffer_size":1,"output_buffer_timeout":1`, "E_BAD_BODY IDENTIFY output buffer timeout (1) is invalid"},
		{`"msg_timeout":1,"sample_rate":100,"output_buffer_size":1`, "E_BAD_BODY IDENTIFY output buffer size (1) is invalid"},
		{`"msg_timeout":1,"sample_rate":100`, "E_BAD_BODY IDENTIFY sample rate (100) is invalid"},
		{`"snappy":true,"deflate":true,"msg_timeout":1`, "E_BAD_BODY IDENTIFY msg timeout (1) is invalid"},
		{`"sample_rate":1.0`, "E_BAD_BODY IDENTIFY failed to decode JSON body"},
		{`"sample_rate":"1"`, "E_BAD_BODY IDENTIFY failed to decode JSON body"},
		{`"tls_v1":true`, `"tls_v1":false,`}, // there is no certificate
	} {
		c := n.dial()
		c.send(identify(`{"feature_negotiation":true,` + test.asked + "}"))
		kind, data := c.frame()
		isError := strings.HasPrefix(test.want, "E_")
		if isError != (kind == protocol.FrameError) || isError && data != test.want || !strings.Contains(data, test.want) {
			n.t.Errorf("%s: got %d %s\nwant  %s", test.asked, kind, data, test.want)
		}
		if isError {
			c.wantClosed()
		}
	}
}

func TestIdentifyBodies(t *testing.T) {
	with(t, overPipe, identifyBodies)
}

func identifyBodies(n *node) {
	for body, want := range map[string]string{
		sized("null"):     "OK",
		sized("{}"):       "OK",
		sized(" {} \r\n"): "OK",
		sized(`{"snappy":true,"deflate":true,"tls_v1":true}`): "OK", // without negotiation these are ignored
		sized("{} x"):      "E_BAD_BODY IDENTIFY failed to decode JSON body",
		sized("[]"):        "E_BAD_BODY IDENTIFY failed to decode JSON body",
		sized("not JSON"):  "E_BAD_BODY IDENTIFY failed to decode JSON body",
		sized(""):          "E_BAD_BODY IDENTIFY invalid body size 0",
		"\xff\xff\xff\xff": "E_BAD_BODY IDENTIFY invalid body size -1",
		"\x80\x00\x00\x00": "E_BAD_BODY IDENTIFY invalid body size -2147483648",
		"\x00\x50\x00\x01": "E_BAD_BODY IDENTIFY body too big 5242881 > 5242880",
		"\x7f\xff\xff\xff": "E_BAD_BODY IDENTIFY body too big 2147483647 > 5242880",
	} {
		n.t.Logf("%.60q", body)
		c := n.dial()
		c.send("IDENTIFY\n" + body)
		if want == "OK" {
			c.wantOK(1)
			c.wantNothing()
		} else {
			c.wantFatal(want)
		}
	}
}

// A connection is negotiated once: a second IDENTIFY could tear its layers apart, and is refused
// inside them.
func TestSecondIdentify(t *testing.T) {
	everywhere(t, func(n *node) {
		c := n.dial(`"msg_timeout":5000`)
		c.send(identify(`{"output_buffer_size":64}`))
		c.wantFatal("E_INVALID cannot IDENTIFY in current state")
	})
}

// Statistics tell what a client said of itself, and its address where it said nothing.
func TestStatistics(t *testing.T) {
	with(t, overTCP, func(n *node) {
		before := time.Now().Unix()
		silent := n.dial()
		silent.send(pub("t", "x"))
		silent.wantOK(1)
		named := n.subscribe("t", "ch", 5, `"client_id":"c"`, `"hostname":"h"`, `"user_agent":"u"`, `"sample_rate":0`, `"topology_region":"r"`, `"topology_zone":"z"`)
		named.wantMessage(1, "x")
		clients := n.sessions.Clients()
		if len(clients) != 2 {
			t.Fatalf("%d clients", len(clients))
		}
		first, second := clients[0], clients[1]
		if first.ClientID != "127.0.0.1" || first.Hostname != "127.0.0.1" || first.State != 0 || first.Topic != "" || first.Version != "V2" ||
			first.RemoteAddress != silent.raw.LocalAddr().String() || first.ConnectTS < before || first.ConnectTS > time.Now().Unix() {
			t.Errorf("%+v", first)
		}
		if second.ClientID != "c" || second.Hostname != "h" || second.UserAgent != "u" || second.TopologyRegion != "r" || second.TopologyZone != "z" ||
			second.State != 3 || second.Topic != "t" || second.Channel != "ch" || second.ReadyCount != 5 || second.InFlightCount != 1 || second.MessageCount != 1 ||
			second.PubCounts != nil || second.TLS || second.TLSVersion != "" || second.TLSNegotiatedProtocolIsMutual {
			t.Errorf("%+v", second)
		}
	})
}

// The answer tells the node's own place, escaped as JSON.
func TestAnswerTellsTopology(t *testing.T) {
	with(t, overTCP, func(n *node) {
		c := n.dial()
		c.send(identify(`{"feature_negotiation":true,"topology_zone":"mine"}`))
		if _, got := c.frame(); !strings.HasSuffix(got, `,"topology_region":"r\u003c1\u003e","topology_zone":"z\u0026"}`) {
			t.Errorf("got %s", got)
		}
	}, func(s *setup) { s.limits.TopologyRegion, s.limits.TopologyZone = "r<1>", "z&" })
}
