package httpd

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"nsq/internal/api"
	"nsq/nsqd/broker"
)

// A disk that fails shows in /ping and /stats, with the queue and without its path.
func TestPing(t *testing.T) {
	n := start(t, 0)
	n.get("/ping?topic=%zz").expect(t, 200, "OK")
	n.setUp("/topic/create?topic=t")
	n.breakDisk()
	n.post("/pub?topic=t", "x").expectCode(t, 503, "EXITING")

	const sick = "NOK - t: no such file or directory"
	r := n.get("/ping")
	r.expect(t, 500, sick)
	if got := r.header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if got := r.header.Get("X-NSQ-Content-Type"); got != "" {
		t.Errorf("X-NSQ-Content-Type %q", got)
	}
	if got := n.stats("").Health; got != sick {
		t.Errorf("health %q", got)
	}
	if text := n.get("/stats").body; !strings.Contains(text, "\nHealth: "+sick+"\n") {
		t.Errorf("statistics %s", text)
	}

	if err := os.Mkdir(n.path, 0o700); err != nil {
		t.Fatal(err)
	}
	n.post("/pub?topic=t", "x").expect(t, 200, "OK")
	n.get("/ping").expect(t, 200, "OK")
}

func TestHealthTellsNoPaths(t *testing.T) {
	path := &fs.PathError{Op: "write", Path: "/secret/t.diskqueue.000000.dat", Err: syscall.ENOSPC}
	tests := []struct {
		unwell map[string]error
		want   string
	}{
		{map[string]error{"t": path}, "NOK - t: no space left on device"},
		{map[string]error{"t:c": fmt.Errorf("sync /secret: %w", path)}, "NOK - t:c: no space left on device"},
		{map[string]error{"t": &fs.PathError{Op: "read", Path: "/secret/t", Err: fs.ErrClosed}}, "NOK - t: file already closed"},
		{map[string]error{"metadata": &os.LinkError{Op: "rename", Old: "/secret/a", New: "/secret/b", Err: syscall.EIO}}, "NOK - metadata: input/output error"},
		{map[string]error{"t": errors.New("open /secret/t failed")}, "NOK - t: storage failed"},
		{map[string]error{"b": path, "a": syscall.EIO, "c": path}, "NOK - a: input/output error (and 2 more)"},
	}
	for _, test := range tests {
		health := new(broker.Health)
		for name, err := range test.unwell {
			health.Set(name, err)
		}
		if got := healthText(health.Err()); got != test.want {
			t.Errorf("%v: %q, want %q", test.unwell, got, test.want)
		}
	}
	if got := healthText(errors.New("/secret")); got != "NOK - storage failed" {
		t.Errorf("%q", got)
	}
}

func TestInfo(t *testing.T) {
	n := start(t, 1)
	r := n.get("/info?x=%zz")
	r.expect(t, 200, `{"version":"1.4.0","broadcast_address":"","hostname":"","http_port":0,"tcp_port":4150,"start_time":0,`+
		`"max_heartbeat_interval":0,"max_output_buffer_size":0,"max_output_buffer_timeout":0,"max_deflate_level":0,`+
		`"topology_zone":"","topology_region":""}`)
	if got := r.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("content type %q", got)
	}

	n = start(t, 1, func(c *Config) {
		c.Info = func() (api.Info, error) { return api.Info{}, errors.New("no host name") }
	})
	n.get("/info").expectCode(t, 500, "no host name")
}

// options is a stand-in for the daemon's settings.
func options(c *Config) {
	values := map[string]any{
		"log_prefix": "[nsqd] ", "tls_cert": "", "log_level": 2, "deflate": true, "enable_experiment": []string{}, "statsd_address": "<&>",
	}
	c.ConfigGet = func(key string) (any, bool) {
		value, ok := values[key]
		return value, ok
	}
	c.ConfigPut = func(key string, body []byte) (any, error) {
		switch {
		case key == "sync_timeout":
			return nil, errors.New("cannot lock settings")
		case key != "log_level":
			return nil, fmt.Errorf("%s: %w", key, ErrNotChangeable)
		case string(body) == "loud":
			return nil, fmt.Errorf("%s: %w", key, ErrBadValue)
		}
		return len(body), nil
	}
}

