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
	errMissingTopic      = badRequest("MISSING_ARG_TOPIC")
	errInvalidTopic      = badRequest("INVALID_TOPIC")
	errInvalidArgTopic   = badRequest("INVALID_ARG_TOPIC") // on /channel/*
	errMissingChannel    = badRequest("MISSING_ARG_CHANNEL")
	errInvalidArgChannel = badRequest("INVALID_ARG_CHANNEL")
	errTopicNotFound     = &httpx.Error{Status: http.StatusNotFound, Message: "TOPIC_NOT_FOUND"}
	errChannelNotFound   = &httpx.Error{Status: http.StatusNotFound, Message: "CHANNEL_NOT_FOUND"}

	errMsgEmpty     = badRequest("MSG_EMPTY")
	errMsgTooBig    = tooLarge("MSG_TOO_BIG")
	errInvalidDefer = badRequest("INVALID_DEFER")
	errBodyTooBig   = tooLarge("BODY_TOO_BIG")
	errBadBody      = tooLarge("BAD_BODY")
	errBadMessage   = tooLarge("BAD_MESSAGE")

	errInvalidOption = badRequest("INVALID_OPTION")
	errInvalidValue  = badRequest("INVALID_VALUE")
	errValueSize     = tooLarge("INVALID_VALUE") // of no bytes at all, too
)

func badRequest(message string) *httpx.Error {
	return &httpx.Error{Status: http.StatusBadRequest, Message: message}
}

func tooLarge(message string) *httpx.Error {
	return &httpx.Error{Status: http.StatusRequestEntityTooLarge, Message: message}
}
