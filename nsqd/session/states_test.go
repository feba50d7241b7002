package session

import (
	"strings"
	"testing"
)

// Every command in every state: what is not allowed is a fatal error, whatever its parameters and
// before any body is read.
func TestCommandsInStates(t *testing.T) {
	with(t, overPipe, commandsInStates)
}

func commandsInStates(n *node) {
	const (
		nothing = "nothing"
		refused = "refused"
	)
	for _, test := range []struct {
		command                   string
		initial, subscribed, last string
	}{
		{identify("{}"), "OK", refused, refused},
		{"IDENTIFY\n", "", refused, refused}, // bare: only the refusal is of interest
		{"AUTH\n" + sized("secret"), "E_AUTH_DISABLED AUTH disabled", refused, refused},
		{"AUTH\n", "", refused, refused},
		{"SUB t ch\n", "OK", refused, refused},
		{"SUB\n", "", refused, refused},
		{"RDY 0\n", refused, nothing, nothing},
		{"RDY\n", refused, nothing, nothing},
		{"RDY x\n", refused, "E_INVALID RDY could not parse count x", nothing},
		{"RDY 99999\n", refused, "E_INVALID RDY count 99999 out of range 0-2500", nothing},
		{"FIN " + id + "\n", refused, "E_FIN_FAILED FIN " + id + " failed ID not in flight", "E_FIN_FAILED FIN " + id + " failed ID not in flight"},
		{"FIN\n", refused, "E_INVALID FIN insufficient number of params", "E_INVALID FIN insufficient number of params"},
		{"REQ " + id + " 0\n", refused, "E_REQ_FAILED REQ " + id + " failed ID not in flight", "E_REQ_FAILED REQ " + id + " failed ID not in flight"},
		{"REQ\n", refused, "E_INVALID REQ insufficient number of params", "E_INVALID REQ insufficient number of params"},
		{"TOUCH " + id + "\n", refused, "E_TOUCH_FAILED TOUCH " + id + " failed ID not in flight", "E_TOUCH_FAILED TOUCH " + id + " failed ID not in flight"},
		{"TOUCH\n", refused, "E_INVALID TOUCH insufficient number of params", "E_INVALID TOUCH insufficient number of params"},
		{"CLS\n", refused, "CLOSE_WAIT", refused},
		{"NOP\n", nothing, nothing, nothing},
		{pub("t", "x"), "OK", "OK", "OK"},
		{mpub("t", "x", "y"), "OK", "OK", "OK"},
		{dpub("t", "5", "x"), "OK", "OK", "OK"},
	} {
		for state, want := range map[string]string{"": test.initial, "SUB s ch\n": test.subscribed, "SUB s ch\nCLS\n": test.last} {
			if want == "" {
				continue
			}
			n.t.Logf("%q after %q", test.command, state)
			word := strings.Fields(test.command)[0]
			c := n.dial()
			if state != "" {
				c.send(state)
				c.wantOK(1)
			}
			if strings.HasSuffix(state, "CLS\n") {
				c.wantResponse("CLOSE_WAIT")
			}
			c.send(test.command)
			switch {
			case want == nothing:
				c.wantNothing()
			case want == refused:
				c.wantFatal("E_INVALID cannot " + word + " in current state")
			case strings.HasPrefix(want, "E_"+word+"_FAILED"):
				c.wantError(want)
				c.wantNothing()
			case strings.HasPrefix(want, "E_"):
				c.wantFatal(want)
			default:
				c.wantResponse(want)
				c.wantNothing()
			}
			c.raw.Close()
		}
	}
}

// Lines that are wrong in themselves. All of these errors are fatal, and what was sent behind them
// is not acted on.
func TestCommandErrors(t *testing.T) {
	with(t, overPipe, commandErrors)
}

