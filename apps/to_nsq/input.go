package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"nsq/internal/pace"
	"nsq/internal/progress"
)

const (
	chunkSize = 64 << 10 // bytes
	maxPiece  = 1 << 30  // bytes; no nsqd can take more than twice that
)

// chunk is some of the input, or why there is no more.
type chunk struct {
	data []byte
	err  error // io.EOF at the end
}

// readChunks reads until the input ends or ctx is cancelled. While a read blocks, so does its
// goroutine, whatever became of ctx.
func readChunks(ctx context.Context, in io.Reader) <-chan chunk {
	chunks := make(chan chunk)
	go func() {
		for {
			data := make([]byte, chunkSize)
			n, err := in.Read(data)
			select {
			case chunks <- chunk{data[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return chunks
}

// splitter cuts the input into pieces at the separator. Empty pieces are left out.
type splitter struct {
	separator byte
	rest      []byte // the beginning of a piece that is not complete
}

// add takes more of the input, which it keeps, and returns the pieces that are complete with it.
func (s *splitter) add(data []byte) (pieces [][]byte, err error) {
	for {
		i := bytes.IndexByte(data, s.separator)
		if i < 0 {
			break
		}
		piece := data[:i:i]
		if len(s.rest) > 0 {
			piece = append(s.rest, piece...)
			s.rest = nil
		}
		if len(piece) > 0 {
			pieces = append(pieces, piece)
		}
		data = data[i+1:]
	}
	if len(s.rest)+len(data) > maxPiece {
		return pieces, fmt.Errorf("message longer than %d bytes", maxPiece)
	}
	if len(data) > 0 {
		s.rest = append(s.rest, data...)
	}
	return pieces, nil
}

// last returns the piece at the end of the input, nil if there is none. If lines are not what is
// published, the end of the last line does not belong to it.
func (s *splitter) last() []byte {
	piece := s.rest
	if s.separator != '\n' {
		piece = bytes.TrimSuffix(piece, []byte("\n"))
	}
	s.rest = nil
	if len(piece) == 0 {
		return nil
	}
	return piece
}

// feed takes the input to the sender.
type feed struct {
	chunks   <-chan chunk
	split    splitter
	batch    int // most messages at once
	throttle *pace.Throttle
	sender   sender
	log      *log.Logger
	counters *progress.Counters
}

// run publishes until the input ends or ctx is cancelled, and returns why it stopped before. What is
// read completely when ctx is cancelled is published, unless the rate forbids.
func (f *feed) run(ctx context.Context) error {
	for {
		var next chunk
		select {
		case <-ctx.Done():
			f.stopped()
			return nil
		case next = <-f.chunks:
		}
		pieces, err := f.split.add(next.data)
		if next.err != nil && err == nil {
			if piece := f.split.last(); errors.Is(next.err, io.EOF) && piece != nil {
				pieces = append(pieces, piece)
			}
			err = next.err
		}
		if publishing := f.publish(ctx, pieces); publishing != nil {
			if ctx.Err() != nil && errors.Is(publishing, ctx.Err()) {
				f.stopped()
				return nil
			}
			return publishing
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("failed to read the input - %w", err)
		}
	}
}

func (f *feed) stopped() {
	f.log.Printf("stopped before the end of the input, %d messages are published", f.counters.Done.Load())
}

// publish sends the pieces in batches. The error is that of ctx if the rate forbids to go on.
func (f *feed) publish(ctx context.Context, pieces [][]byte) error {
	for len(pieces) > 0 {
		size, waiting := f.allowed(ctx, min(len(pieces), f.batch))
		if size > 0 {
			published, err := f.sender.send(ctx, pieces[:size])
			f.counters.Done.Add(int64(published))
			if err != nil {
				return err
			}
			for _, piece := range pieces[:size] {
				f.counters.Bytes.Add(int64(len(piece)))
			}
		}
		if waiting != nil {
			return waiting
		}
		pieces = pieces[size:]
	}
	return nil
}

// allowed waits until so many messages may pass, and returns how many may when ctx is cancelled.
func (f *feed) allowed(ctx context.Context, wanted int) (int, error) {
	for i := range wanted {
		if err := f.throttle.Wait(ctx); err != nil {
			return i, err
		}
	}
	return wanted, nil
}
