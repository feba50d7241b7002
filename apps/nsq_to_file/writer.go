package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/nsqio/go-nsq"

	"nsq/internal/archive"
	"nsq/internal/log"
	"nsq/internal/touch"
)

const (
	firstPause   = time.Second      // before writing is tried again; it doubles
	longestPause = 15 * time.Second // between two attempts
	heldAtMost   = 5 * time.Minute  // a nsqd does not let a message be touched forever
	maxWaiting   = 4096             // messages between the consumer and the writer
)

// writerConfig is what the writers of all topics have in common.
type writerConfig struct {
	maxInFlight  int // messages that wait for the disk at most
	syncInterval time.Duration
	skipEmpty    bool
}

func (t *toFile) writerConfig() writerConfig {
	return writerConfig{
		maxInFlight:  max(t.consume.MaxInFlight, 1),
		syncInterval: min(t.syncInterval, heldAtMost),
		skipEmpty:    t.skipEmpty,
	}
}

// consumer is what a writer needs of the consumer of its messages.
type consumer interface {
	IsStarved() bool
	SetMaxInFlight(messages int)
}

// writer writes the messages of one topic to its archive. Messages wait in a batch until they are on the
// disk, and are touched meanwhile; then they are finished. When the archive fails, they go back to where
// they came from, no more are asked for, and after a while one message is, to try again.
//
// All fields but the channels belong to the goroutine of loop.
type writer struct {
	config   writerConfig
	archive  *archive.Archive
	consumer consumer
	keeper   *touch.Keeper
	logf     archive.Logf

	incoming chan *nsq.Message
	hangups  chan struct{} // has room for one
	hurried  chan struct{} // closed when the program is about to stop
	ending   chan struct{} // closed when no message can come any more
	ended    chan struct{} // closed after the last use of err

	batch   []*nsq.Message // written, but not safe
	flushed int            // how many of them others can see in the file

	hurrying bool          // each message is made safe at once
	pause    time.Duration // the last one; 0 when the archive has not failed since it last worked
	paused   bool          // the archive has failed just now
	retry    *time.Timer   // runs while paused
	err      error         // why the archive fails
}

// newWriter returns a writer that does nothing before start.
func newWriter(config writerConfig, files *archive.Archive, keeper *touch.Keeper, logf archive.Logf) *writer {
	return &writer{
		config: config, archive: files, keeper: keeper, logf: logf,
		incoming: make(chan *nsq.Message, min(config.maxInFlight, maxWaiting)),
		hangups:  make(chan struct{}, 1),
		hurried:  make(chan struct{}),
		ending:   make(chan struct{}),
		ended:    make(chan struct{}),
	}
}

// HandleMessage passes the message to the writer, which answers it.
func (w *writer) HandleMessage(m *nsq.Message) error {
	m.DisableAutoResponse()
	select {
	case w.incoming <- m:
	case <-w.ended:
		m.RequeueWithoutBackoff(0)
	}
	return nil
}

// start starts the writer, for messages of this consumer.
func (w *writer) start(c consumer) {
	w.consumer = c
	w.retry = time.NewTimer(longestPause)
	w.retry.Stop()
	go w.loop()
}

// hangUp has the file finished, and the next one opened when it is needed.
func (w *writer) hangUp() {
	select {
	case w.hangups <- struct{}{}:
	default: // one is due already
	}
}

// hurry has every message finished as soon as possible, so that the consumer can stop.
func (w *writer) hurry() { close(w.hurried) }

// stop ends the writer, for which no message may come any more. The error is why messages could not be
// written lately.
func (w *writer) stop() error {
	close(w.ending)
	<-w.ended
	return w.err
}

func (w *writer) loop() {
	defer close(w.ended)
	sync := time.NewTicker(w.config.syncInterval)
	defer sync.Stop()
	hurried := w.hurried
	for {
		select {
		case m := <-w.incoming:
			w.takeAll(m)
		case <-sync.C:
			w.tick()
		case <-w.retry.C:
			w.resume()
		case <-w.hangups:
			w.close()
		case <-hurried:
			hurried, w.hurrying = nil, true
			w.commit()
		case <-w.ending:
			w.finish()
			return
		}
	}
}

