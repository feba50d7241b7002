package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxRedirects = 10
	maxAnswer    = 1 << 20 // bytes of an answer that are read; a connection with a longer one is not used again
	maxShownURL  = 1 << 10 // bytes
)

// statusError is an answer that is no success.
type statusError struct {
	code     int
	rejected bool // the same message would get the same answer again
}

func (e *statusError) Error() string { return fmt.Sprintf("got status code %d", e.code) }

func isRejection(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.rejected
}

// endpoint makes the requests. It is safe for concurrent use.
type endpoint struct {
	client    *http.Client
	requests  *requests
	rejecting statuses
}

// send makes the request for a message to one of the addresses. An answer that is no success is a
// *statusError.
func (e *endpoint) send(index int, body []byte) error {
	req, err := e.requests.build(index, body)
	if err != nil {
		return shorten(err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return shorten(err)
	}
	defer resp.Body.Close()
	// The answer counts when it is complete, and then the connection can be used again.
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !e.requests.success(resp.StatusCode) {
		return &statusError{code: resp.StatusCode, rejected: e.rejecting.contain(resp.StatusCode)}
	}
	return nil
}

// shorten keeps a message that is part of the URL from filling the log.
func shorten(err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok || len(failed.URL) <= maxShownURL {
		return err
	}
	return &url.Error{Op: failed.Op, URL: failed.URL[:maxShownURL] + "...", Err: failed.Err}
}

// newClient returns a client that keeps as many connections to a host as there may be requests at the
// same time. The proxy variables of the environment are ignored.
func newClient(connectTimeout, requestTimeout time.Duration, concurrency int) *http.Client {
	dialer := &net.Dialer{Timeout: max(connectTimeout, 0), KeepAlive: 30 * time.Second}
	return &http.Client{
		Timeout:       max(requestTimeout, 0),
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: max(requestTimeout, 0),
			MaxIdleConnsPerHost:   max(concurrency, 1),
			IdleConnTimeout:       90 * time.Second,
			DisableCompression:    true, // nobody reads the answers: there is nothing to decompress
		},
	}
}

// checkRedirect follows redirects as long as the message goes with them. After a 303 it is not needed
// any more: that is the answer to a POST which has been accepted, and says where the result is.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if req.Method != via[len(via)-1].Method && req.Response.StatusCode != http.StatusSeeOther {
		return http.ErrUseLastResponse
	}
	return nil
}
