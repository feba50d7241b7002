package httpd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// How a body is divided into messages, in both forms.
func TestMPubMessages(t *testing.T) {
	long := strings.Repeat("l", maxMsgSize)
	medium := strings.Repeat("m", 20_000) // more than the reader's buffer
	tests := []struct {
		name, query, body string
		want              []string
	}{
		{"lines", "", "a\nb\nc", []string{"a", "b", "c"}},
		{"last newline", "", "a\nb\nc\n", []string{"a", "b", "c"}},
		{"empty lines", "", "a\n\n\nb", []string{"a", "b"}},
		{"only empty lines", "", "\n\n", nil},
		{"nothing", "", "", nil},
		{"carriage returns stay", "", "a\r\nb\r\n", []string{"a\r", "b\r"}},
		{"lone carriage return", "", "\r\n", []string{"\r"}},
		{"longest lines", "", long + "\n" + long, []string{long, long}},
		{"lines of many lengths", "", medium + "\na\n" + medium + medium + "\n\nb", []string{medium, "a", medium + medium, "b"}},
		{"largest body", "", strings.Repeat(medium[:249]+"\n", maxBodySize/250), slices.Repeat([]string{medium[:249]}, maxBodySize/250)},
		{"no binary", "&binary=false", "a\nb", []string{"a", "b"}},
		{"binary 0", "&binary=0", "a\nb", []string{"a", "b"}},
		{"defer means nothing", "&defer=no", "a", []string{"a"}},
		{"binary", "&binary=true", mpubBody("a\nb", "\x00\x01", "c"), []string{"a\nb", "\x00\x01", "c"}},
		{"binary 1", "&binary=1", mpubBody("a"), []string{"a"}},
		{"binary empty", "&binary=", mpubBody("a"), []string{"a"}},
		{"binary shouted", "&binary=TRUE", mpubBody("a"), []string{"a"}},
		{"more than announced", "&binary=true", mpubBody("a", "b") + "c", []string{"a", "b"}},
		{"sizes around what is trusted", "&binary=true",
			mpubBody(long[:trusted], "a", long[:trusted+1], medium), []string{long[:trusted], "a", long[:trusted+1], medium}},
		{"longest messages", "&binary=true", mpubBody(long, long), []string{long, long}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := start(t, 5000)
			in := n.subscribe("t", "c", 5000)
			n.post("/mpub?topic=t"+test.query, test.body).expect(t, 200, "OK")
			n.send("POST", "/mput?topic=t"+test.query, unsized{strings.NewReader(test.body)}).expect(t, 200, "OK")
			in.expect(t, slices.Concat(test.want, test.want)...)
		})
	}
}

// Every way in which a /mpub is refused, and which of two is reported. Nothing of it is published.
func TestMPubRefuses(t *testing.T) {
	n := start(t, 100)
	long := strings.Repeat("l", maxMsgSize)
	tooMuch := strings.Repeat("a\n", maxBodySize/2) + "b"
	const binary = "?topic=t&binary=true"
	tests := []struct {
		name, query, body string
		status            int
		code              string
	}{
		{"bad escape", "?topic=%zz", "x", 400, "INVALID_REQUEST"},
		{"no topic", "?binary=true", "x", 400, "MISSING_ARG_TOPIC"},
		{"empty topic", "?topic=", "x", 400, "INVALID_TOPIC"},
		{"bad topic before the body", "?topic=a*b&binary=true", "", 400, "INVALID_TOPIC"},
		{"too much", "?topic=t", tooMuch, 413, "BODY_TOO_BIG"},
		{"too much in one line", "?topic=t", strings.Repeat("l", maxBodySize+1), 413, "BODY_TOO_BIG"},
		{"long line", "?topic=t", "ok\n" + long + "l\nok", 413, "MSG_TOO_BIG"},
		{"long last line", "?topic=t", "ok\n" + long + "l", 413, "MSG_TOO_BIG"},
		{"long line as long as may be", "?topic=t", strings.Repeat("l", maxBodySize), 413, "MSG_TOO_BIG"},
		{"no count", binary, "", 413, "BAD_BODY"},
		{"half a count", binary, "abc", 413, "BAD_BODY"},
		{"count of 0", binary, numbers(0), 413, "BAD_BODY"},
		{"negative count", binary, numbers(-1), 413, "BAD_BODY"},
		{"count that no body can hold", binary, numbers((maxBodySize-4)/5 + 1), 413, "BAD_BODY"},
		{"greatest count", binary, numbers((maxBodySize - 4) / 5), 413, "BAD_MESSAGE"},
		{"no size", binary, numbers(1), 413, "BAD_MESSAGE"},
		{"half a size", binary, numbers(1) + "abc", 413, "BAD_MESSAGE"},
		{"size of 0", binary, numbers(1, 0), 413, "BAD_MESSAGE"},
		{"negative size", binary, numbers(1, -5) + "abcde", 413, "BAD_MESSAGE"},
		{"size over the limit", binary, mpubBody(long + "l"), 413, "BAD_MESSAGE"},
		{"greatest size", binary, numbers(1, math.MaxInt32), 413, "BAD_MESSAGE"},
		{"no message", binary, numbers(1, 5), 413, "BAD_MESSAGE"},
		{"half a message", binary, numbers(1, 5) + "abc", 413, "BAD_MESSAGE"},
		{"half a large message", binary, numbers(1, maxMsgSize) + "abc", 413, "BAD_MESSAGE"},
		{"second message missing", binary, numbers(2, 1) + "a", 413, "BAD_MESSAGE"},
		{"too much in binary", binary, mpubBody(long, long, long), 413, "BODY_TOO_BIG"},
		{"too much by one", binary, mpubBody(long, long, long[:maxBodySize-2*maxMsgSize-16+1]), 413, "BODY_TOO_BIG"},
	}
	for _, path := range []string{"/mpub", "/mput"} {
		for _, test := range tests {
			t.Run(path+" "+test.name, func(t *testing.T) {
				n.send("POST", path+test.query, unsized{strings.NewReader(test.body)}).expectCode(t, test.status, test.code)
				n.post(path+test.query, test.body).expectCode(t, test.status, test.code)
			})
		}
	}
	if stats := n.topicStats("t"); stats.MessageCount != 0 || stats.Depth != 0 {
		t.Errorf("refused requests published: %+v", stats)
	}
	n.post("/mpub?topic=t&binary=true", mpubBody(long, long, long[:maxBodySize-2*maxMsgSize-16])).expect(t, 200, "OK")
}

