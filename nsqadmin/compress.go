package nsqadmin

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressed answers with gzip to those who accept it. What is compressed already, or flows event by
// event, stays as it is.
func compressed(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !acceptsGzip(req.Header.Values("Accept-Encoding")) || req.Method == http.MethodHead {
			handler.ServeHTTP(w, req)
			return
		}
		c := &compressor{ResponseWriter: w}
		defer c.close()
		handler.ServeHTTP(c, req)
	})
}

// acceptsGzip reads the lists of an Accept-Encoding header. Without the header there is none.
func acceptsGzip(lists []string) bool {
	accepted := false
	for coding := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		name, parameters, _ := strings.Cut(coding, ";")
		weight := 1.0
		if key, value, ok := strings.Cut(strings.TrimSpace(parameters), "="); ok && strings.EqualFold(key, "q") {
			weight, _ = strconv.ParseFloat(value, 64) // what is no number is 0
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip":
			return weight > 0
		case "*":
			accepted = weight > 0
		}
	}
	return accepted
}

// compressible says whether a content is text and has an end.
func compressible(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch strings.TrimSpace(kind) {
	case "text/html", "text/css", "text/javascript", "application/javascript", "application/json", "image/svg+xml", "text/plain":
		return true
	}
	return false
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// compressor compresses what is written to it, from the header on. It belongs to one request.
type compressor struct {
	http.ResponseWriter
	decided bool
	gzip    *gzip.Writer // nil: not compressed
}

// WriteHeader implements http.ResponseWriter.
func (c *compressor) WriteHeader(status int) {
	if !c.decided && status >= http.StatusOK {
		c.decide(status)
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressor) decide(status int) {
	c.decided = true
	header := c.Header()
	if !compressible(header.Get("Content-Type")) {
		return
	}
	header.Add("Vary", "Accept-Encoding")
	if status == http.StatusNoContent || status == http.StatusNotModified || status == http.StatusPartialContent ||
		header.Get("Content-Encoding") != "" {
		return
	}
	header.Set("Content-Encoding", "gzip")
	header.Del("Content-Length")
	header.Del("Accept-Ranges")
	c.gzip = gzipWriters.Get().(*gzip.Writer)
	c.gzip.Reset(c.ResponseWriter)
}

// Write implements http.ResponseWriter.
func (c *compressor) Write(p []byte) (int, error) {
	if !c.decided {
		c.WriteHeader(http.StatusOK)
	}
	if c.gzip == nil {
		return c.ResponseWriter.Write(p)
	}
	return c.gzip.Write(p)
}

// FlushError lets an http.ResponseController flush.
func (c *compressor) FlushError() error {
	if c.gzip != nil {
		if err := c.gzip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController find the original.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// close ends the answer. After a panic of the handler, which means half an answer, it writes no end.
func (c *compressor) close() {
	if c.gzip == nil {
		return
	}
	if broken := recover(); broken != nil {
		panic(broken)
	}
	_ = c.gzip.Close() // fails where the peer is gone, who misses nothing
	c.gzip.Reset(io.Discard)
	gzipWriters.Put(c.gzip)
}
