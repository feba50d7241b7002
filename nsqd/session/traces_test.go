package session

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// trace is a conversation as it was recorded with NSQ 1.3, byte for byte but for times and ids.
type trace struct {
	name       string
	identifies bool // by itself, so that no upgrade can come before it
	timed      bool // takes long outside of a bubble
	change     func(*setup)
	talk       func(*node)
}

const id = "0123456789abcdef" // of no message

var traces = []trace{
	{name: "T1 IDENTIFY without negotiation, PUB", identifies: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x22{\"client_id\":\"c1\",\"hostname\":\"h1\"}")
		c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
		c.send("PUB orders\n\x00\x00\x00\x05hello")
		c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
	}},
	{name: "T2 IDENTIFY with negotiation", identifies: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\xc6" + `{"client_id":"c1","hostname":"h1","user_agent":"ua/1","feature_negotiation":true,` +
			`"heartbeat_interval":30000,"msg_timeout":5000,"sample_rate":0,"output_buffer_size":16384,"output_buffer_timeout":250}`)
		c.wantBytes("\x00\x00\x01\x33\x00\x00\x00\x00" + negotiated(5000, "", ""))
	}},
	{name: "T3 MPUB of two messages, DPUB", talk: func(n *node) {
		c := n.dial()
		c.send("MPUB orders\n\x00\x00\x00\x0f\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x02bc")
		c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
		c.send("DPUB orders 1000\n\x00\x00\x00\x05later")
		c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
	}},
	{name: "T4 SUB, RDY, message, FIN", talk: func(n *node) {
		c := n.dial()
		c.send("SUB t4 ch\n")
		c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
		c.send("RDY 1\n")
		n.publish("t4", "hello")
		c.send("FIN " + c.wantMessage(1, "hello") + "\n")
		c.wantNothing()
	}},
	{name: "T5 REQ 0, redelivery with attempts 2", talk: func(n *node) {
		c := n.dial()
		c.send("SUB t5 ch\n")
		c.wantOK(1)
		c.send("RDY 1\n")
		n.publish("t5", "x")
		first := c.wantMessage(1, "x")
		c.send("REQ " + first + " 0\n")
		if again := c.wantMessage(2, "x"); again != first {
			n.t.Errorf("message %s came back as %s", first, again)
		}
		c.send("FIN " + first + "\n")
		c.wantNothing()
	}},
	{name: "T6 heartbeats at 1 s, answered once, then silence", identifies: true, timed: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x1b{\"heartbeat_interval\":1000}")
		c.wantOK(1)
		began := time.Now()
		const heartbeat = "\x00\x00\x00\x0f\x00\x00\x00\x00_heartbeat_"
		c.wantBytes(heartbeat)
		wantAfter(n.t, began, time.Second, time.Second)
		c.send("NOP\n")
		c.wantBytes(heartbeat)
		wantAfter(n.t, began, 2*time.Second, 2*time.Second)
		c.wantBytes(heartbeat)
		wantAfter(n.t, began, 3*time.Second, 3*time.Second)
		c.wantClosed()
		wantAfter(n.t, began, 3*time.Second, 3500*time.Millisecond)
	}},
	{name: "T7 errors that are not fatal", talk: func(n *node) {
		c := n.dial()
		c.send("SUB t7 ch\n")
		c.wantOK(1)
		c.send("FIN 0123456789abcdef\n")
		c.wantBytes("\x00\x00\x00\x3d\x00\x00\x00\x01E_FIN_FAILED FIN 0123456789abcdef failed ID not in flight")
		c.send("REQ 0123456789abcdef 100\n")
		c.wantBytes("\x00\x00\x00\x3d\x00\x00\x00\x01E_REQ_FAILED REQ 0123456789abcdef failed ID not in flight")
		c.send("TOUCH 0123456789abcdef\n")
		c.wantBytes("\x00\x00\x00\x41\x00\x00\x00\x01E_TOUCH_FAILED TOUCH 0123456789abcdef failed ID not in flight")
		c.send("NOP\n")
		c.wantNothing()
	}},
	{name: "T8 bad magic", identifies: true, talk: func(n *node) {
		c := n.raw().listen()
		c.send("  V1")
		c.wantBytes("\x00\x00\x00\x12\x00\x00\x00\x01E_BAD_PROTOCOL")
		c.wantClosed()
	}},
	{name: "T9 unknown command", talk: func(n *node) {
		c := n.dial()
		c.send("ASDF\n")
		c.wantBytes("\x00\x00\x00\x22\x00\x00\x00\x01E_INVALID invalid command ASDF")
		c.wantClosed()
	}},
	{name: "T10 CLS", talk: func(n *node) {
		c := n.dial()
		c.send("SUB t10 ch\n")
		c.wantOK(1)
		c.send("RDY 1\n")
		n.publish("t10", "x")
		held := c.wantMessage(1, "x")
		c.send("CLS\n")
		c.wantBytes("\x00\x00\x00\x0e\x00\x00\x00\x00CLOSE_WAIT")
		n.publish("t10", "y")
		c.send("RDY 5\n")
		c.send("FIN " + held + "\n")
		c.wantNothing()
		if stats := n.channel("t10", "ch"); stats.Depth != 1 || stats.InFlightCount != 0 {
			n.t.Errorf("%d messages wait and %d are in flight", stats.Depth, stats.InFlightCount)
		}
		c.send("CLS\n")
		c.wantBytes("\x00\x00\x00\x29\x00\x00\x00\x01E_INVALID cannot CLS in current state")
		c.wantClosed()
	}},
	{name: "T11 RDY out of range", talk: func(n *node) {
		c := n.dial()
		c.send("SUB t11 ch\n")
		c.wantOK(1)
		c.send("RDY 2501\n")
		c.wantBytes("\x00\x00\x00\x30\x00\x00\x00\x01E_INVALID RDY count 2501 out of range 0-2500")
		c.wantClosed()
	}},
	{name: "T12 bad names", talk: func(n *node) {
		c := n.dial()
		c.send("PUB a!\n")
		c.wantBytes("\x00\x00\x00\x30\x00\x00\x00\x01E_BAD_TOPIC PUB topic name \"a!\" is not valid")
		c.wantClosed()
		c = n.dial()
		c.send("MPUB a!\n") // the code once; NSQ 1.3 said it twice
		c.wantBytes("\x00\x00\x00\x31\x00\x00\x00\x01E_BAD_TOPIC MPUB topic name \"a!\" is not valid")
		c.wantClosed()
		c = n.dial()
		c.send("SUB a b!\n")
		c.wantBytes("\x00\x00\x00\x34\x00\x00\x00\x01E_BAD_CHANNEL SUB channel name \"b!\" is not valid")
		c.wantClosed()
	}},
	{name: "T13 empty body and oversized body", talk: func(n *node) {
		c := n.dial()
		c.send("PUB t13\n\x00\x00\x00\x00")
		c.wantBytes("\x00\x00\x00\x31\x00\x00\x00\x01E_BAD_MESSAGE PUB invalid message body size 0")
		c.wantClosed()
		c = n.dial()
		c.send("PUB t13\n\x00\x10\x00\x01")
		c.wantBytes("\x00\x00\x00\x37\x00\x00\x00\x01E_BAD_MESSAGE PUB message too big 1048577 > 1048576")
		c.wantClosed()
	}},
	{name: "T14 MPUB with an empty message", talk: func(n *node) {
		c := n.dial()
		c.send("MPUB t14\n\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00")
		c.wantBytes("\x00\x00\x00\x35\x00\x00\x00\x01E_BAD_MESSAGE MPUB invalid message(1) body size 0")
		c.wantClosed()
	}},
	{name: "T15 DPUB out of range", talk: func(n *node) {
		c := n.dial()
		c.send("DPUB t15 3600001\n")
		c.wantBytes("\x00\x00\x00\x39\x00\x00\x00\x01E_INVALID DPUB timeout 3600001 out of range 0-3600000")
		c.wantClosed()
	}},
	{name: "T16 SUB with heartbeats disabled", identifies: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x19{\"heartbeat_interval\":-1}")
		c.wantOK(1)
		c.send("SUB t16 ch\n")
		c.wantBytes("\x00\x00\x00\x31\x00\x00\x00\x01E_INVALID cannot SUB with heartbeats disabled")
		c.wantClosed()
	}},
	{name: "T17 SUB twice, IDENTIFY after SUB", talk: func(n *node) {
		c := n.dial()
		c.send("SUB t17 ch\n")
		c.wantOK(1)
		c.send("SUB t17 ch\n")
		c.wantBytes("\x00\x00\x00\x29\x00\x00\x00\x01E_INVALID cannot SUB in current state")
		c.wantClosed()
		c = n.dial()
		c.send("SUB t17 ch\n")
		c.wantOK(1)
		c.send("IDENTIFY\n")
		c.wantBytes("\x00\x00\x00\x2e\x00\x00\x00\x01E_INVALID cannot IDENTIFY in current state")
		c.wantClosed()
	}},
	{name: "T18 invalid IDENTIFY value", identifies: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x1a{\"heartbeat_interval\":999}")
		c.wantBytes("\x00\x00\x00\x3b\x00\x00\x00\x01E_BAD_BODY IDENTIFY heartbeat interval (999) is invalid")
		c.wantClosed()
	}},
	{name: "T19 message timeout and stale FIN", identifies: true, timed: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x14{\"msg_timeout\":1000}")
		c.wantOK(1)
		c.send("SUB t19 ch\n")
		c.wantOK(1)
		c.send("RDY 1\n")
		n.publish("t19", "x")
		late := c.wantMessage(1, "x")
		c.send("RDY 0\n")
		time.Sleep(1300 * time.Millisecond)
		c.send("FIN " + late + "\n")
		c.wantBytes("\x00\x00\x00\x3d\x00\x00\x00\x01E_FIN_FAILED FIN " + late + " failed ID not in flight")
		c.send("RDY 1\n")
		if again := c.wantMessage(2, "x"); again != late {
			n.t.Errorf("message %s came back as %s", late, again)
		}
		c.send("FIN " + late + "\n")
		c.wantNothing()
	}},
	{name: "T20 AUTH when not configured", talk: func(n *node) {
		c := n.dial()
		c.send("AUTH\n\x00\x00\x00\x06s3cret")
		c.wantBytes("\x00\x00\x00\x21\x00\x00\x00\x01E_AUTH_DISABLED AUTH disabled")
		c.wantClosed()
	}},
	{name: "T21 RDY window", identifies: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x1c{\"output_buffer_timeout\":25}")
		c.wantOK(1)
		c.send("SUB t21 ch\n")
		c.wantOK(1)
		c.send("RDY 2\n")
		n.publish("t21", "1", "2", "3")
		first := c.wantMessage(1, "1")
		c.wantMessage(1, "2")
		c.wantNothing()
		c.send("FIN " + first + "\n")
		c.wantMessage(1, "3")
	}},
	{name: "T22 pipelined commands, CRLF", talk: func(n *node) {
		c := n.dial()
		c.send("PUB t22\r\n\x00\x00\x00\x01aPUB t22\n\x00\x00\x00\x01bNOP\r\nPUB t22\n\x00\x00\x00\x01c")
		c.wantOK(3)
		c.wantNothing()
	}},
	{name: "T23 T24 upgrade, PUB", talk: func(n *node) {
		c := n.dial() // asserts the answers up to the OK of each layer
		c.send("PUB t23\n\x00\x00\x00\x01a")
		c.wantOK(1)
	}},
	{name: "T25 both compressions", identifies: true, talk: func(n *node) {
		c := n.dial()
		c.send("IDENTIFY\n\x00\x00\x00\x39{\"feature_negotiation\":true,\"snappy\":true,\"deflate\":true}")
		c.wantBytes("\x00\x00\x00\x47\x00\x00\x00\x01E_IDENTIFY_FAILED cannot enable both deflate and snappy compression")
		c.wantClosed()
	}},
	{name: "T26 line too long", talk: func(n *node) {
		c := n.dial()
		c.send(strings.Repeat("N", 16384)) // NSQ 1.3 closed without a word
		c.wantFatal("E_INVALID command line longer than 16384 bytes")
	}},
	{
		name: "T27 TLS required", identifies: true, change: requireTLS,
		talk: func(n *node) {
			c := n.dial()
			c.send("IDENTIFY\n\x00\x00\x00\x02{}")
			c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
			c.send("SUB t ch\n")
			c.wantBytes("\x00\x00\x00\x38\x00\x00\x00\x01E_INVALID cannot SUB in current state (TLS required)")
			c.wantClosed()
		},
	},
	{name: "T28 TLS upgrade, SUB", talk: func(n *node) {
		c := n.dial() // asserts the answer, the handshake and the OK
		c.send("SUB t ch\n")
		c.wantOK(1)
	}},
	{
		name: "T29 AUTH required, accepted, then refused topic", change: authorized(grant(3600, entry("^ok$", "", "publish"))),
		talk: func(n *node) {
			first := n.dial()
			first.send("SUB ok ch\n")
			first.wantBytes("\x00\x00\x00\x29\x00\x00\x00\x01E_AUTH_FIRST AUTH required before SUB")
			first.wantClosed()
			c := n.dial()
			c.send("AUTH\n\x00\x00\x00\x06s3cret")
			c.wantBytes("\x00\x00\x00\x50\x00\x00\x00\x00" + `{"identity":"me","identity_url":"http://id.example/me","permission_count":1}`)
			c.send("PUB ok\n\x00\x00\x00\x01x")
			c.wantBytes("\x00\x00\x00\x06\x00\x00\x00\x00OK")
			c.send("PUB no\n\x00\x00\x00\x01x")
			c.wantBytes("\x00\x00\x00\x31\x00\x00\x00\x01E_UNAUTHORIZED AUTH failed for PUB on \"no\" \"\"")
			c.wantClosed()
		},
	},
	{
		name: "T30 consumer limit", change: func(s *setup) { s.limits.MaxChannelConsumers = 1 },
		talk: func(n *node) {
			first := n.dial()
			first.send("SUB t ch\n")
			first.wantOK(1)
			c := n.dial()
			c.send("SUB t ch\n")
			c.wantBytes("\x00\x00\x00\x41\x00\x00\x00\x01E_SUB_FAILED SUB failed consumers for t:ch exceeds limit of 1")
			c.wantClosed()
			first.wantNothing()
		},
	},
}

