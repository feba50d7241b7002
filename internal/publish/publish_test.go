package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsqio/go-nsq"
)

// node is a fake nsqd that refuses messages with an x and batches of more than most bytes.
type node struct {
	most     int
	lostFrom int   // command with which the connection breaks; 0: none
	failing  error // of every new producer

	commands  []string
	published []string
	producers int
	open      int
}

func (n *node) connect() (Producer, error) {
	if n.failing != nil {
		return nil, n.failing
	}
	n.producers++
	n.open++
	return &producer{node: n}, nil
}

type producer struct {
	node *node
	over bool // the nsqd has hung up
}

func (p *producer) Publish(topic string, body []byte) error {
	return p.command("PUB", topic, [][]byte{body}, "E_BAD_MESSAGE PUB message too big")
}

func (p *producer) MultiPublish(topic string, bodies [][]byte) error {
	return p.command("MPUB", topic, bodies, "E_BAD_BODY MPUB body too big")
}

func (p *producer) command(name, topic string, bodies [][]byte, refusal string) error {
	n := p.node
	if p.over {
		return nsq.ErrNotConnected
	}
	var texts []string
	for _, body := range bodies {
		texts = append(texts, string(body))
	}
	all := strings.Join(texts, "")
	n.commands = append(n.commands, fmt.Sprint(name, " ", topic, " ", strings.Join(texts, ",")))
	switch {
	case n.lostFrom > 0 && len(n.commands) >= n.lostFrom:
		p.over = true
		return nsq.ErrNotConnected
	case strings.Contains(all, "x") || len(all) > n.most:
		p.over = true
		return nsq.ErrProtocol{Reason: refusal}
	case strings.Contains(all, "?"):
		return nsq.ErrProtocol{Reason: "E_MPUB_FAILED MPUB failed"}
	}
	n.published = append(n.published, texts...)
	return nil
}

func (p *producer) Stop() { p.node.open-- }

// What the nsqd takes is published once and in order; each message has its own result, and only those
// that are refused alone are refused.
func TestPublish(t *testing.T) {
	for _, test := range []struct {
		name      string
		messages  string // each a word
		lostFrom  int
		commands  []string
		published string
		results   string // of each: o published, r refused, l lost, f failed
	}{
		{name: "one", messages: "a", commands: []string{"PUB t a"}, published: "a", results: "o"},
		{name: "batch", messages: "a b c", commands: []string{"MPUB t a,b,c"}, published: "a b c", results: "ooo"},
		{
			name: "one is refused", messages: "a b x d",
			commands:  []string{"MPUB t a,b,x,d", "MPUB t a,b", "MPUB t x,d", "PUB t x", "PUB t d"},
			published: "a b d", results: "ooro",
		},
		{name: "first is refused", messages: "x b", commands: []string{"MPUB t x,b", "PUB t x", "PUB t b"}, published: "b", results: "ro"},
		{name: "refused alone", messages: "x", commands: []string{"PUB t x"}, results: "r"},
		{
			name: "all together are too many", messages: "aaa bbb ccc",
			commands: []string{"MPUB t aaa,bbb,ccc", "PUB t aaa", "MPUB t bbb,ccc"}, published: "aaa bbb ccc", results: "ooo",
		},
		{name: "lost", messages: "a b", lostFrom: 1, commands: []string{"MPUB t a,b"}, results: "ll"},
		{
			name: "lost in between", messages: "x b c d", lostFrom: 3,
			commands: []string{"MPUB t x,b,c,d", "MPUB t x,b", "PUB t x"}, results: "llll",
		},
		{
			name: "lost after a half", messages: "a b x d", lostFrom: 3,
			commands: []string{"MPUB t a,b,x,d", "MPUB t a,b", "MPUB t x,d"}, published: "a b", results: "ooll",
		},
		{name: "nsqd in trouble", messages: "a ?", commands: []string{"MPUB t a,?"}, results: "ff"},
		{name: "nothing", messages: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &node{most: 7, lostFrom: test.lostFrom}
			target, err := NewTarget(n.connect)
			if err != nil {
				t.Fatal(err)
			}
			var bodies [][]byte
			for word := range strings.FieldsSeq(test.messages) {
				bodies = append(bodies, []byte(word))
			}
			results := ""
			for _, err := range target.Publish("t", bodies) {
				results += kind(err)
			}
			if results != test.results || !slices.Equal(n.commands, test.commands) || strings.Join(n.published, " ") != test.published {
				t.Errorf("results %q, want %q; commands %q, want %q; published %q, want %q",
					results, test.results, n.commands, test.commands, n.published, test.published)
			}
			target.Stop()
			if n.open != 0 {
				t.Errorf("%d producers are open after Stop", n.open)
			}
		})
	}
}

func kind(err error) string {
	switch {
	case err == nil:
		return "o"
	case Refused(err) && Answered(err):
		return "r"
	case errors.Is(err, nsq.ErrNotConnected) && !Answered(err):
		return "l"
	case Answered(err):
		return "f"
	}
	return err.Error()
}

// The connection is kept while all goes well, and is a new one after a failure.
func TestReconnect(t *testing.T) {
	n := &node{most: 7}
	target, err := NewTarget(n.connect)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Stop()
	send := func(body string) error { return target.Publish("t", [][]byte{[]byte(body)})[0] }
	for range 3 {
		if err := send("a"); err != nil || n.producers != 1 {
			t.Fatalf("%v, %d producers", err, n.producers)
		}
	}
	n.failing = errors.New("no way")
	if err := send("x"); !Refused(err) {
		t.Errorf("error %v, want a refusal", err)
	}
	if err := send("b"); !errors.Is(err, n.failing) {
		t.Errorf("error %v, want %v", err, n.failing)
	}
	n.failing = nil
	if err := send("c"); err != nil || n.producers != 2 || n.open != 1 {
		t.Errorf("error %v, %d producers, %d open; want 2 and 1", err, n.producers, n.open)
	}
	if _, err := NewTarget((&node{failing: errors.New("bad options")}).connect); err == nil {
		t.Error("no error for options that make no producer")
	}
}