// finish is the end of the loop.
func (w *writer) finish() {
	for {
		select {
		case m := <-w.incoming: // of a consumer that was not stopped in time
			w.takeAll(m)
		default:
			w.close()
			w.retry.Stop()
			return
		}
	}
}

// takeAll writes a message, and those that wait behind it.
func (w *writer) takeAll(m *nsq.Message) {
	for {
		w.take(m)
		select {
		case m = <-w.incoming:
			continue
		default:
		}
		break
	}
	if err := w.archive.Flush(); err != nil {
		w.fail(err)
		return
	}
	w.flushed = len(w.batch)
	if len(w.batch) > 0 && (w.hurrying || w.pause > 0 || w.consumer.IsStarved()) {
		w.commit()
	}
}

// take writes one message.
func (w *writer) take(m *nsq.Message) {
	now := time.Now()
	opened := false
	if !w.paused && w.archive.IsDue(now) {
		w.commit()
		opened = !w.paused && w.next(now)
	}
	if w.paused {
		m.RequeueWithoutBackoff(0)
		return
	}
	w.keeper.Hold(m)
	w.batch = append(w.batch, m)
	if err := w.archive.Write(m.Body); err != nil {
		w.fail(err)
		return
	}
	if opened || len(w.batch) >= w.config.maxInFlight {
		w.commit()
	}
}

func (w *writer) next(now time.Time) bool {
	if err := w.archive.Next(now); err != nil {
		w.fail(err)
		return false
	}
	return true
}

// commit finishes the batch once it is safe.
func (w *writer) commit() {
	if len(w.batch) == 0 {
		return
	}
	w.logf(log.Info, "syncing %d records to disk", len(w.batch))
	if err := w.archive.Flush(); err != nil {
		w.fail(err)
		return
	}
	w.flushed = 0 // of a failed sync nobody knows what it has left
	if err := w.archive.Sync(); err != nil {
		w.fail(err)
		return
	}
	w.finishFirst(len(w.batch))
	w.recover()
}

// finishFirst finishes the first n messages of the batch, newest first.
func (w *writer) finishFirst(n int) {
	for _, m := range slices.Backward(w.batch[:n]) {
		w.keeper.Release(m)
		m.Finish()
	}
	w.batch = slices.Delete(w.batch, 0, n)
	w.flushed = 0
}

// giveBack requeues the batch.
func (w *writer) giveBack() {
	for _, m := range w.batch {
		w.keeper.Release(m)
		m.RequeueWithoutBackoff(0)
	}
	clear(w.batch)
	w.batch, w.flushed = w.batch[:0], 0
}

// tick is due every sync interval.
func (w *writer) tick() {
	w.commit()
	now := time.Now()
	if w.paused || !w.archive.IsDue(now) {
		return
	}
	if w.config.skipEmpty {
		w.close()
		return
	}
	if !w.next(now) {
		return
	}
	if err := w.archive.Sync(); err != nil { // it stands on its own from the beginning
		w.fail(err)
	}
}

// close finishes the batch and the file.
func (w *writer) close() {
	w.commit()
	if w.paused {
		return // there is no file
	}
	if err := w.archive.Close(); err != nil {
		w.fail(err)
	}
}

// fail gives the batch back, except for what was written before the error if that can be saved, and
// begins a pause.
func (w *writer) fail(err error) {
	if n := w.flushed; n > 0 && w.archive.Sync() == nil {
		w.finishFirst(n)
	}
	if err := w.archive.Abandon(); err != nil {
		w.logf(log.Error, "close after failure: %v", err)
	}
	w.consumer.SetMaxInFlight(0) // before anything goes back, or it would come again at once
	w.pause = min(max(firstPause, 2*w.pause), longestPause)
	w.logf(log.Error, "%v - %d messages go back to the queue, trying again in %s", err, len(w.batch), w.pause)
	w.giveBack()
	w.err = fmt.Errorf("archive: %w", err)
	w.paused = true
	w.retry.Reset(w.pause)
}

// resume asks for one message, with which to try again.
func (w *writer) resume() {
	w.paused = false
	w.consumer.SetMaxInFlight(1)
}

// recover ends the caution after a failure.
func (w *writer) recover() {
	if w.pause == 0 {
		return
	}
	w.logf(log.Info, "records can be written again")
	w.pause, w.err = 0, nil
	w.consumer.SetMaxInFlight(w.config.maxInFlight)
}
