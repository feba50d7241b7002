package run

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Group are the parts of a daemon: servers and loops that run side by side and stop one after the
// other, the last one first. So a part is started after those that it needs, and what has to happen
// between two stops is a part of its own that waits for its context and then does it.
//
//	parts := run.NewGroup(ctx)
//	parts.Go(scanLoop)
//	parts.Go(closeTopicsInTheEnd)
//	parts.Go(tcpServer)
//	return parts.Wait()
type Group struct {
	ctx  context.Context // cancelled: the parts shall stop
	stop context.CancelFunc

	parts []part // of the one goroutine that calls Go and Wait

	mu   sync.Mutex
	errs []error // in the order in which they happened; guarded by mu
}

// part is a running part.
type part struct {
	stop context.CancelFunc
	done <-chan struct{}
}

// NewGroup returns a group without parts, which is to stop when ctx is cancelled. Wait must be
// called in the end.
func NewGroup(ctx context.Context) *Group {
	g := &Group{}
	g.ctx, g.stop = context.WithCancel(ctx)
	return g
}

// Go starts a part. Its context has the values of the group's, Hurry among them, and is cancelled
// when it is this part's turn to stop. A part may return nil at any time; an error stops the group.
func (g *Group) Go(run func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(g.ctx))
	done := make(chan struct{})
	g.parts = append(g.parts, part{stop: stop, done: done})
	go func() {
		defer close(done)
		err := run(ctx)
		if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.errs = append(g.errs, err)
		g.stop()
	}()
}

// Wait blocks until the group's context is cancelled or a part fails, then stops the parts. It
// returns what failed, the first failure first.
func (g *Group) Wait() error {
	<-g.ctx.Done()
	g.stop()
	for _, part := range slices.Backward(g.parts) {
		part.stop()
		<-part.done
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}
