package httpx

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/log"
)

func gives(result any, err error) Handler {
	return func(*http.Request, httprouter.Params) (any, error) { return result, err }
}

func panics(*http.Request, httprouter.Params) (any, error) { panic("at the disco") }

// echoTopic answers the parameter topic.
func echoTopic(req *http.Request, _ httprouter.Params) (any, error) {
	params, err := ParseParams(req)
	if err != nil {
		return nil, err
	}
	topic, ok := params.Get("topic")
	if !ok {
		return nil, &Error{Status: http.StatusBadRequest, Message: "MISSING_ARG_TOPIC"}
	}
	return "topic=" + topic, nil
}

func testRouter(logger *log.Logger, options ...RouterOption) *Router {
	r := NewRouter(logger, options...)
	r.Plain("GET", "/ping", gives("OK", nil))
	r.Plain("GET", "/sick", gives(nil, &Error{Status: 500, Message: "NOK - disk <full>"}))
	r.Plain("PUT", "/nothing", gives(nil, nil))
	r.API("GET", "/info", gives(struct {
		Version string `json:"version"`
	}{"<1&2>"}, nil))
	r.API("GET", "/text", gives("<html>", nil))
	r.API("GET", "/bytes", gives([]byte("\x00\x01"), nil))
	r.API("GET", "/empty", gives("", nil))
	r.API("POST", "/pub", echoTopic, Unlogged())
	r.API("POST", "/topic/create", gives(nil, nil))
	r.API("GET", "/config/:opt", func(_ *http.Request, ps httprouter.Params) (any, error) { return ps.ByName("opt"), nil })
	r.API("PUT", "/config/:opt", gives(1, nil))
	r.API("GET", "/nan", gives(math.NaN(), nil))
	r.API("GET", "/refused", gives(nil, &Error{Status: 413, Message: "MSG_TOO_BIG"}))
	r.API("GET", "/failed", gives(nil, errors.New("secret path")))
	r.API("GET", "/panic", panics)
	r.Raw("GET", "/raw", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "tea")
	})
	r.Raw("GET", "/raw/panic", func(http.ResponseWriter, *http.Request, httprouter.Params) { panic("raw") })
	r.Raw("GET", "/raw/torn", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
		io.WriteString(w, strings.Repeat("x", 10000))
		panic("torn")
	})
	return r
}

const (
	textType = "Content-Type: text/plain; charset=utf-8\r\n"
	jsonType = "Content-Type: application/json; charset=utf-8\r\n"
	nsqLine  = "X-Nsq-Content-Type: nsq; version=1.0\r\n"
)