func commandErrors(n *node) {
	long := strings.Repeat("a", 65)
	over := strings.Repeat("x", 9000)
	const sub = "SUB t ch\n"
	for _, test := range []struct{ before, line, want string }{
		{"", "\n", "E_INVALID invalid command "},
		{"", "\r\n", "E_INVALID invalid command "},
		{"", " NOP\n", "E_INVALID invalid command "},
		{"", "nop\n", "E_INVALID invalid command nop"},
		{"", "ASDF with more words\n", "E_INVALID invalid command ASDF"},
		{"", "\x00%s\xff\n", "E_INVALID invalid command \x00%s\xff"},
		{"", "PUBLISH t\n\x00\x00\x00\x01x", "E_INVALID invalid command PUBLISH"},
		{"", over + "\n", "E_INVALID invalid command " + over},

		{"", "AUTH x\n", "E_INVALID AUTH invalid number of parameters"},
		{"", "AUTH \n", "E_INVALID AUTH invalid number of parameters"},
		{"", "AUTH\n\x00\x00\x00\x00", "E_BAD_BODY AUTH invalid body size 0"},
		{"", "AUTH\n\xff\xff\xff\xff", "E_BAD_BODY AUTH invalid body size -1"},
		{"", "AUTH\n\x00\x50\x00\x01", "E_BAD_BODY AUTH body too big 5242881 > 5242880"},

		{"", "SUB\n", "E_INVALID SUB insufficient number of parameters"},
		{"", "SUB t\n", "E_INVALID SUB insufficient number of parameters"},
		{"", "SUB t \n", `E_BAD_CHANNEL SUB channel name "" is not valid`},
		{"", "SUB  ch\n", `E_BAD_TOPIC SUB topic name "" is not valid`},
		{"", "SUB " + long + " ch\n", `E_BAD_TOPIC SUB topic name "` + long + `" is not valid`},
		{"", "SUB t\tch ch\n", `E_BAD_TOPIC SUB topic name "t\tch" is not valid`},
		{"", "SUB t #ephemeral\n", `E_BAD_CHANNEL SUB channel name "#ephemeral" is not valid`},

		{sub, "RDY -1\n", "E_INVALID RDY could not parse count -1"},
		{sub, "RDY 1x\n", "E_INVALID RDY could not parse count 1x"},
		{sub, "RDY 2501\n", "E_INVALID RDY count 2501 out of range 0-2500"},
		{sub, "RDY 9223372036854775808\n", "E_INVALID RDY count 9223372036854775808 out of range 0-2500"},
		{sub, "RDY 18446744073709551616\n", "E_INVALID RDY count 18446744073709551616 out of range 0-2500"}, // 2^64
		{sub, "FIN 0123\n", "E_INVALID invalid message ID"},
		{sub, "FIN \n", "E_INVALID invalid message ID"},
		{sub, "FIN " + id + "0\n", "E_INVALID invalid message ID"},
		{sub, "REQ " + id + "\n", "E_INVALID REQ insufficient number of params"},
		{sub, "REQ 0123 0\n", "E_INVALID invalid message ID"},
		{sub, "REQ " + id + " -5\n", "E_INVALID REQ could not parse timeout -5"},
		{sub, "REQ " + id + " 1.5\n", "E_INVALID REQ could not parse timeout 1.5"},
		{sub, "TOUCH 0123\n", "E_INVALID invalid message ID"},

		{"", "PUB\n", "E_INVALID PUB insufficient number of parameters"},
		{"", "PUB \n", `E_BAD_TOPIC PUB topic name "" is not valid`},
		{"", "PUB a\"\\b\n", `E_BAD_TOPIC PUB topic name "a\"\\b" is not valid`},
		{"", "PUB \xff\x01\n", `E_BAD_TOPIC PUB topic name "\xff\x01" is not valid`},
		{"", "PUB " + strings.Repeat("\x01", 16000) + "\n", `E_BAD_TOPIC PUB topic name "` + strings.Repeat(`\x01`, 16000) + `" is not valid`},
		{"", "PUB t\n\x00\x00\x00\x00", "E_BAD_MESSAGE PUB invalid message body size 0"},
		{"", "PUB t\n\xff\xff\xff\xff", "E_BAD_MESSAGE PUB invalid message body size -1"},
		{"", "PUB t\n\x80\x00\x00\x00", "E_BAD_MESSAGE PUB invalid message body size -2147483648"},
		{"", "PUB t\n\x7f\xff\xff\xff", "E_BAD_MESSAGE PUB message too big 2147483647 > 1048576"},
		{"", "MPUB\n", "E_INVALID MPUB insufficient number of parameters"},
		{"", "MPUB t!\n", `E_BAD_TOPIC MPUB topic name "t!" is not valid`},
		{"", "DPUB t\n", "E_INVALID DPUB insufficient number of parameters"},
		{"", "DPUB\n", "E_INVALID DPUB insufficient number of parameters"},
		{"", "DPUB t! 5\n", `E_BAD_TOPIC DPUB topic name "t!" is not valid`},
		{"", "DPUB t x\n", "E_INVALID DPUB could not parse timeout x"},
		{"", "DPUB t -1\n", "E_INVALID DPUB could not parse timeout -1"},
		{"", "DPUB t 3600001\n", "E_INVALID DPUB timeout 3600001 out of range 0-3600000"},
		{"", "DPUB t 18446744073710\n", "E_INVALID DPUB timeout 18446744073710 out of range 0-3600000"}, // in nanoseconds beyond 2^64
		{"", "DPUB t 5\n\x00\x00\x00\x00", "E_BAD_MESSAGE DPUB invalid message body size 0"},
		{"", "DPUB t 5\n\x00\x10\x00\x01", "E_BAD_MESSAGE DPUB message too big 1048577 > 1048576"},
	} {
		n.t.Logf("%.60q", test.line)
		c := n.dial()
		if test.before != "" {
			c.send(test.before)
			c.wantOK(1)
		}
		// The pipe takes no more once the node has hung up, so what follows may fail.
		c.trySend(test.line + pub("behind", "x"))
		c.wantFatal(test.want)
		if n.topicMessages("behind") != -1 {
			n.t.Fatalf("the command behind %.40q was acted on", test.line)
		}
	}
}

