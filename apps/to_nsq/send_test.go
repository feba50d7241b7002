package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/publish"
)

// fakeNSQD takes messages as the test says.
type fakeNSQD struct {
	fail    func(call int) error // what is wrong with the nsqd at its n-th call, from 1; nil: nothing
	tooLong int                  // a message of so many bytes is refused; 0: none is
	tooMuch int                  // a batch of so many bytes is refused; 0: none is
	got     []string
	calls   int
	when    []time.Time
	closed  bool // hung up, after a refusal
}

func (f *fakeNSQD) Publish(_ string, body []byte) error { return f.take([][]byte{body}) }

func (f *fakeNSQD) MultiPublish(_ string, bodies [][]byte) error { return f.take(bodies) }

func (f *fakeNSQD) Stop() {}

func (f *fakeNSQD) take(bodies [][]byte) error {
	f.calls++
	f.when = append(f.when, time.Now())
	if f.closed {
		return nsq.ErrNotConnected
	}
	if f.fail != nil {
		if err := f.fail(f.calls); err != nil {
			return err
		}
	}
	size := 0
	for _, body := range bodies {
		size += len(body)
		if f.tooLong > 0 && len(body) >= f.tooLong {
			f.closed = true
			return nsq.ErrProtocol{Reason: "E_BAD_MESSAGE message too big"}
		}
	}
	if f.tooMuch > 0 && size >= f.tooMuch && len(bodies) > 1 {
		f.closed = true
		return nsq.ErrProtocol{Reason: "E_BAD_BODY MPUB body too big"}
	}
	for _, body := range bodies {
		f.got = append(f.got, string(body))
	}
	return nil
}

func targetOf(address string, f *fakeNSQD, logged *strings.Builder) *target {
	nsqd, err := publish.NewTarget(func() (publish.Producer, error) {
		f.closed = false
		return f, nil
	})
	if err != nil {
		panic(err) // a fake one can always be made
	}
	return &target{address: address, topic: "t", log: log.New(logged, "", 0), nsqd: nsqd}
}

func bodies(texts ...string) (batch [][]byte) {
	for _, text := range texts {
		batch = append(batch, []byte(text))
	}
	return batch
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A message that is refused is told of and counted; all others of its batch are published, once, in
// order.
func TestRefusedMessage(t *testing.T) {
	for _, test := range []struct {
		name             string
		tooLong, tooMuch int
		batch, got       []string
		missing          string
	}{
		{"alone", 5, 0, []string{"loooong"}, nil, "ERROR: 1 messages not published to a:1"},
		{"first", 5, 0, []string{"loooong", "2", "3", "4", "5"}, []string{"2", "3", "4", "5"}, "ERROR: 1 messages not published to a:1"},
		{"last", 5, 0, []string{"1", "2", "3", "4", "loooong"}, []string{"1", "2", "3", "4"}, "ERROR: 1 messages not published to a:1"},
		{"several", 5, 0, []string{"1", "loooong", "3", "loooong"}, []string{"1", "3"}, "ERROR: 2 messages not published to a:1"},
		{"together too much", 0, 5, []string{"12", "34", "56", "78"}, []string{"12", "34", "56", "78"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var logged strings.Builder
			f := &fakeNSQD{tooLong: test.tooLong, tooMuch: test.tooMuch}
			s := newToAll([]*target{targetOf("a:1", f, &logged)}, 0, log.New(&logged, "", 0))
			published, err := s.send(t.Context(), bodies(test.batch...))
			if err != nil || published != len(test.got) || !slices.Equal(f.got, test.got) {
				t.Errorf("%d published, %q, error %v", published, f.got, err)
			}
			if got := text(s.missing()); got != test.missing {
				t.Errorf("missing %q, want %q", got, test.missing)
			}
			refused := len(test.batch) - len(test.got)
			if n := strings.Count(logged.String(), "ERROR: message of 7 bytes not published to a:1 - E_BAD_MESSAGE message too big\n"); n != refused {
				t.Errorf("log %q", logged.String())
			}
		})
	}
}

// A nsqd that is away for a short time gets what it missed, after pauses that grow; not so one that says
// no.
func TestRetries(t *testing.T) {
	refusedAccess := nsq.ErrProtocol{Reason: "E_UNAUTHORIZED AUTH failed"}
	for _, test := range []struct {
		name    string
		fail    func(call int) error
		calls   int
		elapsed time.Duration
		err     string
	}{
		{"well", func(int) error { return nil }, 1, 0, ""},
		{"back at the last moment", func(call int) error {
			if call < 4 {
				return nsq.ErrNotConnected
			}
			return nil
		}, 4, 700 * time.Millisecond, ""},
		{"trouble of its own", func(call int) error {
			if call < 2 {
				return nsq.ErrProtocol{Reason: "E_PUB_FAILED PUB failed disk full"}
			}
			return nil
		}, 2, 100 * time.Millisecond, ""},
		{"away", func(int) error { return nsq.ErrNotConnected }, 4, 700 * time.Millisecond, "not connected"},
		{"no", func(int) error { return refusedAccess }, 1, 0, "E_UNAUTHORIZED AUTH failed"},
	} {
		for _, mode := range []string{modeAll, modeFailover} {
			t.Run(test.name+" "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var logged strings.Builder
					f := &fakeNSQD{fail: test.fail}
					targets := []*target{targetOf("a:1", f, &logged)}
					var s sender = newToAll(targets, 3, log.New(&logged, "", 0))
					if mode == modeFailover {
						s = newToOne(targets, 3)
					}
					start := time.Now()
					published, err := s.send(t.Context(), bodies("x", "y"))
					if text(err) != test.err || f.calls != test.calls || time.Since(start) != test.elapsed {
						t.Errorf("error %v after %d calls, %v", err, f.calls, time.Since(start))
					}
					if (err == nil) != (published == 2) || (s.missing() == nil) != (err == nil) {
						t.Errorf("%d published, missing: %v", published, s.missing())
					}
				})
			})
		}
	}
}

