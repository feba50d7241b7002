package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"nsq/internal/version"
)

// placeholder is what a GET address has in the place of the message.
const placeholder = "%s"

// requests are the requests that messages become. They do not change.
type requests struct {
	method    string
	addresses []string
	headers   http.Header
	host      string // of the Host header; empty: that of the address
}

// newPosts returns requests that have the message as body.
func newPosts(addresses []string, headers http.Header, contentType string) (*requests, error) {
	r := newRequests(http.MethodPost, addresses, headers)
	setDefault(r.headers, "Content-Type", contentType)
	return r, r.check("--post")
}

// newGets returns requests that have the message in their address.
func newGets(addresses []string, headers http.Header) (*requests, error) {
	for _, address := range addresses {
		if strings.Count(address, placeholder) != 1 {
			return nil, errors.New("invalid GET address - must be a printf string")
		}
	}
	r := newRequests(http.MethodGet, addresses, headers)
	return r, r.check("--get")
}

func newRequests(method string, addresses []string, headers http.Header) *requests {
	all := headers.Clone()
	host := all.Get("Host")
	all.Del("Host")
	setDefault(all, "User-Agent", fmt.Sprintf("%s v%s", name, version.Version))
	setDefault(all, "Accept-Encoding", "gzip")
	return &requests{method: method, addresses: addresses, headers: all, host: host}
}

func setDefault(headers http.Header, name, value string) {
	if headers.Get(name) == "" {
		headers.Set(name, value)
	}
}

// check refuses addresses that no message could be sent to.
func (r *requests) check(flag string) error {
	for i, address := range r.addresses {
		req, err := r.build(i, []byte("message"))
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the address is in the text already
		}
		switch {
		case err != nil:
			return fmt.Errorf("invalid %s address %q - %w", flag, address, err)
		case req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "":
			return fmt.Errorf("invalid %s address %q - want http://HOST or https://HOST", flag, address)
		}
	}
	return nil
}

// build returns the request of a message to one of the addresses.
func (r *requests) build(index int, message []byte) (*http.Request, error) {
	address := r.addresses[index]
	var body io.Reader
	if r.method == http.MethodGet {
		address = strings.Replace(address, placeholder, url.QueryEscape(string(message)), 1)
	} else {
		body = bytes.NewReader(message)
	}
	req, err := http.NewRequest(r.method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header = r.headers.Clone()
	if r.host != "" {
		req.Host = r.host
	}
	return req, nil
}

// success says whether the status means that the message was accepted.
func (r *requests) success(status int) bool {
	if r.method == http.MethodGet {
		return status == http.StatusOK
	}
	return 200 <= status && status < 300
}

// parseHeaders reads headers 'Name: value'. The last one of a name counts.
func parseHeaders(texts []string) (http.Header, error) {
	headers := http.Header{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		name, value = strings.TrimSpace(name), textproto.TrimString(value)
		if !ok || !isToken(name) || !isHeaderValue(value) {
			return nil, errors.New("--header value format should be 'key=value'")
		}
		headers.Set(name, value)
	}
	return headers, nil
}

// isToken says whether the text can be the name of a header.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isHeaderValue says whether the text can be the value of a header.
func isHeaderValue(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' || r == 0x7f
	})
}
