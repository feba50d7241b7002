package httpx

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadBody(t *testing.T) {
	broken := errors.New("broken")
	const limit = 100_000
	exact := strings.Repeat("x", limit)
	for _, test := range []struct {
		name     string
		body     io.Reader
		declared int64
		want     string
		err      error
	}{
		{"none", http.NoBody, 0, "", nil},
		{"declared", strings.NewReader("hello"), 5, "hello", nil},
		{"declared, end told late", iotest.OneByteReader(strings.NewReader("hello")), 5, "hello", nil},
		{"declared, end told with the data", iotest.DataErrReader(strings.NewReader("hello")), 5, "hello", nil},
		{"undeclared", strings.NewReader("hello"), -1, "hello", nil},
		{"undeclared, empty", strings.NewReader(""), -1, "", nil},
		{"limit, declared", strings.NewReader(exact), limit, exact, nil},
		{"limit, undeclared", strings.NewReader(exact), -1, exact, nil},
		{"over, declared", iotest.ErrReader(errors.New("must not be read")), limit + 1, "", ErrDeclaredTooBig},
		{"over, undeclared", strings.NewReader(exact + "x"), -1, "", ErrTooBig},
		{"endless", endless{}, -1, "", ErrTooBig},
		{"broken", io.MultiReader(strings.NewReader("he"), iotest.ErrReader(broken)), 5, "", broken},
	} {
		req := httptest.NewRequest("POST", "/", test.body)
		req.ContentLength = test.declared
		got, err := ReadBody(req, limit)
		if string(got) != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: got %d bytes, %v", test.name, len(got), err)
		}
		if tooBig := test.err == ErrTooBig || test.err == ErrDeclaredTooBig; errors.Is(err, ErrTooBig) != tooBig {
			t.Errorf("%s: %v, is ErrTooBig: %t", test.name, err, !tooBig)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A Content-Length alone reserves little memory.
func TestReadBodyDoesNotTrustContentLength(t *testing.T) {
	req := httptest.NewRequest("POST", "/", nil)
	req.ContentLength = 1 << 40
	req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
		if len(p) > firstRead {
			t.Errorf("offered %d bytes", len(p))
		}
		return 0, io.ErrUnexpectedEOF
	}))
	if _, err := ReadBody(req, 1<<41); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestParamsGet(t *testing.T) {
	params, err := ParseParams(httptest.NewRequest("GET", "/?a=1&a=2&b&c=&d=x+y%2B", nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "1", "b": "", "c": "", "d": "x y+"} {
		if got, present := params.Get(name); got != want || !present {
			t.Errorf("%s is %q, %t, want %q", name, got, present, want)
		}
	}
	if got, present := params.Get("e"); got != "" || present {
		t.Errorf("e is %q, %t", got, present)
	}
}

// Parameters in a form body are none.
func TestParamsIgnoreBody(t *testing.T) {
	req := httptest.NewRequest("POST", "/", strings.NewReader("topic=t"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	params, err := ParseParams(req)
	if _, present := params.Get("topic"); err != nil || present {
		t.Errorf("topic found in the body: %v", err)
	}
}
