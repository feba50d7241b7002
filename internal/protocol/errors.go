package protocol

import "fmt"

// Code is the first word of an error frame: the part that programs may test.
type Code string

// The codes of the V2 protocol. Source: nsqd-tcp spec, section 5.
const (
	CodeBadProtocol    Code = "E_BAD_PROTOCOL"
	CodeInvalid        Code = "E_INVALID"
	CodeBadBody        Code = "E_BAD_BODY"
	CodeBadTopic       Code = "E_BAD_TOPIC"
	CodeBadChannel     Code = "E_BAD_CHANNEL"
	CodeBadMessage     Code = "E_BAD_MESSAGE"
	CodeIdentifyFailed Code = "E_IDENTIFY_FAILED"
	CodeSubFailed      Code = "E_SUB_FAILED"
	CodePubFailed      Code = "E_PUB_FAILED"
	CodeMPubFailed     Code = "E_MPUB_FAILED"
	CodeDPubFailed     Code = "E_DPUB_FAILED"
	CodeFinFailed      Code = "E_FIN_FAILED"
	CodeReqFailed      Code = "E_REQ_FAILED"
	CodeTouchFailed    Code = "E_TOUCH_FAILED"
	CodeAuthDisabled   Code = "E_AUTH_DISABLED"
	CodeAuthFirst      Code = "E_AUTH_FIRST"
	CodeAuthFailed     Code = "E_AUTH_FAILED"
	CodeUnauthorized   Code = "E_UNAUTHORIZED"
)

// Fatal says whether the connection ends after an error of this code. Only the answers to FIN, REQ
// and TOUCH leave it usable.
func (c Code) Fatal() bool {
	return c != CodeFinFailed && c != CodeReqFailed && c != CodeTouchFailed
}

// Error is what an error frame says.
type Error struct {
	Code Code
	Text string // the description; empty for CodeBadProtocol alone
}

// Error is the data of the frame: the code and the description, one space between them.
func (e *Error) Error() string {
	if e.Text == "" {
		return string(e.Code)
	}
	return string(e.Code) + " " + e.Text
}

// Fault is one row of the table of errors: a code and the form of its description.
type Fault struct {
	Code Code
	form string
}

// With fills in the description.
func (f Fault) With(args ...any) *Error {
	return &Error{Code: f.Code, Text: fmt.Sprintf(f.form, args...)}
}

