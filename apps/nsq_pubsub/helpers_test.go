package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nsq/internal/testutil"
	"nsq/internal/utility"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// After a lost connection go-nsq sleeps for lookupd_poll_interval, whatever happens.
		goleak.IgnoreAnyFunction("github.com/nsqio/go-nsq.(*Consumer).onConnClose.func1"),
		// It also leaves the timer of a stop behind, which ends by itself.
		goleak.IgnoreAnyFunction("time.goFunc"))
}

// run is the program inside the test.
type run struct {
	t    *testing.T
	logs testutil.Buffer
	stop context.CancelFunc
	code chan int
	url  string
}

var listening = regexp.MustCompile(`(HTTPS?): listening on (\S+)\n`)

// execute runs the program to its end, unless that takes a stop.
func execute(t *testing.T, args ...string) *run {
	ctx, stop := context.WithCancel(context.Background())
	r := &run{t: t, stop: stop, code: make(chan int, 1)}
	std := utility.Streams{In: strings.NewReader(""), Out: &r.logs, Err: &r.logs}
	go func() { r.code <- utility.Execute(ctx, newPubSub().program(), append([]string{name}, args...), std) }()
	return r
}

// start runs the program until the test ends, or it is stopped before.
func start(t *testing.T, args ...string) *run {
	t.Helper()
	r := execute(t, append([]string{"--http-address=127.0.0.1:0"}, args...)...)
	t.Cleanup(r.end)
	r.logs.Await(t, ": listening on ")
	found := listening.FindStringSubmatch(r.logs.String())
	r.url = strings.ToLower(found[1]) + "://" + found[2]
	return r
}

// end stops the program, which has to be in order then.
func (r *run) end() {
	r.stop()
	select {
	case code := <-r.code:
		if code != 0 {
			r.t.Errorf("code %d, log:\n%s", code, r.logs.String())
		}
		r.code <- 0 // for the cleanup
	case <-time.After(testutil.Patience):
		r.t.Error("does not stop")
	}
}

// plain has no keep-alive: connections are counted.
var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask makes a request and returns status and body of the answer.
func (r *run) ask(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := plain.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(answer))
}

// reader is the other end of a stream.
type reader struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Reader
	leave context.CancelFunc
}

func (r *run) subscribe(query string, headers ...string) *reader {
	r.t.Helper()
	ctx, leave := context.WithTimeout(context.Background(), testutil.Patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/sub?"+query, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := plain.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		leave()
		resp.Body.Close()
	})
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("subscribe to %s: %s", query, resp.Status)
	}
	return &reader{t: r.t, resp: resp, lines: bufio.NewReader(resp.Body), leave: leave}
}

func (r *reader) line() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read stream: %v", err)
	}
	return line
}

// next is the next message; heartbeats are left out.
func (r *reader) next() record {
	r.t.Helper()
	for {
		line := r.line()
		if line == "\n" {
			continue
		}
		var rec record
		decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&rec); err != nil {
			r.t.Fatalf("line %q: %v", line, err)
		}
		return rec
	}
}
