package httpx

import (
	"io"
	"net/http"
	"time"
)

const (
	// drainBytes is how much of an unused body is read so that the connection can be kept.
	drainBytes   = 64 << 10
	drainTimeout = 5 * time.Second
	// leaveTimeout is for what net/http reads on its own of a body that we gave up.
	leaveTimeout = time.Second
)

// upload is the body of one request. The peer has to keep sending; what the handler leaves unread
// when it answers is drained within bounds, or the connection is closed after the answer.
// It is used by the goroutine of the request.
type upload struct {
	src     io.ReadCloser
	conn    *conn
	header  http.Header // of the answer
	left    int64       // bytes still to come; negative when not declared
	waits   bool        // the peer waits for our word (100-continue) and has not got it
	ended   bool        // all of it has been received
	failed  bool        // no more of it can be received
	settled bool
}

func newUpload(w http.ResponseWriter, req *http.Request) *upload {
	c, _ := req.Context().Value(connKey{}).(*conn)
	return &upload{
		src:    req.Body,
		conn:   c,
		header: w.Header(),
		left:   req.ContentLength,
		waits:  req.Header.Get("Expect") != "",
	}
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if err := u.conn.extend(); err != nil {
		return 0, err
	}
	u.waits = false
	n, err := u.src.Read(p)
	u.count(int64(n), err)
	return n, err
}

// count notes n bytes received, and how that ended.
func (u *upload) count(n int64, err error) {
	if u.left > 0 {
		u.left -= n
	}
	switch {
	case err == nil || u.ended:
	case err == io.EOF:
		u.ended = true
		_ = u.conn.received() // fails on a closed connection only, and the next read tells
	default:
		u.failed = true
	}
}

// Close implements io.Closer; the server closes the source.
func (u *upload) Close() error { return nil }

// settle is called before the answer is sent: a client may read it only after it has sent
// everything, so a small rest is received first. With more to come the connection ends.
func (u *upload) settle() {
	if u.settled {
		return
	}
	u.settled = true
	if !u.ended && !u.failed && !u.waits && u.left <= drainBytes {
		u.drain()
	}
	if !u.ended {
		u.header.Set("Connection", "close")
		_ = u.conn.limit(leaveTimeout) // as above
	}
}

func (u *upload) drain() {
	if u.conn.limit(drainTimeout) != nil {
		return
	}
	// One byte more than the limit, so that a body of exactly the limit is seen to end.
	n, err := io.CopyN(io.Discard, u.src, drainBytes+1)
	u.count(n, err)
}

// uploadWriter settles the body before the first byte of the answer.
type uploadWriter struct {
	http.ResponseWriter
	body *upload
}

// WriteHeader implements http.ResponseWriter.
func (w uploadWriter) WriteHeader(status int) {
	w.body.settle()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w uploadWriter) Write(p []byte) (int, error) {
	w.body.settle()
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the original.
func (w uploadWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
