package httpd

import (
	"net/http"

	"nsq/internal/httpx"
)

// The errors of the API. The two codes for a bad topic, and 413 for malformed bodies, are what
// clients know.
//
// Source: nsqd-http spec, sections 7 to 10 and 12.
var (
	errMissingTopic      = httpx.BadRequest("MISSING_ARG_TOPIC")
	errInvalidTopic      = httpx.BadRequest("INVALID_TOPIC")
	errInvalidArgTopic   = httpx.BadRequest("INVALID_ARG_TOPIC") // on /channel/*
	errMissingChannel    = httpx.BadRequest("MISSING_ARG_CHANNEL")
	errInvalidArgChannel = httpx.BadRequest("INVALID_ARG_CHANNEL")
	errTopicNotFound     = &httpx.Error{Status: http.StatusNotFound, Message: "TOPIC_NOT_FOUND"}
	errChannelNotFound   = &httpx.Error{Status: http.StatusNotFound, Message: "CHANNEL_NOT_FOUND"}

	errMsgEmpty     = httpx.BadRequest("MSG_EMPTY")
	errMsgTooBig    = tooLarge("MSG_TOO_BIG")
	errInvalidDefer = httpx.BadRequest("INVALID_DEFER")
	errBodyTooBig   = tooLarge("BODY_TOO_BIG")
	errBadBody      = tooLarge("BAD_BODY")
	errBadMessage   = tooLarge("BAD_MESSAGE")

	errInvalidOption = httpx.BadRequest("INVALID_OPTION")
	errInvalidValue  = httpx.BadRequest("INVALID_VALUE")
	errValueSize     = tooLarge("INVALID_VALUE") // of no bytes at all, too
)

func tooLarge(message string) *httpx.Error {
	return &httpx.Error{Status: http.StatusRequestEntityTooLarge, Message: message}
}
