package main

import (
	"io"
	"net/http"
	"testing"

	"nsq/internal/version"
)

// The message takes the place of %s, escaped, and nothing else of the address changes.
func TestGetAddress(t *testing.T) {
	for _, test := range []struct{ template, message, want string }{
		{"http://h/?d=%s", "a b&c=d/\xc3\xbc%s%20", "http://h/?d=a+b%26c%3Dd%2F%C3%BC%25s%2520"},
		{"http://h/?e=%20&d=%s&f=100%&g=%d%v%%", "x", "http://h/?e=%20&d=x&f=100%&g=%d%v%%"},
		{"http://h/%s/%2F", "\x00\xff", "http://h/%00%FF/%2F"},
	} {
		r, err := newGets([]string{test.template}, http.Header{})
		if err != nil {
			t.Errorf("%q: %v", test.template, err)
			continue
		}
		req, err := r.build(0, []byte(test.message))
		if err != nil || req.URL.String() != test.want || req.Method != "GET" || req.Body != nil {
			t.Errorf("%q: %v, error %v, want %q", test.template, req, err, test.want)
		}
		if _, ok := req.Header["Content-Type"]; ok {
			t.Errorf("a GET has a Content-Type: %v", req.Header)
		}
	}
}

// Headers are what was asked for, and requests do not share them.
func TestHeaders(t *testing.T) {
	headers, err := parseHeaders([]string{"x-one: 1", "X-One :  a:b ", "host: example.org", "USER-AGENT: me", "content-type: text/x"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newPosts([]string{"http://h/"}, headers, "text/y")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		req, err := r.build(0, []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"X-One": "a:b", "User-Agent": "me", "Content-Type": "text/x", "Accept-Encoding": "gzip", "Host": "",
		} {
			if got := req.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if req.Host != "example.org" || req.URL.Host != "h" || req.ContentLength != 4 {
			t.Errorf("Host %q to %q with %d bytes", req.Host, req.URL.Host, req.ContentLength)
		}
		if body, err := io.ReadAll(req.Body); err != nil || string(body) != "body" {
			t.Errorf("body %q, error %v", body, err)
		}
		req.Header.Set("X-One", "other")
	}

	r, err = newPosts([]string{"http://h/"}, http.Header{}, "text/y")
	if err != nil {
		t.Fatal(err)
	}
	req, err := r.build(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := req.Header; got.Get("User-Agent") != "nsq_to_http v"+version.Version || got.Get("Content-Type") != "text/y" || req.Host != "h" {
		t.Errorf("headers %v, Host %q", got, req.Host)
	}
}

// Which statuses are a success depends on the method.
func TestSuccess(t *testing.T) {
	gets, posts := &requests{method: http.MethodGet}, &requests{method: http.MethodPost}
	for status, want := range map[int][2]bool{
		200: {true, true}, 201: {false, true}, 204: {false, true}, 299: {false, true},
		100: {}, 199: {}, 300: {}, 302: {}, 304: {}, 400: {}, 404: {}, 500: {}, 503: {},
	} {
		if got := [2]bool{gets.success(status), posts.success(status)}; got != want {
			t.Errorf("%d: success of GET and POST %v, want %v", status, got, want)
		}
	}
}

// Sets of statuses, as they are given and shown.
func TestStatuses(t *testing.T) {
	for text, want := range map[string]struct {
		ok      bool
		in, out int
	}{
		"400":         {true, 400, 401},
		"400,413-415": {true, 414, 412},
		"300-599":     {true, 599, 200},
		"":            {true, 0, 400},
		"400-399":     {}, "400,": {}, ",": {}, "200": {}, "299-400": {}, "599-600": {}, "x": {}, "-400": {}, "400-": {}, "4 00": {},
		"99999999999999999999": {},
	} {
		set := statuses{{1, 2}}
		err := set.Set(text)
		switch {
		case (err == nil) != want.ok:
			t.Errorf("%q: error %v", text, err)
		case err != nil:
			if set.String() != "1-2" {
				t.Errorf("%q has changed the set to %v in spite of the error", text, set)
			}
		case set.String() != text || want.in > 0 && !set.contain(want.in) || set.contain(want.out):
			t.Errorf("%q: is %q; has %d: %v, has %d: %v", text, set.String(), want.in, set.contain(want.in), want.out, set.contain(want.out))
		}
	}
}
