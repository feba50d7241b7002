package lookup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of DialOptions.
const (
	defaultTimeout   = time.Second
	defaultMaxAnswer = 5 << 20
)

// batchSize is how many commands are sent before their answers are read. It keeps what is in flight
// either way far below any socket buffer.
const batchSize = 64

// ErrInvalid is returned by Identify when the nsqlookupd answers nothing but E_INVALID, as very old
// ones do.
var ErrInvalid = errors.New("lookupd returned E_INVALID")

var errUnasked = errors.New("answer without a command")

// IdentityError is an answer to IDENTIFY that is not what it should be.
type IdentityError struct {
	Payload string
	Cause   error
}

// Error names the cause; the payload may be long.
func (e *IdentityError) Error() string { return "decode answer to IDENTIFY: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *IdentityError) Unwrap() error { return e.Cause }

// CommandError says which command failed. If the nsqlookupd refused it, the cause is an *Error.
type CommandError struct {
	Command string
	Cause   error
}

// Error names the command and the cause.
func (e *CommandError) Error() string { return e.Command + " - " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *CommandError) Unwrap() error { return e.Cause }

// DialOptions say how a connection is made and what it tolerates. Zero values are defaults.
type DialOptions struct {
	Dial      func(ctx context.Context, network, address string) (net.Conn, error) // a plain dialer
	Timeout   time.Duration                                                        // for the dial, each write and each answer; 1 s
	MaxAnswer int                                                                  // bytes; 5 MiB
}

// Conn is a connection from a nsqd to a nsqlookupd. Commands are given by one goroutine at a time, and
// after a failed one the connection is only good for Close. A goroutine of its own reads the answers,
// until Close or until the peer goes away.
type Conn struct {
	conn      net.Conn
	timeout   time.Duration
	maxAnswer int

	awaited atomic.Int64  // commands sent whose answer has not arrived
	answers chan []byte   // from the reading goroutine to the one that gives commands
	closing chan struct{} // closed by Close
	close   sync.Once
	ended   chan struct{} // closed when nothing more will be read
	err     error         // why; valid once ended is closed
}

// Dial connects and sends the magic. The caller closes the connection.
func Dial(ctx context.Context, address string, options DialOptions) (*Conn, error) {
	if options.Dial == nil {
		options.Dial = new(net.Dialer).DialContext
	}
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	if options.MaxAnswer <= 0 {
		options.MaxAnswer = defaultMaxAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	conn, err := options.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		conn:      conn,
		timeout:   options.Timeout,
		maxAnswer: options.MaxAnswer,
		answers:   make(chan []byte),
		closing:   make(chan struct{}),
		ended:     make(chan struct{}),
	}
	go c.readAnswers()
	if err := c.write([]byte(Magic)); err != nil {
		return nil, errors.Join(fmt.Errorf("send magic: %w", err), c.Close())
	}
	return c, nil
}

// Ended is closed when the connection is of no more use, whoever ended it.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Err says why nothing more will be read; it is nil before Ended is closed.
func (c *Conn) Err() error {
	select {
	case <-c.ended:
		return c.err
	default:
		return nil
	}
}

// Close ends the connection and waits for its goroutine. It may be called from any goroutine, more
// than once; a command that is waiting fails.
func (c *Conn) Close() error {
	var err error
	c.close.Do(func() {
		close(c.closing)
		err = c.conn.Close()
	})
	<-c.ended
	return err
}

// Identify introduces the nsqd. It returns ErrInvalid, an *IdentityError, or what went wrong on the
// way.
func (c *Conn) Identify(id Identity) (PeerInfo, error) {
	command, err := AppendIdentify(nil, id)
	if err != nil {
		return PeerInfo{}, err
	}
	if err := c.send(command, 1); err != nil {
		return PeerInfo{}, err
	}
	answer, err := c.await()
	if err != nil {
		return PeerInfo{}, err
	}
	if string(answer) == "E_INVALID" {
		return PeerInfo{}, ErrInvalid
	}
	var info PeerInfo
	if err := json.Unmarshal(answer, &info); err != nil {
		return PeerInfo{}, &IdentityError{Payload: string(answer), Cause: err}
	}
	return info, nil
}

// Ping tells that the nsqd is alive. Its error is a *CommandError.
func (c *Conn) Ping() error { return c.run([]string{CommandPing}) }

// Update registers and unregisters, in order, several commands a round trip. Its error is a
// *CommandError.
func (c *Conn) Update(changes []Change) error {
	lines := make([]string, 0, min(len(changes), batchSize))
	for len(changes) > 0 {
		n := min(len(changes), batchSize)
		lines = lines[:0]
		for _, change := range changes[:n] {
			lines = append(lines, change.String())
		}
		if err := c.run(lines); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// run sends the lines at once and then reads an answer for each.
func (c *Conn) run(lines []string) error {
	var batch []byte
	for _, line := range lines {
		batch = append(batch, line...)
		batch = append(batch, '\n')
	}
	if err := c.send(batch, len(lines)); err != nil {
		return &CommandError{Command: lines[0], Cause: err}
	}
	for _, line := range lines {
		answer, err := c.await()
		if err != nil {
			return &CommandError{Command: line, Cause: err}
		}
		if text := string(answer); strings.HasPrefix(text, "E_") {
			return &CommandError{Command: line, Cause: &Error{Text: text}}
		}
	}
	return nil
}

// send writes that many commands.
func (c *Conn) send(commands []byte, count int) error {
	c.awaited.Add(int64(count))
	return c.write(commands)
}

func (c *Conn) write(data []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	_, err := c.conn.Write(data)
	return err
}

// await returns the next answer. Time is measured here and not on the socket, so that a peer that
// sends a byte now and then is not waited for longer.
func (c *Conn) await() ([]byte, error) {
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case answer := <-c.answers:
		return answer, nil
	case <-c.ended:
		return nil, c.err
	case <-timer.C:
		return nil, fmt.Errorf("no answer within %s", c.timeout)
	}
}

// readAnswers has no read deadline: it is also how an idle connection learns that the peer is gone.
// A peer that owes an answer is limited by await, one that owes nothing by Close.
func (c *Conn) readAnswers() {
	defer close(c.ended)
	r := bufio.NewReader(c.conn)
	for {
		answer, err := ReadAnswer(r, c.maxAnswer)
		if err == nil && c.awaited.Add(-1) < 0 {
			err = errUnasked
		}
		if err != nil {
			c.err = err
			return
		}
		select {
		case c.answers <- answer:
		case <-c.closing:
			c.err = net.ErrClosed
			return
		}
	}
}
