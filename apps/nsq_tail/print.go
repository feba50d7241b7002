package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/nsqio/go-nsq"
)

// printer writes the messages of all topics, one after the other. It is safe for concurrent use.
type printer struct {
	out io.Writer
	end context.CancelFunc // called when nothing more is to be printed

	mu   sync.Mutex
	left int // messages to print; 0: nothing left, or no end
	over bool
	err  error // why writing failed
}

// print writes a line, in one piece, and says whether it did: not when enough is printed, nor after a
// failure.
func (p *printer) print(line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	if _, err := p.out.Write(line); err != nil {
		p.err = fmt.Errorf("ERROR: failed to write to os.Stdout - %w", err)
		p.stop()
		return false
	}
	if p.left > 0 {
		if p.left--; p.left == 0 {
			p.stop()
		}
	}
	return true
}

func (p *printer) stop() {
	p.over = true
	p.end()
}

func (p *printer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// handler prints the messages of one topic.
type handler struct {
	printer *printer
	line    func(*nsq.Message) []byte
}

// HandleMessage has a message finished that was printed. Any other goes back at once, for somebody
// else to have.
func (h *handler) HandleMessage(m *nsq.Message) error {
	if !h.printer.print(h.line(m)) {
		m.RequeueWithoutBackoff(0)
		m.DisableAutoResponse()
	}
	return nil
}