// Parameters that nobody asked for are ignored, and an empty number is 0.
func TestLenientLines(t *testing.T) {
	with(t, overPipe, func(n *node) {
		c := n.dial()
		c.send("IDENTIFY now please\n" + sized("{}"))
		c.wantOK(1)
		c.send("NOP 1 2 3\n")
		c.send("PUB t more  words\n" + sized("x"))
		c.send("DPUB t  more\n" + sized("x")) // an empty delay
		c.send("DPUB t 0\n" + sized("x"))
		c.send("MPUB t more\n" + strings.TrimPrefix(mpub("t", "x"), "MPUB t\n"))
		c.wantOK(4)
		c.send("SUB t ch more\n")
		c.wantOK(1)
		c.send("RDY\n")
		n.eventuallyReady("t", "ch", 1)
		c.wantMessage(1, "x")
		c.send("RDY \n")
		n.eventuallyReady("t", "ch", 0)
		c.send("CLS \n")
		c.wantResponse("CLOSE_WAIT")
	})
}

// A line may be 16384 bytes long with its line feed, and not one byte longer, however it arrives.
func TestLineLength(t *testing.T) {
	line := "NOP " + strings.Repeat("x", 16384-5)
	for _, test := range []struct{ name, text, want string }{
		{"longest", line + "\n", ""},
		{"longest with a carriage return", line[:len(line)-1] + "\r\n", ""},
		{"one byte more", line + "x\n", "E_INVALID command line longer than 16384 bytes"},
		{"far more", strings.Repeat(line, 4) + "\n", "E_INVALID command line longer than 16384 bytes"},
	} {
		for name, before := range map[string]string{"": "", " with a large buffer": strings.Repeat("NOP\n", 50000)} {
			t.Run(test.name+name, func(t *testing.T) {
				with(t, overPipe, func(n *node) { // which hands over a whole write where there is room
					c := n.dial()
					c.send(before + pub("t", "x"))
					c.wantOK(1)
					c.trySend(test.text)
					if test.want != "" {
						c.wantFatal(test.want)
						return
					}
					c.wantNothing()
					c.send(strings.Repeat(test.text, 8)) // the buffer has room for one again
					c.wantNothing()
				})
			})
		}
	}
}