func TestGetOption(t *testing.T) {
	n := start(t, 1, options)
	const text, jsonType = "text/plain; charset=utf-8", "application/json; charset=utf-8"
	tests := []struct{ key, want, contentType string }{
		{"log_prefix", "[nsqd] ", text},
		{"tls_cert", "", ""},
		{"statsd_address", "<&>", text},
		{"log_level", "2", jsonType},
		{"deflate", "true", jsonType},
		{"enable_experiment", "[]", jsonType},
	}
	for _, test := range tests {
		r := n.get("/config/" + test.key)
		r.expect(t, 200, test.want)
		if got := r.header.Get("Content-Type"); got != test.contentType {
			t.Errorf("%s: content type %q, want %q", test.key, got, test.contentType)
		}
	}
	n.get("/config/nope").expectCode(t, 400, "INVALID_OPTION")
	n.get("/config/LOG_LEVEL").expectCode(t, 400, "INVALID_OPTION")
}

func TestPutOption(t *testing.T) {
	n := start(t, 1, options)
	put := func(key, body string) reply {
		return n.send(http.MethodPut, "/config/"+key, strings.NewReader(body))
	}
	tooBig := strings.Repeat("x", maxMsgSize+1)
	put("log_level", "debug").expect(t, 200, "5")
	put("log_level", strings.Repeat("x", maxMsgSize)).expect(t, 200, fmt.Sprint(maxMsgSize))
	put("log_level", "").expectCode(t, 413, "INVALID_VALUE")
	put("log_level", tooBig).expectCode(t, 413, "INVALID_VALUE")
	n.send(http.MethodPut, "/config/log_level", unsized{strings.NewReader(tooBig)}).expectCode(t, 413, "INVALID_VALUE")
	n.send(http.MethodPut, "/config/log_level", unsized{strings.NewReader("")}).expectCode(t, 413, "INVALID_VALUE")
	put("log_level", "loud").expectCode(t, 400, "INVALID_VALUE")
	put("nope", "x").expectCode(t, 400, "INVALID_OPTION")
	put("nope", "").expectCode(t, 413, "INVALID_VALUE")
	put("sync_timeout", "x").expectCode(t, 500, "INTERNAL_ERROR")
}

