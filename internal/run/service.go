package run

import (
	"context"

	"github.com/judwhite/go-svc"
)

// service adapts a daemon to go-svc: Start and Stop instead of a Run that blocks. The library calls
// Init, Start and Stop one after the other.
type service struct {
	build func() (Daemon, error)
	ctx   context.Context // the daemon's
	stop  context.CancelFunc

	ended context.Context // done when the daemon's Run has returned
	end   context.CancelFunc
	err   error // what Run returned; written before ended is done, read after
}

func newService(ctx context.Context, stop context.CancelFunc, build func() (Daemon, error)) *service {
	s := &service{build: build, ctx: ctx, stop: stop}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// Init does nothing. The daemon is built in Start: there a Windows service can still report a failure.
func (s *service) Init(svc.Environment) error { return nil }

// Start builds the daemon and sets it to work.
func (s *service) Start() error {
	daemon, err := s.build()
	if err != nil {
		return err
	}
	go func() {
		defer s.end()
		s.err = daemon.Run(s.ctx)
	}()
	return nil
}

// Stop ends the daemon and returns how it ended.
func (s *service) Stop() error {
	s.stop()
	<-s.ended.Done()
	return s.err
}

// Context tells the library when the daemon ends by itself; then it calls Stop.
func (s *service) Context() context.Context { return s.ended }

// noSignal is the only signal that the library is told to wait for. It never comes: signals are
// handled in one place, and that from before Start.
type noSignal struct{}

func (noSignal) Signal()        {}
func (noSignal) String() string { return "none" }
