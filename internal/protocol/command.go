package protocol

import "bytes"

// MaxLineLength is the length limit of a command line in bytes, line feed included.
//
// Source: nsqd-tcp spec, section 3.1.
const MaxLineLength = 16384

// Op is a command of V2.
type Op uint8

// The commands. OpUnknown is every name that is none of them.
const (
	OpUnknown Op = iota
	OpIdentify
	OpAuth
	OpSub
	OpRdy
	OpFin
	OpReq
	OpTouch
	OpCls
	OpNop
	OpPub
	OpMPub
	OpDPub
	NumOps
)

var opNames = [NumOps]string{
	OpIdentify: "IDENTIFY", OpAuth: "AUTH", OpSub: "SUB", OpRdy: "RDY", OpFin: "FIN", OpReq: "REQ",
	OpTouch: "TOUCH", OpCls: "CLS", OpNop: "NOP", OpPub: "PUB", OpMPub: "MPUB", OpDPub: "DPUB",
}

// String is the name on the wire.
func (op Op) String() string { return opNames[op] }

func opOf(name []byte) Op {
	switch string(name) { // the compiler makes no string of it
	case "FIN":
		return OpFin
	case "PUB":
		return OpPub
	case "MPUB":
		return OpMPub
	case "RDY":
		return OpRdy
	case "REQ":
		return OpReq
	case "TOUCH":
		return OpTouch
	case "DPUB":
		return OpDPub
	case "NOP":
		return OpNop
	case "SUB":
		return OpSub
	case "IDENTIFY":
		return OpIdentify
	case "CLS":
		return OpCls
	case "AUTH":
		return OpAuth
	}
	return OpUnknown
}

// Command is one command line. Its bytes belong to the buffer that was parsed.
type Command struct {
	Op   Op
	Name []byte // the first word as it came
	Params
}

// Params is what is left of a command line: parameters separated by single spaces.
type Params struct {
	rest []byte
	more bool // a separator was seen before rest
}

// Next returns the next parameter, which may be empty, or false where there is none.
func (p *Params) Next() ([]byte, bool) {
	if !p.more {
		return nil, false
	}
	param, rest, more := bytes.Cut(p.rest, []byte{' '})
	p.rest, p.more = rest, more
	return param, true
}

// Any says whether a parameter is left.
func (p *Params) Any() bool { return p.more }

// CutLine finds the first line in buf and says how many bytes it takes with its line feed. The
// line is returned without the line feed and without one carriage return before it. A zero length
// means that the line feed has not come yet.
func CutLine(buf []byte) (line []byte, length int) {
	end := bytes.IndexByte(buf, '\n')
	if end < 0 {
		return nil, 0
	}
	line = buf[:end]
	if end > 0 && buf[end-1] == '\r' {
		line = buf[:end-1]
	}
	return line, end + 1
}

// ParseCommand takes a line apart. An unknown name is not an error here: Op says so.
func ParseCommand(line []byte) Command {
	name, rest, more := bytes.Cut(line, []byte{' '})
	return Command{Op: opOf(name), Name: name, Params: Params{rest: rest, more: more}}
}

// ParseDecimal reads a count or a delay: bytes 0-9 only, and nothing at all is 0. A number that
// does not fit is the largest that does, so that no range check can be led astray by a wrap-around.
//
// Source: nsqd-tcp spec, section 3.
func ParseDecimal(digits []byte) (n int64, ok bool) {
	const largest = int64(^uint64(0) >> 1)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := int64(c - '0')
		if n > (largest-digit)/10 {
			n = largest
			continue
		}
		n = n*10 + digit
	}
	return n, true
}
