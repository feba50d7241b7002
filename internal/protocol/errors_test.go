package protocol

import "testing"

// Texts and fatality are those of the table in the specification, to the byte.
func TestErrorTable(t *testing.T) {
	const id = "0123456789abcdef"
	for _, test := range []struct {
		fault *Error
		want  string
	}{
		{FaultBadProtocol.With(), "E_BAD_PROTOCOL"},
		{FaultUnknownCommand.With([]byte("ASDF")), "E_INVALID invalid command ASDF"},
		{FaultUnknownCommand.With([]byte("")), "E_INVALID invalid command "},
		{FaultUnknownCommand.With([]byte("%d\x00\xff")), "E_INVALID invalid command %d\x00\xff"},
		{FaultLineTooLong.With(MaxLineLength), "E_INVALID command line longer than 16384 bytes"},
		{FaultState.With(OpCls), "E_INVALID cannot CLS in current state"},
		{FaultTLSRequired.With([]byte("nop")), "E_INVALID cannot nop in current state (TLS required)"},

		{FaultReadBodySize.With(OpIdentify), "E_BAD_BODY IDENTIFY failed to read body size"},
		{FaultBodyTooBig.With(OpIdentify, 5242881, 5242880), "E_BAD_BODY IDENTIFY body too big 5242881 > 5242880"},
		{FaultBodySize.With(OpIdentify, -1), "E_BAD_BODY IDENTIFY invalid body size -1"},
		{FaultReadBody.With(OpIdentify), "E_BAD_BODY IDENTIFY failed to read body"},
		{FaultIdentifyJSON.With(), "E_BAD_BODY IDENTIFY failed to decode JSON body"},
		{FaultHeartbeatInterval.With(999), "E_BAD_BODY IDENTIFY heartbeat interval (999) is invalid"},
		{FaultOutputBufferTimeout.With(-2), "E_BAD_BODY IDENTIFY output buffer timeout (-2) is invalid"},
		{FaultOutputBufferSize.With(63), "E_BAD_BODY IDENTIFY output buffer size (63) is invalid"},
		{FaultSampleRate.With(int32(100)), "E_BAD_BODY IDENTIFY sample rate (100) is invalid"},
		{FaultMsgTimeout.With(900001), "E_BAD_BODY IDENTIFY msg timeout (900001) is invalid"},
		{FaultTwoCompressions.With(), "E_IDENTIFY_FAILED cannot enable both deflate and snappy compression"},
		{FaultUpgrade.With("TLS handshake"), "E_IDENTIFY_FAILED IDENTIFY failed TLS handshake"},

		{FaultAuthParams.With(), "E_INVALID AUTH invalid number of parameters"},
		{FaultReadBodySize.With(OpAuth), "E_BAD_BODY AUTH failed to read body size"},
		{FaultBodyTooBig.With(OpAuth, 6, 5), "E_BAD_BODY AUTH body too big 6 > 5"},
		{FaultBodySize.With(OpAuth, 0), "E_BAD_BODY AUTH invalid body size 0"},
		{FaultReadBody.With(OpAuth), "E_BAD_BODY AUTH failed to read body"},
		{FaultAuthAgain.With(), "E_INVALID AUTH already set"},
		{FaultAuthDisabled.With(), "E_AUTH_DISABLED AUTH disabled"},
		{FaultAuthFailed.With(), "E_AUTH_FAILED AUTH failed"},
		{FaultNoAuthorizations.With(), "E_UNAUTHORIZED AUTH no authorizations found"},
		{FaultAuthFirst.With(OpSub), "E_AUTH_FIRST AUTH required before SUB"},
		{FaultUnauthorized.With(OpPub, "no", ""), `E_UNAUTHORIZED AUTH failed for PUB on "no" ""`},

		{FaultSubNoHeartbeats.With(), "E_INVALID cannot SUB with heartbeats disabled"},
		{FaultTooFewParameters.With(OpSub), "E_INVALID SUB insufficient number of parameters"},
		{FaultTopicName.With(OpSub, "a!"), `E_BAD_TOPIC SUB topic name "a!" is not valid`},
		{FaultTopicName.With(OpSub, "\"\\\n\xff"), `E_BAD_TOPIC SUB topic name "\"\\\n\xff" is not valid`},
		{FaultChannelName.With(OpSub, "b!"), `E_BAD_CHANNEL SUB channel name "b!" is not valid`},
		{FaultTooManyConsumers.With("t", "ch", 1), "E_SUB_FAILED SUB failed consumers for t:ch exceeds limit of 1"},
		{FaultSubFailed.With("exiting"), "E_SUB_FAILED SUB failed exiting"},
		{FaultSubFailed.With("to deleted topic/channel"), "E_SUB_FAILED SUB failed to deleted topic/channel"},

		{FaultReadyCount.With([]byte("-1")), "E_INVALID RDY could not parse count -1"},
		{FaultReadyRange.With([]byte("2501"), int64(2500)), "E_INVALID RDY count 2501 out of range 0-2500"},
		{FaultTooFewParams.With(OpFin), "E_INVALID FIN insufficient number of params"},
		{FaultTooFewParams.With(OpReq), "E_INVALID REQ insufficient number of params"},
		{FaultTooFewParams.With(OpTouch), "E_INVALID TOUCH insufficient number of params"},
		{FaultMessageID.With(), "E_INVALID invalid message ID"},
		{FaultDelay.With(OpReq, []byte("x")), "E_INVALID REQ could not parse timeout x"},
		{FaultFinFailed.With([]byte(id), "ID not in flight"), "E_FIN_FAILED FIN " + id + " failed ID not in flight"},
		{FaultReqFailed.With([]byte(id), "exiting"), "E_REQ_FAILED REQ " + id + " failed exiting"},
		{FaultTouchFailed.With([]byte(id), "client does not own message"), "E_TOUCH_FAILED TOUCH " + id + " failed client does not own message"},

		{FaultTooFewParameters.With(OpPub), "E_INVALID PUB insufficient number of parameters"},
		{FaultTopicName.With(OpDPub, ""), `E_BAD_TOPIC DPUB topic name "" is not valid`},
		{FaultTopicName.With(OpMPub, "a!"), `E_BAD_TOPIC MPUB topic name "a!" is not valid`}, // the code once, not twice
		{FaultDelay.With(OpDPub, []byte("x")), "E_INVALID DPUB could not parse timeout x"},
		{FaultDelayRange.With(OpDPub, []byte("3600001"), int64(3600000)), "E_INVALID DPUB timeout 3600001 out of range 0-3600000"},
		{FaultReadMessageSize.With(OpPub), "E_BAD_MESSAGE PUB failed to read message body size"},
		{FaultMessageSize.With(OpPub, 0), "E_BAD_MESSAGE PUB invalid message body size 0"},
		{FaultMessageTooBig.With(OpDPub, 1048577, 1048576), "E_BAD_MESSAGE DPUB message too big 1048577 > 1048576"},
		{FaultReadMessage.With(OpPub), "E_BAD_MESSAGE PUB failed to read message body"},

		{FaultReadBodySize.With(OpMPub), "E_BAD_BODY MPUB failed to read body size"},
		{FaultBodySize.With(OpMPub, 0), "E_BAD_BODY MPUB invalid body size 0"},
		{FaultBodyTooBig.With(OpMPub, 5242881, 5242880), "E_BAD_BODY MPUB body too big 5242881 > 5242880"},
		{FaultReadMessageCount.With(OpMPub), "E_BAD_BODY MPUB failed to read message count"},
		{FaultMessageCount.With(OpMPub, 1048576), "E_BAD_BODY MPUB invalid message count 1048576"},
		{FaultReadMPubSize.With(OpMPub, 3), "E_BAD_MESSAGE MPUB failed to read message(3) body size"},
		{FaultMPubMessageSize.With(OpMPub, 1, 0), "E_BAD_MESSAGE MPUB invalid message(1) body size 0"},
		{FaultMessageTooBig.With(OpMPub, 1048577, 1048576), "E_BAD_MESSAGE MPUB message too big 1048577 > 1048576"},
		{FaultReadMessage.With(OpMPub), "E_BAD_MESSAGE MPUB failed to read message body"},
		{FaultBodySizeMismatch.With(OpMPub, 16, 2), "E_BAD_BODY MPUB body size 16 does not match its 2 messages"},
		{FaultPubFailed.With("exiting"), "E_PUB_FAILED PUB failed exiting"},
		{FaultMPubFailed.With("exiting"), "E_MPUB_FAILED MPUB failed exiting"},
		{FaultDPubFailed.With("exiting"), "E_DPUB_FAILED DPUB failed exiting"},
	} {
		if got := test.fault.Error(); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

func TestOnlyAnswersToAcknowledgementsAreNotFatal(t *testing.T) {
	usable := map[Code]bool{CodeFinFailed: true, CodeReqFailed: true, CodeTouchFailed: true}
	for _, code := range []Code{
		CodeBadProtocol, CodeInvalid, CodeBadBody, CodeBadTopic, CodeBadChannel, CodeBadMessage, CodeIdentifyFailed,
		CodeSubFailed, CodePubFailed, CodeMPubFailed, CodeDPubFailed, CodeFinFailed, CodeReqFailed, CodeTouchFailed,
		CodeAuthDisabled, CodeAuthFirst, CodeAuthFailed, CodeUnauthorized,
	} {
		if code.Fatal() == usable[code] {
			t.Errorf("%s: fatal is %v", code, code.Fatal())
		}
	}
}
