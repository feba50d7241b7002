package session

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// nowhere is a store that keeps nothing.
type nowhere struct{}

func (nowhere) OpenQueue(string, string) (diskq.Queue, error)            { return diskq.Discard(), nil }
func (nowhere) LoadDelays(string, string) (map[protocol.ID]int64, error) { return nil, nil }
func (nowhere) SaveDelays(string, string, map[protocol.ID]int64) error   { return nil }
func (nowhere) LoadMetadata() ([]byte, error)                            { return nil, fs.ErrNotExist }
func (nowhere) SaveMetadata([]byte) error                                { return nil }
func (nowhere) MetadataName() string                                     { return "nowhere" }

// Whatever a client sends: its session ends soon after it has hung up, without a panic; what was
// sent to it was whole frames as far as there is no layer over them; and nothing of it is left,
// neither a client nor a consumer nor a message in flight.
func FuzzSession(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "NOP\r\n", identify("{}") + pub("t", "hello"), identify("null") + identify("{}"),
		mpub("t", "a", "bc") + dpub("t", "1", "later") + "SUB t ch\nRDY 5\n",
		pub("t", "x") + "SUB t ch\nRDY 1\n" + fin(id, id) + "REQ " + id + " 0\nTOUCH " + id + "\nCLS\n" + fin(id),
		"SUB t#ephemeral ch#ephemeral\nRDY 2\n" + pub("t#ephemeral", "x"),
		identify(`{"feature_negotiation":true,"snappy":true}`) + packed("snappy", pub("t", "x")),
		identify(`{"feature_negotiation":true,"deflate":true}`) + packed("deflate", pub("t", "x")),
		identify(`{"feature_negotiation":true,"tls_v1":true}`) + "\x16\x03\x01\x00\x05hello",
		identify(`{"heartbeat_interval":-1,"output_buffer_size":-1}`) + pub("t", strings.Repeat("y", 9000)),
		"PUB t\n\x7f\xff\xff\xffx", "MPUB t\n\x00\x00\x00\x08\x00\x0f\xff\xff\x00\x00", "AUTH\n" + sized("s"), strings.Repeat("N", 20000),
	} {
		f.Add([]byte(seed))
	}
	core, err := broker.New(broker.Config{
		MemQueueSize: 100, MaxMsgTimeout: time.Minute, QueueScanSelectionCount: 20, QueueScanWorkerPoolMax: 4,
		Store: nowhere{}, Logger: log.Discard(),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { core.Close() })
	limits := defaults().limits
	limits.MaxMsgSize, limits.MaxBodySize = 10000, 100000
	sessions := NewServer(Config{Broker: core, Limits: limits, TLS: serverTLS(), Logger: log.Discard()})

	f.Fuzz(func(t *testing.T, input []byte) {
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			sessions.Serve(theirs)
			theirs.Close()
		}()
		answers := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(ours)
			answers <- all
		}()
		ours.SetDeadline(time.Now().Add(patience))
		if len(input) > 0 { // a pipe would hand the server an empty read
			ours.Write(input) // fails when the session ends before
		}
		ours.Close()
		got := <-answers
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("the session goes on after the end of %q", input)
		}
		if left := sessions.Clients(); len(left) > 0 {
			t.Fatalf("%+v is left", left)
		}
		for source := bytes.NewReader(got); ; {
			kind, data, err := protocol.ReadFrame(source, 1<<20)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err != nil || kind > protocol.FrameMessage {
				t.Fatalf("frame %d %.100q, %v", kind, data, err)
			}
			if bytes.HasPrefix(data, []byte("{")) {
				break // an upgrade may follow
			}
		}
		for _, topic := range core.Stats("", "") {
			for _, channel := range topic.Channels {
				if channel.ClientCount != 0 || channel.InFlightCount != 0 {
					t.Fatalf("topic %s: %+v", topic.Name, channel)
				}
			}
			if err := core.DeleteTopic(topic.Name); err != nil && !errors.Is(err, broker.ErrNotFound) {
				t.Fatal(err)
			}
		}
	})
}
