package httpd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/httpx"
	"nsq/internal/protocol"
	"nsq/nsqd/broker"
)

// trusted is how many bytes, at most, are allocated for a message on the word of the peer alone;
// more of a longer one are as they arrive.
const trusted = 64 << 10

// okAnswer is converted once: a conversion for every answer would allocate.
var okAnswer any = []byte("OK")

var batches = sync.Pool{New: func() any { return new(broker.Batch) }}

func releaseBatch(batch *broker.Batch) {
	batch.Reset()
	batches.Put(batch)
}

// maxScratch is how large a buffer may be, in bytes, to be kept for another use.
const maxScratch = 4 << 20

// scratch are buffers in which what nobody can be trusted to send arrives.
var scratch = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func releaseScratch(b *bytes.Buffer) {
	if b.Cap() <= maxScratch {
		b.Reset()
		scratch.Put(b)
	}
}

// pub publishes the body as one message. The body is judged before the query, and the topic is
// created when nothing else can be wrong.
func (a *API) pub(req *http.Request, _ httprouter.Params) (any, error) {
	batch := batches.Get().(*broker.Batch)
	defer releaseBatch(batch)
	if err := readMessage(batch, req, a.config.MaxMsgSize); err != nil {
		return nil, err
	}
	name, delay, err := a.pubParams(req)
	if err != nil {
		return nil, err
	}
	if delay > 0 {
		batch.Defer(delay)
	}
	topic, err := a.publishTopic(name)
	if err != nil {
		return nil, err
	}
	return publish(topic, batch)
}

// readMessage adds the body of a request to a batch. A body of moderate length goes straight to
// its place.
func readMessage(batch *broker.Batch, req *http.Request, limit int64) error {
	switch size := req.ContentLength; {
	case size > limit:
		return errMsgTooBig
	case size == 0:
		return errMsgEmpty
	case 0 < size && size <= trusted:
		if _, err := io.ReadFull(req.Body, batch.Add(int(size))); err != nil {
			return fmt.Errorf("read request body: %w", err)
		}
		return nil
	}
	arrived := scratch.Get().(*bytes.Buffer)
	defer releaseScratch(arrived)
	size, err := arrived.ReadFrom(io.LimitReader(req.Body, limit+1))
	switch {
	case err != nil:
		return fmt.Errorf("read request body: %w", err)
	case size > limit:
		return errMsgTooBig
	case size == 0:
		return errMsgEmpty
	}
	copy(batch.Add(int(size)), arrived.Bytes())
	return nil
}

// pubParams reads the query of a /pub: the topic, and the delay in milliseconds, 0 for none.
func (a *API) pubParams(req *http.Request) (topic string, delay uint32, err error) {
	// Nothing in a valid name has a meaning of its own in a query.
	if name, ok := strings.CutPrefix(req.URL.RawQuery, "topic="); ok && protocol.ValidName(name) {
		return name, 0, nil
	}
	params, err := httpx.ParseParams(req)
	if err != nil {
		return "", 0, err
	}
	if topic, err = params.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic); err != nil {
		return "", 0, err
	}
	text, present := params.Get("defer")
	if !present {
		return topic, 0, nil
	}
	milliseconds, err := strconv.ParseInt(text, 10, 64)
	// The limit is compared in milliseconds, for the other way round could overflow.
	if err != nil || milliseconds < 0 || milliseconds > min(a.config.MaxReqTimeout.Milliseconds(), math.MaxUint32) {
		return "", 0, errInvalidDefer
	}
	return topic, uint32(milliseconds), nil
}

// mpub publishes the messages of the body, all of them or none. The topic is created before the
// body is read.
func (a *API) mpub(req *http.Request, _ httprouter.Params) (any, error) {
	if req.ContentLength > a.config.MaxBodySize {
		return nil, errBodyTooBig
	}
	params, err := httpx.ParseParams(req)
	if err != nil {
		return nil, err
	}
	name, err := params.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic)
	if err != nil {
		return nil, err
	}
	topic, err := a.publishTopic(name)
	if err != nil {
		return nil, err
	}
	batch := batches.Get().(*broker.Batch)
	defer releaseBatch(batch)
	batch.Expect(int(min(req.ContentLength, trusted)))
	if err := a.readMessages(batch, req, a.isBinary(params)); err != nil {
		return nil, err
	}
	return publish(topic, batch)
}

// isBinary says whether the body has the form of a MPUB rather than a message a line.
func (a *API) isBinary(params httpx.Params) bool {
	value, present := params.Get("binary")
	if !present {
		return false
	}
	is, known := boolParam[value]
	if !known {
		a.config.Logger.Warnf("deprecated value '%s' used for /mpub binary param", value)
		return true
	}
	return is
}

var bodyReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// readMessages adds the messages of a body to a batch. It reads one byte more than a body may have
// at most, to learn that there are too many.
func (a *API) readMessages(batch *broker.Batch, req *http.Request, binary bool) error {
	r := bodyReaders.Get().(*bufio.Reader)
	defer bodyReaders.Put(r)
	defer r.Reset(nil) // not to keep the request
	limits := protocol.MPubLimits{MaxBody: a.config.MaxBodySize, MaxMessage: a.config.MaxMsgSize}
	body := &io.LimitedReader{R: req.Body, N: limits.MaxBody + 1}
	r.Reset(body)
	if !binary {
		return readLines(batch, r, limits)
	}
	taken, err := readBinary(batch, r, limits)
	if taken > limits.MaxBody || err != nil && body.N <= 0 {
		return errBodyTooBig
	}
	return err
}

// publishTopic returns the topic to publish to, which it creates if there is none.
func (a *API) publishTopic(name string) (*broker.Topic, error) {
	topic, err := a.config.Broker.FindTopic(name)
	if errors.Is(err, broker.ErrNotFound) {
		// A topic that kept a part of the request would keep all of it.
		topic, err = a.config.Broker.Topic(strings.Clone(name))
	}
	if err != nil {
		return nil, notPublished(name, err)
	}
	return topic, nil
}

func publish(topic *broker.Topic, batch *broker.Batch) (any, error) {
	if err := topic.Publish(batch); err != nil {
		return nil, notPublished(topic.Name(), err)
	}
	return okAnswer, nil
}

// notPublished is the one answer to all failures to publish. The log tells what was wrong, unless
// the client has been told.
func notPublished(topic string, err error) error {
	answer := &httpx.Error{Status: http.StatusServiceUnavailable, Message: "EXITING"}
	if !errors.Is(err, broker.ErrExiting) {
		answer.Cause = fmt.Errorf("failed to publish to topic %s - %w", topic, err)
	}
	return answer
}
