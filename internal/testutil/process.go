package testutil

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is one run of a program, with all that it has written to stderr.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and its log is complete

	mu    sync.Mutex // guards the following
	log   bytes.Buffer
	grown chan struct{} // closed at the next write to log
}

func startProcess(path string, args []string) (*process, error) {
	p := &process{exited: make(chan struct{}), grown: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stderr = p
	// The race detector would wait a second at each exit for reports of others.
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	p.cmd.SysProcAttr = noOrphan()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	go func() {
		defer close(p.exited)
		p.cmd.Wait() // the exit code tells all
	}()
	return p, nil
}

// Write takes what the process writes to stderr.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.grown)
	p.grown = make(chan struct{})
	return p.log.Write(text)
}

// text returns the log so far, and a channel that is closed when there is more.
func (p *process) text() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String(), p.grown
}

// await waits until the log is as wanted.
func (p *process) await(wanted func(log string) bool) error {
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		log, grown := p.text()
		if wanted(log) {
			return nil
		}
		select {
		case <-grown:
		case <-p.exited:
			if log, _ := p.text(); wanted(log) {
				return nil
			}
			return fmt.Errorf("ended with code %d", p.cmd.ProcessState.ExitCode())
		case <-late.C:
			return fmt.Errorf("not in the log within %v", Patience)
		}
	}
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// exit waits for the end of the process and returns its code.
func (p *process) exit(limit time.Duration) (int, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-late.C:
		return 0, fmt.Errorf("still runs after %v", limit)
	}
}

func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_, err := p.exit(Patience)
	return err
}
