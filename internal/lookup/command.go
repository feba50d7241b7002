package lookup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"nsq/internal/protocol"
)

// Error is what a nsqlookupd answers before it closes the connection; there are no errors that leave
// it open.
//
// Source: nsqlookupd spec, section 3.3.
type Error struct {
	Text  string // as sent: the code and, after a space, a description
	Cause error  // not sent; may be nil
}

// Error is the text with its cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + " - " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func errorf(format string, args ...any) *Error { return &Error{Text: fmt.Sprintf(format, args...)} }

// The errors that do not depend on what was sent.
var (
	ErrBadProtocol   = errorf("E_BAD_PROTOCOL")
	ErrIdentifyAgain = errorf("E_INVALID cannot IDENTIFY again")
	ErrMustIdentify  = errorf("E_INVALID client must IDENTIFY")
	errLineTooLong   = errorf("E_INVALID command is longer than %d bytes", MaxLineLength)
	errMissingFields = errorf("E_BAD_BODY IDENTIFY missing fields")
)

// Command is one line from a nsqd. Names are case-sensitive; two adjacent spaces make an empty
// parameter.
type Command struct {
	Name   string
	Params []string
}

// Invalid is the error for a command that is none.
func (c Command) Invalid() *Error { return errorf("E_INVALID invalid command %s", c.Name) }

// Registration reads the parameters of REGISTER and UNREGISTER. Surplus ones are ignored, and an empty
// channel is none.
func (c Command) Registration() (Registration, *Error) {
	if len(c.Params) == 0 {
		return Registration{}, errorf("E_INVALID %s insufficient number of params", c.Name)
	}
	r := Registration{Topic: c.Params[0]}
	if len(c.Params) > 1 {
		r.Channel = c.Params[1]
	}
	if !protocol.ValidName(r.Topic) {
		return Registration{}, errorf("E_BAD_TOPIC %s topic name '%s' is not valid", c.Name, r.Topic)
	}
	if r.Channel != "" && !protocol.ValidName(r.Channel) {
		return Registration{}, errorf("E_BAD_CHANNEL %s channel name '%s' is not valid", c.Name, r.Channel)
	}
	return r, nil
}

// NewReader returns the reader that ReadCommand and ReadIdentity need; its size is the line limit.
func NewReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, MaxLineLength) }

// ReadCommand reads one line from a reader made by NewReader. A line that is too long is an *Error; a
// line without its end before EOF counts as nothing and is io.EOF.
func ReadCommand(r *bufio.Reader) (Command, error) {
	line, err := r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return Command{}, errLineTooLong
	}
	if err != nil {
		return Command{}, err
	}
	words := strings.Split(string(bytes.TrimSpace(line)), " ")
	return Command{Name: words[0], Params: words[1:]}, nil
}

// ReadIdentity reads the body of IDENTIFY. The length is checked before anything is allocated.
func ReadIdentity(r io.Reader) (Identity, *Error) {
	size, err := readLength(r)
	if err != nil {
		return Identity{}, &Error{Text: "E_BAD_BODY IDENTIFY failed to read body size", Cause: err}
	}
	if size < 0 || size > MaxBodyLength {
		return Identity{}, errorf("E_BAD_BODY IDENTIFY invalid body size %d", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return Identity{}, &Error{Text: "E_BAD_BODY IDENTIFY failed to read body", Cause: unexpected(err)}
	}
	return decodeIdentity(body)
}

// decodeIdentity checks that the required fields are there; ports are not range checked.
func decodeIdentity(body []byte) (Identity, *Error) {
	var id Identity
	if err := json.Unmarshal(body, &id); err != nil {
		return Identity{}, &Error{Text: "E_BAD_BODY IDENTIFY failed to decode JSON body", Cause: err}
	}
	if id.BroadcastAddress == "" || id.TCPPort == 0 || id.HTTPPort == 0 || id.Version == "" {
		return Identity{}, errMissingFields
	}
	return id, nil
}

// AppendIdentify appends the whole command to dst.
func AppendIdentify(dst []byte, id Identity) ([]byte, error) {
	body, err := json.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("encode identity: %w", err)
	}
	dst = append(dst, CommandIdentify+"\n"...)
	return AppendFrame(dst, body), nil
}
