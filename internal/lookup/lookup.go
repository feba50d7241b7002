// Package lookup is both ends of the conversation between nsqd and nsqlookupd: the V1 protocol as
// bytes, the connection by which a nsqd announces itself, and the HTTP look-ups. It knows neither who
// is registered nor what should be; everything from a peer is checked against a limit before it is
// kept.
//
//	nsqd                                       nsqlookupd
//	"  V1"
//	IDENTIFY\n  length(4)  JSON                length(4)  JSON
//	REGISTER <topic> [<channel>]\n             length(4)  OK
//	UNREGISTER <topic> [<channel>]\n           length(4)  OK
//	PING\n                                     length(4)  OK, or E_<code> <text> and the end
//
// Lengths are big-endian and signed.
//
// Source: nsqlookupd spec, sections 3, 5.2 and 8; nsqd-config spec, sections 15 and 16.
package lookup

// Magic is what the client sends first.
const Magic = "  V1"

// Limits of what a nsqlookupd reads, in bytes.
const (
	MaxLineLength = 4096      // a command line, line feed included
	MaxBodyLength = 64 * 1024 // the JSON of IDENTIFY
)

// OK is the answer to a command that succeeded and has nothing to tell.
const OK = "OK"

// The commands.
const (
	CommandIdentify   = "IDENTIFY"
	CommandRegister   = "REGISTER"
	CommandUnregister = "UNREGISTER"
	CommandPing       = "PING"
)

// Registration is what a nsqd announces: a channel and its topic or, if Channel is empty, a topic.
type Registration struct {
	Topic   string
	Channel string

	// Generation tells a topic or channel from an earlier one of the same name. It is never sent, and
	// may be 0 where nobody needs to know.
	Generation uint64
}

// line is the command without its line feed.
func (r Registration) line(command string) string {
	if r.Channel == "" {
		return command + " " + r.Topic
	}
	return command + " " + r.Topic + " " + r.Channel
}

// Change is a REGISTER or, with Remove, an UNREGISTER.
type Change struct {
	Registration
	Remove bool
}

// String is the command as sent, without its line feed.
func (c Change) String() string {
	if c.Remove {
		return c.line(CommandUnregister)
	}
	return c.line(CommandRegister)
}

// Identity is the body of IDENTIFY: where clients and tools reach the nsqd.
type Identity struct {
	BroadcastAddress string `json:"broadcast_address"`
	Hostname         string `json:"hostname"`
	HTTPPort         int    `json:"http_port"`
	TCPPort          int    `json:"tcp_port"`
	TopologyRegion   string `json:"topology_region"`
	TopologyZone     string `json:"topology_zone"`
	Version          string `json:"version"`
}

// PeerInfo is the answer to IDENTIFY: where nsqd reaches the nsqlookupd.
type PeerInfo struct {
	BroadcastAddress string `json:"broadcast_address"` // may be empty, then there are no HTTP look-ups
	Hostname         string `json:"hostname"`
	HTTPPort         int    `json:"http_port"`
	TCPPort          int    `json:"tcp_port"`
	Version          string `json:"version"`
}