// Every answer to the byte.
func TestAnswers(t *testing.T) {
	internal := "HTTP/1.1 500 Internal Server Error\r\n" + jsonType + nsqLine + "Content-Length: 28\r\n\r\n" + `{"message":"INTERNAL_ERROR"}`
	notFound := "HTTP/1.1 404 Not Found\r\n" + jsonType + nsqLine + "Content-Length: 23\r\n\r\n" + `{"message":"NOT_FOUND"}`
	notAllowed := func(allow string) string {
		return "HTTP/1.1 405 Method Not Allowed\r\nAllow: " + allow + "\r\n" + jsonType + nsqLine +
			"Content-Length: 32\r\n\r\n" + `{"message":"METHOD_NOT_ALLOWED"}`
	}
	moved := func(location string) string {
		return "HTTP/1.1 301 Moved Permanently\r\nContent-Type: text/html; charset=utf-8\r\nLocation: " + location + "\r\n"
	}
	text := func(body, length string) string {
		return "HTTP/1.1 200 OK\r\n" + textType + nsqLine + "Content-Length: " + length + "\r\n\r\n" + body
	}
	const invalid = "HTTP/1.1 400 Bad Request\r\n" + jsonType + nsqLine + "Content-Length: 29\r\n\r\n" + `{"message":"INVALID_REQUEST"}`

	p := dial(t, start(t, testRouter(log.Discard()), log.Discard()))
	for _, test := range []struct{ method, target, want string }{
		{"GET", "/ping", "HTTP/1.1 200 OK\r\n" + textType + "Content-Length: 2\r\n\r\nOK"},
		{"GET", "/ping?%zz", "HTTP/1.1 200 OK\r\n" + textType + "Content-Length: 2\r\n\r\nOK"},
		{"GET", "http://h/ping", "HTTP/1.1 200 OK\r\n" + textType + "Content-Length: 2\r\n\r\nOK"},
		{"GET", "/p%69ng", "HTTP/1.1 200 OK\r\n" + textType + "Content-Length: 2\r\n\r\nOK"},
		{"GET", "/sick", "HTTP/1.1 500 Internal Server Error\r\n" + textType + "Content-Length: 17\r\n\r\nNOK - disk <full>"},
		{"PUT", "/nothing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},

		{"GET", "/info", "HTTP/1.1 200 OK\r\n" + jsonType + nsqLine + "Content-Length: 34\r\n\r\n" + `{"version":"\u003c1\u00262\u003e"}`},
		{"GET", "/text", text("<html>", "6")},
		{"GET", "/bytes", text("\x00\x01", "2")},
		{"GET", "/empty", "HTTP/1.1 200 OK\r\n" + nsqLine + "Content-Length: 0\r\n\r\n"},
		{"POST", "/topic/create", "HTTP/1.1 200 OK\r\n" + nsqLine + "Content-Length: 0\r\n\r\n"},
		{"GET", "/config/log_level", text("log_level", "9")},
		{"PUT", "/config/log_level", "HTTP/1.1 200 OK\r\n" + jsonType + nsqLine + "Content-Length: 1\r\n\r\n1"},
		{"GET", "/refused", "HTTP/1.1 413 Request Entity Too Large\r\n" + jsonType + nsqLine + "Content-Length: 25\r\n\r\n" + `{"message":"MSG_TOO_BIG"}`},
		{"GET", "/nan", internal},
		{"GET", "/failed", internal},
		{"GET", "/panic", internal},
		{"GET", "/raw", "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 3\r\n" + textType + "\r\ntea"},
		{"GET", "/raw/panic", internal},

		{"POST", "/pub?topic=t", text("topic=t", "7")},
		{"POST", "/pub?topic=", text("topic=", "6")},
		{"POST", "/pub?topic=a&topic=b", text("topic=a", "7")},
		{"POST", "/pub?topic=x%23ephemeral", text("topic=x#ephemeral", "17")},
		{"POST", "/pub?topic=x#ephemeral", text("topic=x#ephemeral", "17")},
		{"POST", "/pub?topic=%zz", invalid},
		{"POST", "/pub?topic=a;b", invalid},
		{"POST", "/pub?topic=a&x=%", invalid},

		{"GET", "/", notFound},
		{"GET", "/nowhere", notFound},
		{"GET", "/config", notFound},
		{"GET", "/config/", notFound},
		{"GET", "/config/a/b", notFound},
		{"GET", "/ping#x", notFound},
		{"OPTIONS", "/nowhere", notFound},
		{"POST", "/ping", notAllowed("GET, OPTIONS")},
		{"GET", "/topic/create", notAllowed("OPTIONS, POST")},
		{"DELETE", "/config/x", notAllowed("GET, OPTIONS, PUT")},
		{"OPTIONS", "/config/x", "HTTP/1.1 200 OK\r\nAllow: GET, OPTIONS, PUT\r\nContent-Length: 0\r\n\r\n"},
		{"OPTIONS", "*", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},

		{"GET", "/ping/?a=b", moved("/ping?a=b") + "Content-Length: 44\r\n\r\n<a href=\"/ping?a=b\">Moved Permanently</a>.\n\n"},
		{"GET", "//ping", moved("/ping") + "Content-Length: 40\r\n\r\n<a href=\"/ping\">Moved Permanently</a>.\n\n"},
		{"GET", "/x/../PING", moved("/ping") + "Content-Length: 40\r\n\r\n<a href=\"/ping\">Moved Permanently</a>.\n\n"},
		{"POST", "/pub/?topic=t", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /pub?topic=t\r\nContent-Length: 0\r\n\r\n"},
		{"POST", "/PUB", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /pub\r\nContent-Length: 0\r\n\r\n"},
		{"POST", "/ping/", notFound}, // no redirect to another method's route
	} {
		if got := p.request(test.method, test.target); got != test.want {
			t.Errorf("%s %s\ngot  %q\nwant %q", test.method, test.target, got, test.want)
		}
	}
	for _, target := range []string{"/ping", "/info", "/pub"} {
		if got := p.request("HEAD", target); !strings.HasPrefix(got, "HTTP/1.1 405 ") {
			t.Errorf("HEAD %s gives %q", target, got)
		}
	}
}

func TestAnswerHEAD(t *testing.T) {
	p := dial(t, start(t, testRouter(log.Discard(), AnswerHEAD()), log.Discard()))
	for target, want := range map[string]string{
		"/ping":  "HTTP/1.1 200 OK\r\n" + textType + "Content-Length: 2\r\n\r\n",
		"/empty": "HTTP/1.1 200 OK\r\n" + nsqLine + "\r\n",
		"/pub":   "HTTP/1.1 405 Method Not Allowed\r\nAllow: OPTIONS, POST\r\n" + jsonType + nsqLine + "Content-Length: 32\r\n\r\n",
	} {
		if got := p.request("HEAD", target); got != want {
			t.Errorf("HEAD %s\ngot  %q\nwant %q", target, got, want)
		}
	}
	if got := p.request("OPTIONS", "/ping"); !strings.Contains(got, "Allow: GET, HEAD, OPTIONS\r\n") {
		t.Errorf("OPTIONS /ping gives %q", got)
	}
}

// An answer that broke off must not look complete.
func TestTornAnswerBreaksConnection(t *testing.T) {
	s := start(t, testRouter(log.Discard()), log.Discard())
	p := dial(t, s)
	p.send("GET /raw/torn HTTP/1.1\r\nHost: h\r\n\r\n")
	resp, err := http.ReadResponse(p.reader, nil)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestAccessLog(t *testing.T) {
	logs := new(logBuffer)
	s := start(t, testRouter(logs.logger()), log.Discard())
	p := dial(t, s)
	for _, request := range []string{
		"GET /ping", "POST /topic/create?topic=t&channel=c", "GET /refused", "POST /pub?topic=%zz",
		"GET /nowhere", "POST /ping", "GET /panic", "GET /raw", "GET /raw/panic", "GET /failed", "GET /nan", "GET http://h/empty",
		// not logged:
		"POST /pub?topic=t", "GET /ping/", "OPTIONS /ping", "OPTIONS *",
	} {
		method, target, _ := strings.Cut(request, " ")
		p.request(method, target)
	}
	entry := func(start string) string {
		return "INFO: " + start + ` \(` + p.LocalAddr().String() + `\) [0-9.]+(ns|µs|ms|s)`
	}
	want := []string{
		entry("200 GET /ping"),
		entry(`200 POST /topic/create\?topic=t&channel=c`),
		entry("413 GET /refused"),
		`ERROR: failed to parse request params - invalid URL escape "%zz"`,
		entry("404 GET /nowhere"),
		entry("405 POST /ping"),
		"ERROR: panic in HTTP handler - at the disco",
		entry("500 GET /panic"),
		entry("418 GET /raw"),
		"ERROR: panic in HTTP handler - raw",
		entry("500 GET /raw/panic"),
		"ERROR: HTTP handler failed - secret path",
		entry("500 GET /failed"),
		"ERROR: failed to encode HTTP response - encode float64: json: unsupported value: NaN",
		entry("500 GET /nan"),
		entry("200 GET /empty"),
	}
	for _, pattern := range want {
		if n := logs.count(pattern); n != 1 {
			t.Errorf("%d lines match %s, want 1", n, pattern)
		}
	}
	const stacks = 2
	if n := logs.count("ERROR: goroutine .*router_test.go.*"); n != stacks {
		t.Errorf("%d stacks are logged, want %d", n, stacks)
	}
	if lines := logs.Log(); len(lines) != len(want)+stacks {
		t.Errorf("got %d lines, want %d:\n%s", len(lines), len(want)+stacks, strings.Join(lines, "\n"))
	}
}

// A peer cannot write log lines of any length it likes.
func TestAccessLogIsBounded(t *testing.T) {
	logs := new(logBuffer)
	req := httptest.NewRequest("GET", "/ping?"+strings.Repeat("x", 100_000), nil)
	req.Method = "GET"
	testRouter(logs.logger()).ServeHTTP(httptest.NewRecorder(), req)
	lines := logs.Log()
	if len(lines) != 1 || len(lines[0]) > maxLogged+200 || !strings.Contains(lines[0], "x... (") {
		t.Errorf("%d lines", len(lines))
	}
}

// A wrapped Error still decides the answer, and its cause stays inside.
func TestErrorIsFoundAndCauseIsKept(t *testing.T) {
	logs := new(logBuffer)
	r := NewRouter(logs.logger())
	r.API("GET", "/", func(*http.Request, httprouter.Params) (any, error) {
		return nil, errors.Join(errors.New("outer"), &Error{Status: 404, Message: "GONE", Cause: io.ErrUnexpectedEOF})
	})
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	if answer.Code != 404 || answer.Body.String() != `{"message":"GONE"}` {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
	if logs.count("ERROR: unexpected EOF") != 1 {
		t.Errorf("log: %q", logs.Log())
	}
	err := error(&Error{Message: "GONE", Cause: io.ErrUnexpectedEOF})
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "GONE (unexpected EOF)" {
		t.Errorf("error is %v", err)
	}
}

// No path or query makes the router itself fail.
func FuzzRouter(f *testing.F) {
	f.Add("GET", "/ping?a=b")
	f.Add("POST", "//pub/../PUB/?topic=%23")
	f.Add("GET", "/config/ſ/K")
	f.Add("OPTIONS", "*")
	f.Add("CONNECT", "h:1")
	r := testRouter(log.Discard())
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || target == "/raw/torn" {
			t.Skip()
		}
		req := &http.Request{Method: method, URL: u, Header: http.Header{}, Body: http.NoBody}
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, req)
		if answer.Code < 200 || answer.Code > 599 {
			t.Errorf("%s %s gives %d", method, target, answer.Code)
		}
	})
}

func TestProfiles(t *testing.T) {
	nsqd, nsqlookupd := NewRouter(log.Discard()), NewRouter(log.Discard())
	nsqd.MountProfiles()
	nsqlookupd.MountAllProfiles()
	for _, test := range []struct {
		method, path     string
		nsqd, nsqlookupd int
	}{
		{"GET", "/debug/pprof/", 200, 200},
		{"GET", "/debug/pprof", 301, 200},
		{"GET", "/debug/pprof/cmdline", 200, 200},
		{"GET", "/debug/pprof/symbol", 200, 200},
		{"POST", "/debug/pprof/symbol", 200, 200},
		{"GET", "/debug/pprof/heap?debug=1", 200, 200},
		{"GET", "/debug/pprof/goroutine?debug=2", 200, 200},
		{"GET", "/debug/pprof/block", 200, 200},
		{"GET", "/debug/pprof/threadcreate", 200, 200},
		{"GET", "/debug/pprof/allocs", 404, 200},
		{"GET", "/debug/pprof/mutex", 404, 200},
		{"GET", "/debug/pprof/trace?seconds=0.01", 404, 200},
		{"GET", "/debug/pprof/other", 404, 404},
		{"POST", "/debug/pprof/heap", 405, 405},
	} {
		for router, want := range map[*Router]int{nsqd: test.nsqd, nsqlookupd: test.nsqlookupd} {
			answer := httptest.NewRecorder()
			router.ServeHTTP(answer, httptest.NewRequest(test.method, test.path, strings.NewReader("")))
			if answer.Code != want {
				t.Errorf("%s %s gives %d, want %d", test.method, test.path, answer.Code, want)
			}
			if want == 200 && answer.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s has no nosniff", test.method, test.path)
			}
		}
	}
	answer := httptest.NewRecorder()
	nsqlookupd.ServeHTTP(answer, httptest.NewRequest("GET", "/debug/pprof", nil))
	if body := answer.Body.String(); !strings.HasPrefix(body, `<base href="/debug/pprof/">`) || !strings.Contains(body, "goroutine") {
		t.Errorf("index is %.100q", body)
	}
}
