//go:build unix

package run

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"nsq/internal/log"
)

// reloaderVar makes the daemon of childVar one that reloads.
const reloaderVar = "NSQ_RUN_TEST_RELOADER"

// reloading is a child that has something to read again.
type reloading struct {
	child
	reloads int // of the goroutine of signals
}

func newReloading(o *childOptions, logger *log.Logger) (*reloading, error) {
	c, err := newChild(o, logger)
	if err != nil {
		return nil, err
	}
	return &reloading{child: *c}, nil
}

func (r *reloading) Run(ctx context.Context) error { return r.child.Run(ctx) }

func (r *reloading) Reload() {
	r.reloads++
	fmt.Println("reload", r.reloads)
}

// SIGHUP makes a daemon read its files again, each time, and does not stop it.
func TestHangupReloads(t *testing.T) {
	t.Run("serving", func(t *testing.T) {
		t.Setenv(reloaderVar, "1")
		d := start(t)
		d.says("serving")
		for _, want := range []string{"reload 1", "reload 2"} {
			d.signal(syscall.SIGHUP)
			d.logs("[child] INFO: received hangup, reading certificates again")
			d.says(want)
		}
		d.signal(syscall.SIGTERM)
		d.logs("[child] INFO: received terminated, stopping")
		d.says("stopping")
		d.exits(0)
	})
	// Before the daemon is made there is nothing to reload, and the signal does not kill.
	t.Run("while starting", func(t *testing.T) {
		t.Setenv(reloaderVar, "1")
		d := start(t, "--mode=slow")
		d.says("creating")
		d.signal(syscall.SIGHUP)
		d.logs("[child] INFO: received hangup, ignored: there is nothing to read again")
		d.signal(syscall.SIGTERM)
		d.logs("[child] INFO: received terminated, stopping")
		d.stdin.Close()
		d.says("stopping")
		d.exits(0)
	})
}