func TestSetBlockRate(t *testing.T) {
	defer runtime.SetBlockProfileRate(0)
	n := start(t, 1)
	put := func(query, contentType, body string) reply {
		t.Helper()
		req, err := http.NewRequest(http.MethodPut, n.server.URL+"/debug/setblockrate"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		n.server.Config.Handler.ServeHTTP(w, req)
		return reply{w.Code, w.Header(), w.Body.String()}
	}
	const form = "application/x-www-form-urlencoded"
	put("?rate=1000000", "", "").expect(t, 200, "")
	put("", form, "rate=1000000").expect(t, 200, "")
	put("?rate=x", form, "rate=1000000").expect(t, 200, "")
	put("?rate=abc", "", "").expect(t, 400, `invalid block rate : strconv.Atoi: parsing "abc": invalid syntax`)
	put("", "", "rate=1").expect(t, 400, `invalid block rate : strconv.Atoi: parsing "": invalid syntax`)
	put("", form, strings.Repeat("a", maxForm)+"&rate=1").expect(t, 400, `invalid block rate : strconv.Atoi: parsing "": invalid syntax`)
	if got := put("?rate=abc", "", "").header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
}

func TestFreeMemory(t *testing.T) {
	n := start(t, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n.post("/debug/freememory", "").expect(t, 200, "")
	runtime.ReadMemStats(&after)
	if after.NumForcedGC == before.NumForcedGC {
		t.Error("nothing was collected")
	}
}

// Every route has its methods, and only those.
func TestRoutes(t *testing.T) {
	n := start(t, 1)
	allowed := map[string]string{
		"/ping": "GET", "/info": "GET", "/stats": "GET", "/pub": "POST", "/mpub": "POST", "/put": "POST", "/mput": "POST",
		"/config/x": "GET, PUT", "/debug/setblockrate": "PUT", "/debug/freememory": "POST",
		"/debug/pprof/": "GET", "/debug/pprof/cmdline": "GET", "/debug/pprof/symbol": "GET, POST", "/debug/pprof/profile": "GET",
		"/debug/pprof/heap": "GET", "/debug/pprof/goroutine": "GET", "/debug/pprof/block": "GET", "/debug/pprof/threadcreate": "GET",
	}
	for _, action := range []string{"create", "delete", "empty", "pause", "unpause"} {
		allowed["/topic/"+action], allowed["/channel/"+action] = "POST", "POST"
	}
	for path, methods := range allowed {
		r := n.send(http.MethodDelete, path, nil)
		r.expectCode(t, 405, "METHOD_NOT_ALLOWED")
		for method := range strings.SplitSeq(methods, ", ") {
			if !strings.Contains(r.header.Get("Allow"), method) {
				t.Errorf("%s: Allow %q lacks %s", path, r.header.Get("Allow"), method)
			}
		}
		if got, want := strings.Count(r.header.Get("Allow"), ","), strings.Count(methods, ",")+1; got != want {
			t.Errorf("%s: Allow %q, want %s and OPTIONS", path, r.header.Get("Allow"), methods)
		}
	}
	for _, path := range []string{"/", "/nope", "/debug", "/config", "/config/", "/config/a/b", "/create_topic", "/delete_channel", "/debug/pprof/mutex"} {
		n.get(path).expectCode(t, 404, "NOT_FOUND")
	}
	if r := n.get("/debug/pprof/cmdline"); r.status != 200 || !strings.Contains(r.body, "httpd") {
		t.Errorf("pprof answers %d %q", r.status, r.body)
	}
}

var duration = regexp.MustCompile(` [0-9.]+[mµn]?s\n`)

// Publishing and profiling are not logged, everything else is.
func TestAccessLog(t *testing.T) {
	n := start(t, 100)
	n.post("/pub?topic=t", "x")
	n.post("/pub", "x")
	n.post("/mpub?topic=t", "x")
	n.post("/put?topic=t", "x")
	n.post("/mput?topic=t", "x")
	n.get("/debug/pprof/cmdline")
	if got := n.log.String(); strings.Contains(got, "pub") || strings.Contains(got, "/put") || strings.Contains(got, "pprof") {
		t.Errorf("logged:\n%s", got)
	}
	n.post("/topic/pause?topic=", "")
	n.get("/ping")
	for _, want := range []string{"INFO: 404 POST /topic/pause?topic= (127.0.0.1:", "INFO: 200 GET /ping (127.0.0.1:"} {
		if !strings.Contains(n.log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, n.log)
		}
	}
	if !duration.MatchString(n.log.String()) {
		t.Errorf("no duration in the log:\n%s", n.log)
	}
}

// Where TLS is required nothing is answered without it, and everything with it.
func TestTLSRequired(t *testing.T) {
	port := 4152
	n := start(t, 1, func(c *Config) {
		c.TLSRequired = true
		c.HTTPSPort = func() int { return port }
	})
	const refusal = `{"message": "TLS_REQUIRED", "https_port": 4152}`
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		for _, path := range []string{"/ping", "/pub?topic=t", "/nope", "/PING/"} {
			r := n.send(method, path, strings.NewReader("x"))
			r.expect(t, 403, refusal)
			if got := r.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
			if got := r.header.Get("X-NSQ-Content-Type"); got != "nsq; version=1.0" {
				t.Errorf("X-NSQ-Content-Type %q", got)
			}
		}
	}
	port = 0
	n.get("/ping").expect(t, 403, `{"message": "TLS_REQUIRED", "https_port": 0}`)
	if got := n.log.String(); strings.Contains(got, "403") {
		t.Errorf("refusals are logged:\n%s", got)
	}

	secure := httptest.NewTLSServer(n.server.Config.Handler)
	defer secure.Close()
	resp, err := secure.Client().Get(secure.URL + "/ping")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d over TLS", resp.StatusCode)
	}
}
