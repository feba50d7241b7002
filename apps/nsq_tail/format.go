package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/nsqio/go-nsq"
)

// format is how a message is printed, a flag.Value.
type format string

const (
	formatRaw  format = "" // and no default in --help
	formatHex  format = "hex"
	formatJSON format = "json"
)

func (f *format) String() string { return string(*f) }

func (f *format) Set(text string) error {
	switch text {
	case "raw":
		*f = formatRaw
	case "hex", "json":
		*f = format(text)
	default:
		return errors.New("want raw, hex or json")
	}
	return nil
}

// line returns the function that makes the line, or lines, of a message of the topic.
func (t *tail) line(topic string) func(*nsq.Message) []byte {
	prefix := ""
	if t.printTopic {
		prefix = topic + " | "
	}
	switch t.format {
	case formatJSON:
		return func(m *nsq.Message) []byte { return jsonLine(topic, m) }
	case formatHex:
		return func(m *nsq.Message) []byte {
			return append(hex.AppendEncode([]byte(prefix), m.Body), '\n')
		}
	}
	return func(m *nsq.Message) []byte {
		line := make([]byte, 0, len(prefix)+len(m.Body)+1)
		return append(append(append(line, prefix...), m.Body...), '\n')
	}
}

// jsonMessage is a message in JSON. It has one of the two bodies.
type jsonMessage struct {
	Topic      string  `json:"topic"`
	ID         string  `json:"id"`
	Timestamp  int64   `json:"timestamp"` // of its publishing, Unix nanoseconds
	Attempts   uint16  `json:"attempts"`
	NSQD       string  `json:"nsqd"`
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitempty"` // of a body that is no UTF-8
}

func jsonLine(topic string, m *nsq.Message) []byte {
	message := jsonMessage{
		Topic: topic, ID: string(m.ID[:]), Timestamp: m.Timestamp, Attempts: m.Attempts, NSQD: m.NSQDAddress,
	}
	if utf8.Valid(m.Body) {
		body := string(m.Body)
		message.Body = &body
	} else {
		message.BodyBase64 = m.Body
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		panic(err) // nothing in the struct can fail
	}
	return line.Bytes()
}