// negotiated is the answer of a node with default options; granted is the layer that is, if any.
func negotiated(msgTimeout int, granted, more string) string {
	answer := strings.ReplaceAll(`{"max_rdy_count":2500,"version":"1.4.0","max_msg_timeout":900000,"msg_timeout":TIMEOUT,"tls_v1":false,`+
		`"deflate":false,"deflate_level":6,"max_deflate_level":6,"snappy":false,"sample_rate":0,"auth_required":false,`+
		`"output_buffer_size":16384,"output_buffer_timeout":250,"topology_region":"","topology_zone":""}`, "TIMEOUT", strconv.Itoa(msgTimeout))
	for _, layer := range []string{granted, more} {
		answer = strings.Replace(answer, `"`+layer+`":false`, `"`+layer+`":true`, 1)
	}
	return answer
}

func TestTraces(t *testing.T) {
	for _, by := range transports {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			inBubble := by.network == "pipe"
			var shared *node
			if !inBubble {
				shared = start(t, by, defaults(), nil)
			}
			for _, trace := range traces {
				if trace.identifies && by.upgrades() || trace.timed && !inBubble {
					continue
				}
				t.Run(trace.name, func(t *testing.T) {
					switch {
					case trace.change != nil:
						with(t, by, trace.talk, trace.change)
					case inBubble:
						with(t, by, trace.talk)
					default:
						own := *shared
						own.t = t
						trace.talk(&own)
					}
				})
			}
		})
	}
}