// A declared length over the limit is refused before the query, and before the body is read.
func TestMPubRefusesByDeclaredLength(t *testing.T) {
	n := start(t, 100)
	answer := n.raw("POST /mpub?topic=%zz HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999999\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 413 ") || !strings.HasSuffix(answer, `{"message":"BODY_TOO_BIG"}`) {
		t.Errorf("answer %q", answer)
	}
}

// A /mpub creates its topic before it looks at the body, other than a /pub.
func TestMPubCreatesTheTopicFirst(t *testing.T) {
	n := start(t, 100)
	n.post("/mpub?topic=t&binary=true", "").expectCode(t, 413, "BAD_BODY")
	if got := n.topicNames(); !slices.Equal(got, []string{"t"}) {
		t.Errorf("topics %q", got)
	}
}

func TestMPubWarnsOfOddBinary(t *testing.T) {
	n := start(t, 100)
	for _, value := range []string{"true", "1", "false", "0", "yes"} {
		n.post("/mpub?topic=t&binary="+value, mpubBody("abc"))
	}
	const warning = "WARNING: deprecated value 'yes' used for /mpub binary param\n"
	if got := n.log.String(); !strings.Contains(got, warning) || strings.Count(got, "deprecated") != 1 {
		t.Errorf("the log wants one warning:\n%s", got)
	}
}

// A peer that announces much and sends little costs little.
func TestSizesReserveNoMemory(t *testing.T) {
	const message, rounds = 64 << 20, 16
	limits := protocol.MPubLimits{MaxBody: 2 * message, MaxMessage: message}
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			f()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / rounds
	}
	tests := map[string]func(){
		"binary": func() {
			r := bufio.NewReader(strings.NewReader(numbers(1, message) + "abc"))
			if _, err := readBinary(new(broker.Batch), r, limits); !errors.Is(err, errBadMessage) {
				t.Errorf("error %v", err)
			}
		},
		"long line": func() {
			limits := protocol.MPubLimits{MaxBody: message, MaxMessage: 1000}
			r := bufio.NewReader(io.LimitReader(zeros{}, message))
			if err := readLines(new(broker.Batch), r, limits); !errors.Is(err, errMsgTooBig) {
				t.Errorf("error %v", err)
			}
		},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			if got := allocated(f); got > 4*trusted {
				t.Errorf("%d bytes allocated", got)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

var fuzzLimits = protocol.MPubLimits{MaxBody: 100, MaxMessage: 20}

// Lines are those of bytes.Split, within the limits, whatever the buffer holds at a time.
func FuzzReadLines(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\n\n", "a\r\n", strings.Repeat("x", 21), strings.Repeat("x", 20) + "\n", strings.Repeat("\n", 101)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		limited := body[:min(len(body), int(fuzzLimits.MaxBody)+1)]
		batch := new(broker.Batch)
		err := readLines(batch, bufio.NewReaderSize(bytes.NewReader(limited), 16), fuzzLimits)

		var want error
		messages, taken := 0, 0
		for line := range bytes.SplitAfterSeq(limited, []byte("\n")) {
			taken += len(line)
			length := len(bytes.TrimSuffix(line, []byte("\n")))
			if taken > int(fuzzLimits.MaxBody) {
				want = errBodyTooBig
				break
			}
			if length > int(fuzzLimits.MaxMessage) {
				want = errMsgTooBig
				break
			}
			if length > 0 {
				messages++
			}
		}
		if !errors.Is(err, want) || batch.Len() != messages {
			t.Errorf("%d messages and %v, want %d and %v", batch.Len(), err, messages, want)
		}
	})
}

// Whatever the bytes, a body is understood as it was written, or refused.
func FuzzReadBinary(f *testing.F) {
	for _, seed := range []string{"", "ab", numbers(0), numbers(1, 0), numbers(2, 1) + "a", mpubBody("a", "bc"), numbers(-1, -1)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		batch := new(broker.Batch)
		taken, err := readBinary(batch, bufio.NewReaderSize(bytes.NewReader(body), 16), fuzzLimits)
		switch {
		case err == nil:
			if int(taken) > len(body) || batch.Len() == 0 {
				t.Errorf("%d messages of %d bytes from a body of %d", batch.Len(), taken, len(body))
			}
		case !errors.Is(err, errBadBody) && !errors.Is(err, errBadMessage):
			t.Errorf("unexpected error %v", err)
		}
	})
}
