// Package run is the main function of a daemon: settings, signals, exit code, and the part of a
// Windows service, for which it adapts go-svc. A main needs one line:
//
//	func main() { run.Main(nsqd.NewOptions(), nsqd.New) }
//
// It knows no daemon, only that one is made from options and runs until its context ends.
//
// Source: nsqd-config spec, sections 7 to 11; packaging spec, section 10.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/judwhite/go-svc"

	"nsq/internal/log"
	"nsq/internal/options"
)

// Options are the settings of a daemon.
type Options interface {
	Table() *options.Table
	Validate() error
	Logger(out io.Writer) *log.Logger
}

// Daemon is a program that serves. Run does so until ctx is cancelled, which may be the case from
// the start, and then stops cleanly and returns nil; Hurry says when to make haste with that. Any
// error is the program's last words, after a clean stop as far as one was possible.
type Daemon interface {
	Run(ctx context.Context) error
}

// Reloader is a Daemon that can read its files again while it runs. Reload is called by one goroutine
// at a time.
type Reloader interface {
	Reload()
}

// Main makes the process the daemon that create returns for the settings of the command line. It
// does not return: the process exits with code 0 after a clean stop, 1 on failure, 2 for a wrong
// command line.
//
// SIGINT and SIGTERM stop the daemon, at any moment since the start of the process; when one comes
// again it hurries. SIGHUP makes a Reloader reload, and nothing else of any other daemon. As a Windows service it obeys Stop and Shutdown.
func Main[O Options, D Daemon](opts O, create func(O, *log.Logger) (D, error)) {
	table := opts.Table()
	p := newProcess(table.Program(), os.Stderr)
	os.Exit(p.main(func() (Daemon, error) {
		warnings, err := table.Load(os.Args[1:], os.Stdout, os.Stderr)
		if err != nil {
			return nil, err
		}
		logger := opts.Logger(os.Stderr)
		p.logger.Store(logger)
		for _, warning := range warnings {
			logger.Warnf("%s", warning)
		}
		daemon, err := instantiate(opts, logger, create)
		if err != nil {
			return nil, fmt.Errorf("failed to instantiate %s - %w", table.Program(), err)
		}
		if r, ok := any(daemon).(Reloader); ok {
			p.reloader.Store(&r)
		}
		return daemon, nil
	}))
}

// instantiate makes the daemon; create sees valid options only.
func instantiate[O Options, D Daemon](opts O, logger *log.Logger, create func(O, *log.Logger) (D, error)) (Daemon, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	return create(opts, logger)
}

// process is one run of a program.
type process struct {
	fatal  *log.Logger                // with the fixed prefix, which no setting can change
	logger atomic.Pointer[log.Logger] // fatal until there are settings

	reloader atomic.Pointer[Reloader] // nil until there is a daemon, or where it has nothing to reload
}

func newProcess(name string, stderr io.Writer) *process {
	p := &process{fatal: log.New(stderr, "["+name+"] ", log.Info)}
	p.logger.Store(p.fatal)
	return p
}

// main runs the daemon that build returns, and returns the exit code. The process must exit then.
func (p *process) main(build func() (Daemon, error)) int {
	// A log that nobody reads any more (a closed pipe) is no reason to die and lose messages.
	signal.Ignore(syscall.SIGPIPE)

	ctx, hurry := withHurry(context.Background())
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	// From here to the end of the process a signal is a request, not a kill: the daemon is not built
	// yet, and when it has stopped the exit code is still to be delivered.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go p.obey(signals, stop, hurry)

	return p.exitCode(svc.Run(newService(ctx, stop, build), noSignal{}))
}

// obey acts on signals as long as the process lives.
func (p *process) obey(signals <-chan os.Signal, stop, hurry func()) {
	stopping := false
	for sig := range signals {
		switch {
		case sig == syscall.SIGHUP:
			p.reload(sig)
		case !stopping:
			p.logger.Load().Infof("received %v, stopping", sig)
			stopping = true
			stop()
		default:
			p.logger.Load().Infof("received %v while stopping, making haste", sig)
			hurry()
		}
	}
}

func (p *process) reload(sig os.Signal) {
	r := p.reloader.Load()
	if r == nil {
		p.logger.Load().Infof("received %v, ignored: there is nothing to read again", sig)
		return
	}
	p.logger.Load().Infof("received %v, reading certificates again", sig)
	(*r).Reload()
}

// exitCode says on stderr why the program ended, unless that was done, and returns its code.
func (p *process) exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[options.Exit](err); ok {
		return exit.Code
	}
	p.fatal.Fatalf("%v", err)
	return 1
}
