package main

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/nsqio/go-nsq"

	"nsq/internal/httpx"
)

// format is the form of a stream.
type format string

const (
	formatLines  format = "ndjson" // a JSON object a line; a heartbeat is an empty line
	formatEvents format = "sse"    // server-sent events; a heartbeat is a comment
)

const mediaEvents = "text/event-stream"

// parseFormat reads the parameter format, or else what the client accepts.
func parseFormat(params httpx.Params, header http.Header) (format, error) {
	text, present := params.Get("format")
	switch f := format(text); {
	case present && (f == formatLines || f == formatEvents):
		return f, nil
	case present:
		return "", errInvalidFormat
	}
	for _, accepted := range strings.Split(strings.Join(header.Values("Accept"), ","), ",") {
		if media, _, err := mime.ParseMediaType(accepted); err == nil && media == mediaEvents {
			return formatEvents, nil
		}
	}
	return formatLines, nil
}

func (f format) contentType() string {
	if f == formatEvents {
		return mediaEvents
	}
	return "application/x-ndjson"
}

func (f format) heartbeat() string {
	if f == formatEvents {
		return ": heartbeat\n\n"
	}
	return "\n"
}

// record is a message as a reader gets it. A body that JSON has no string for is in Base64 instead.
type record struct {
	ID        string  `json:"id"`
	Timestamp int64   `json:"timestamp"` // when it was published, in nanoseconds since 1970
	Attempts  uint16  `json:"attempts"`
	Body      *string `json:"body,omitempty"`
	Base64    []byte  `json:"body_base64,omitempty"`
}

// write appends the message to the buffer.
func (f format) write(buf *bytes.Buffer, m *nsq.Message) error {
	r := record{ID: string(m.ID[:]), Timestamp: m.Timestamp, Attempts: m.Attempts}
	if utf8.Valid(m.Body) {
		body := string(m.Body)
		r.Body = &body
	} else {
		r.Base64 = m.Body
	}
	if f == formatEvents {
		buf.WriteString("data: ") // the object has no line break
		defer buf.WriteString("\n")
	}
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