// After the stop there are no retries.
func TestNoRetriesAfterStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var logged strings.Builder
	for _, newSender := range []func([]*target) sender{
		func(targets []*target) sender { return newToAll(targets, 9, log.New(&logged, "", 0)) },
		func(targets []*target) sender { return newToOne(targets, 9) },
	} {
		f := &fakeNSQD{fail: func(int) error { return nsq.ErrNotConnected }}
		if _, err := newSender([]*target{targetOf("a:1", f, &logged)}).send(ctx, bodies("x")); err == nil || f.calls != 1 {
			t.Errorf("error %v after %d calls", err, f.calls)
		}
	}
}

// Of several nsqd one that fails gets no more, and does not stop the others; what it has not got is
// counted.
func TestToAllGoesOn(t *testing.T) {
	var logged strings.Builder
	good, bad := &fakeNSQD{}, &fakeNSQD{fail: func(call int) error {
		if call > 1 {
			return errors.New("refused")
		}
		return nil
	}}
	s := newToAll([]*target{targetOf("bad:1", bad, &logged), targetOf("good:1", good, &logged)}, 0, log.New(&logged, "", 0))
	for i := range 4 {
		if published, err := s.send(t.Context(), bodies(fmt.Sprint(i), "x")); err != nil || published != 2 {
			t.Errorf("%d published, error %v", published, err)
		}
	}
	if len(good.got) != 8 || len(bad.got) != 2 || bad.calls != 2 {
		t.Errorf("good has %q, bad %q after %d calls", good.got, bad.got, bad.calls)
	}
	if got := text(s.missing()); got != "ERROR: 6 messages not published to bad:1" {
		t.Errorf("missing %q", got)
	}
	if logged.String() != "ERROR: nothing more is published to bad:1 - refused\n" {
		t.Errorf("log %q", logged.String())
	}
	good.fail = func(int) error { return errors.New("gone, too") }
	if published, err := s.send(t.Context(), bodies("x")); text(err) != "gone, too" || published != 0 {
		t.Errorf("%d published, error %v", published, err)
	}
}

// With failover every message is published once, by whoever can; a nsqd that failed is left alone.
func TestToOneFailsOver(t *testing.T) {
	var logged strings.Builder
	good, bad := &fakeNSQD{}, &fakeNSQD{fail: func(int) error { return errors.New("refused") }}
	s := newToOne([]*target{targetOf("bad:1", bad, &logged), targetOf("good:1", good, &logged)}, 0)
	for i := range 5 {
		if published, err := s.send(t.Context(), bodies(fmt.Sprint(i))); err != nil || published != 1 {
			t.Errorf("%d published, error %v", published, err)
		}
	}
	if got := strings.Join(good.got, ""); got != "01234" || bad.calls != 1 || s.missing() != nil {
		t.Errorf("good has %q, bad was called %d times, missing: %v", got, bad.calls, s.missing())
	}
	good.fail = bad.fail
	if _, err := s.send(t.Context(), bodies("x", "y")); err == nil || text(s.missing()) != "ERROR: 2 messages not published" {
		t.Errorf("error %v, missing: %v", err, s.missing())
	}
}

// A nsqd that fails while a batch is being taken apart gets the rest of it later: nothing is lost, and
// what it had is not sent again.
func TestFailureAfterRefusal(t *testing.T) {
	for failing := 2; failing <= 7; failing++ { // the first call is refused
		synctest.Test(t, func(t *testing.T) {
			var logged strings.Builder
			f := &fakeNSQD{tooLong: 5, fail: func(call int) error {
				if call == failing {
					return nsq.ErrNotConnected
				}
				return nil
			}}
			s := newToAll([]*target{targetOf("a:1", f, &logged)}, 1, log.New(&logged, "", 0))
			published, err := s.send(t.Context(), bodies("1", "2", "loooong", "4", "5", "6"))
			if err != nil || published != 5 || !slices.Equal(f.got, []string{"1", "2", "4", "5", "6"}) {
				t.Errorf("failure at call %d: %d published, %q, error %v", failing, published, f.got, err)
			}
			if got := text(s.missing()); got != "ERROR: 1 messages not published to a:1" {
				t.Errorf("failure at call %d: missing %q", failing, got)
			}
		})
	}
}