// The table of errors, in the order in which a connection can meet them. A %s before the first
// other verb is the name of the command unless the comment says otherwise.
//
// Source: nsqd-tcp spec, section 5.1.
var (
	FaultBadProtocol = Fault{CodeBadProtocol, ""}

	FaultUnknownCommand = Fault{CodeInvalid, "invalid command %s"} // the first word, raw
	FaultLineTooLong    = Fault{CodeInvalid, "command line longer than %d bytes"}
	FaultState          = Fault{CodeInvalid, "cannot %s in current state"}
	FaultTLSRequired    = Fault{CodeInvalid, "cannot %s in current state (TLS required)"} // the first word, raw

	FaultReadBodySize = Fault{CodeBadBody, "%s failed to read body size"}
	FaultBodyTooBig   = Fault{CodeBadBody, "%s body too big %d > %d"}
	FaultBodySize     = Fault{CodeBadBody, "%s invalid body size %d"}
	FaultReadBody     = Fault{CodeBadBody, "%s failed to read body"}

	FaultIdentifyJSON        = Fault{CodeBadBody, "IDENTIFY failed to decode JSON body"}
	FaultHeartbeatInterval   = Fault{CodeBadBody, "IDENTIFY heartbeat interval (%d) is invalid"}
	FaultOutputBufferTimeout = Fault{CodeBadBody, "IDENTIFY output buffer timeout (%d) is invalid"}
	FaultOutputBufferSize    = Fault{CodeBadBody, "IDENTIFY output buffer size (%d) is invalid"}
	FaultSampleRate          = Fault{CodeBadBody, "IDENTIFY sample rate (%d) is invalid"}
	FaultMsgTimeout          = Fault{CodeBadBody, "IDENTIFY msg timeout (%d) is invalid"}
	FaultTwoCompressions     = Fault{CodeIdentifyFailed, "cannot enable both deflate and snappy compression"}
	FaultUpgrade             = Fault{CodeIdentifyFailed, "IDENTIFY failed %s"} // the layer's words

	FaultAuthParams       = Fault{CodeInvalid, "AUTH invalid number of parameters"}
	FaultAuthAgain        = Fault{CodeInvalid, "AUTH already set"}
	FaultAuthDisabled     = Fault{CodeAuthDisabled, "AUTH disabled"}
	FaultAuthFailed       = Fault{CodeAuthFailed, "AUTH failed"}
	FaultNoAuthorizations = Fault{CodeUnauthorized, "AUTH no authorizations found"}
	FaultAuthFirst        = Fault{CodeAuthFirst, "AUTH required before %s"}
	FaultUnauthorized     = Fault{CodeUnauthorized, "AUTH failed for %s on %q %q"} // topic, channel

	FaultTooFewParameters = Fault{CodeInvalid, "%s insufficient number of parameters"}
	FaultTooFewParams     = Fault{CodeInvalid, "%s insufficient number of params"} // FIN, REQ, TOUCH say it so
	FaultTopicName        = Fault{CodeBadTopic, "%s topic name %q is not valid"}
	FaultChannelName      = Fault{CodeBadChannel, "%s channel name %q is not valid"}
	FaultSubNoHeartbeats  = Fault{CodeInvalid, "cannot SUB with heartbeats disabled"}
	FaultTooManyConsumers = Fault{CodeSubFailed, "SUB failed consumers for %s:%s exceeds limit of %d"}
	FaultSubFailed        = Fault{CodeSubFailed, "SUB failed %s"} // the reason
	FaultReadyCount       = Fault{CodeInvalid, "RDY could not parse count %s"}
	FaultReadyRange       = Fault{CodeInvalid, "RDY count %s out of range 0-%d"}
	FaultMessageID        = Fault{CodeInvalid, "invalid message ID"}
	FaultDelay            = Fault{CodeInvalid, "%s could not parse timeout %s"}
	FaultDelayRange       = Fault{CodeInvalid, "%s timeout %s out of range 0-%d"}
	FaultReadMessageSize  = Fault{CodeBadMessage, "%s failed to read message body size"}
	FaultMessageSize      = Fault{CodeBadMessage, "%s invalid message body size %d"}
	FaultMessageTooBig    = Fault{CodeBadMessage, "%s message too big %d > %d"}
	FaultReadMessage      = Fault{CodeBadMessage, "%s failed to read message body"}
	FaultReadMessageCount = Fault{CodeBadBody, "%s failed to read message count"}
	FaultMessageCount     = Fault{CodeBadBody, "%s invalid message count %d"}
	FaultReadMPubSize     = Fault{CodeBadMessage, "%s failed to read message(%d) body size"}
	FaultMPubMessageSize  = Fault{CodeBadMessage, "%s invalid message(%d) body size %d"}
	FaultBodySizeMismatch = Fault{CodeBadBody, "%s body size %d does not match its %d messages"}
	FaultPubFailed        = Fault{CodePubFailed, "PUB failed %s"}        // the reason
	FaultMPubFailed       = Fault{CodeMPubFailed, "MPUB failed %s"}      // the reason
	FaultDPubFailed       = Fault{CodeDPubFailed, "DPUB failed %s"}      // the reason
	FaultFinFailed        = Fault{CodeFinFailed, "FIN %s failed %s"}     // message ID, reason
	FaultReqFailed        = Fault{CodeReqFailed, "REQ %s failed %s"}     // message ID, reason
	FaultTouchFailed      = Fault{CodeTouchFailed, "TOUCH %s failed %s"} // message ID, reason
)
