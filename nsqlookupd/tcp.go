package nsqlookupd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"nsq/internal/log"
	"nsq/internal/lookup"
	"nsq/internal/netserver"
	"nsq/nsqlookupd/registry"
)

const (
	// unidentifiedTimeout is how long a connection may wait with its next command before IDENTIFY.
	unidentifiedTimeout = time.Minute
	// writeTimeout is for each piece of answers; nsqd waits a second for one.
	writeTimeout = 10 * time.Second
	// maxSilence keeps sums of configured times within the range of a duration.
	maxSilence = 365 * 24 * time.Hour
)

// tcpFront serves the V1 protocol.
type tcpFront struct {
	db   *registry.RegistrationDB
	log  *log.Logger
	self []byte // the answer to IDENTIFY
	// commands counts what peers ask for.
	commands *tally
	// silence is how long an identified peer may say nothing. A silent peer is hidden long before, but
	// comes back with its next PING, so this is longer than the inactive producer timeout.
	silence time.Duration
}

func newTCPFront(db *registry.RegistrationDB, logger *log.Logger, self []byte, inactive time.Duration) *tcpFront {
	return &tcpFront{
		db: db, log: logger, self: self, commands: newCommandTally(),
		silence: 2*min(inactive, maxSilence) + time.Minute,
	}
}

// serve is the life of one connection after its magic.
func (f *tcpFront) serve(conn net.Conn) {
	s := &session{front: f, conn: conn, addr: netserver.RemoteAddr(conn)}
	s.out = bufio.NewWriter(timedWriter{conn})
	s.in = lookup.NewReader(flushingReader{conn, s.out})
	// Deferred, for a producer must not stay registered even if serving it panics.
	defer s.leave()
	err := s.converse()
	level := log.Error
	if err == io.EOF || errors.Is(err, net.ErrClosed) {
		level = log.Info // the ordinary end of a connection, by the peer or by us
	}
	f.log.Logf(level, "client(%s) - %s", s.addr, err)
}

// session is one connection; it is used by one goroutine.
type session struct {
	front    *tcpFront
	conn     net.Conn
	addr     string
	in       *bufio.Reader
	out      *bufio.Writer
	producer *registry.Producer // nil until IDENTIFY
}

// converse answers commands until one is refused or the connection ends.
func (s *session) converse() error {
	for {
		answer, err := s.next()
		var refusal *lookup.Error
		if errors.As(err, &refusal) {
			return errors.Join(refusal, s.refuse(refusal))
		}
		if err != nil {
			return err
		}
		if err := s.send(answer); err != nil {
			return err
		}
	}
}

// next reads and executes one command, which has to arrive whole before the deadline.
func (s *session) next() ([]byte, error) {
	patience := s.front.silence
	if s.producer == nil {
		patience = unidentifiedTimeout
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("set read deadline: %w", err)
	}
	command, err := lookup.ReadCommand(s.in)
	if err != nil {
		return nil, err
	}
	s.front.commands.add(command.Name)
	return s.execute(command)
}

func (s *session) execute(command lookup.Command) ([]byte, error) {
	switch command.Name {
	case lookup.CommandPing:
		return s.ping()
	case lookup.CommandIdentify:
		return s.identify()
	case lookup.CommandRegister:
		return s.register(command)
	case lookup.CommandUnregister:
		return s.unregister(command)
	default:
		return nil, command.Invalid()
	}
}

var ok = []byte(lookup.OK)

func (s *session) ping() ([]byte, error) {
	if s.producer != nil {
		silence := s.front.db.Refresh(s.producer, time.Now())
		if s.front.log.Enabled(log.Debug) {
			s.front.log.Debugf("client(%s): PING after %s", s.addr, silence)
		}
	}
	return ok, nil
}

func (s *session) identify() ([]byte, error) {
	if s.producer != nil {
		return nil, lookup.ErrIdentifyAgain
	}
	id, fault := lookup.ReadIdentity(s.in)
	if fault != nil {
		return nil, fault
	}
	s.producer = s.front.db.Identify(registry.Peer{
		RemoteAddress:    s.addr,
		Hostname:         id.Hostname,
		BroadcastAddress: id.BroadcastAddress,
		TCPPort:          id.TCPPort,
		HTTPPort:         id.HTTPPort,
		Version:          id.Version,
		TopologyZone:     id.TopologyZone,
		TopologyRegion:   id.TopologyRegion,
	}, time.Now())
	s.front.log.Infof("client(%s): IDENTIFY address %s, TCP port %d, HTTP port %d, version %s",
		s.addr, id.BroadcastAddress, id.TCPPort, id.HTTPPort, id.Version)
	return s.front.self, nil
}

func (s *session) register(command lookup.Command) ([]byte, error) {
	r, err := s.registration(command)
	if err != nil {
		return nil, err
	}
	for _, added := range s.front.db.Register(s.producer, r.Topic, r.Channel, time.Now()) {
		s.front.log.Infof("client(%s): added to %s", s.addr, added)
	}
	return ok, nil
}

func (s *session) unregister(command lookup.Command) ([]byte, error) {
	r, err := s.registration(command)
	if err != nil {
		return nil, err
	}
	for _, removed := range s.front.db.Unregister(s.producer, r.Topic, r.Channel, time.Now()) {
		level := log.Info
		if r.Channel == "" && removed.SubKey != "" {
			level = log.Warn // a nsqd unregisters its channels first
		}
		s.front.log.Logf(level, "client(%s): removed from %s", s.addr, removed)
	}
	return ok, nil
}

func (s *session) registration(command lookup.Command) (lookup.Registration, error) {
	if s.producer == nil {
		return lookup.Registration{}, lookup.ErrMustIdentify
	}
	r, fault := command.Registration()
	if fault != nil {
		return lookup.Registration{}, fault
	}
	return r, nil
}

// leave takes everything back that the connection has registered.
func (s *session) leave() {
	if s.producer != nil {
		n := s.front.db.Disconnect(s.producer)
		s.front.log.Infof("client(%s): removed from %d registrations", s.addr, n)
	}
}

// send queues an answer; it goes out before the next read from the connection.
func (s *session) send(answer []byte) error {
	_, err := s.out.Write(lookup.AppendFrame(nil, answer))
	return err
}

// refuse sends the error so that the peer can read it, and ends the connection.
func (s *session) refuse(refusal *lookup.Error) error {
	if err := s.send([]byte(refusal.Text)); err != nil {
		return err
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	return netserver.HangUp(s.conn)
}

// flushingReader sends what was answered before it may have to wait: pipelined commands share a
// write, and no peer waits for an answer that is already known.
type flushingReader struct {
	conn net.Conn
	out  *bufio.Writer
}

func (r flushingReader) Read(p []byte) (int, error) {
	if err := r.out.Flush(); err != nil {
		return 0, err
	}
	return r.conn.Read(p)
}

// timedWriter gives each write a deadline of its own.
type timedWriter struct{ conn net.Conn }

func (w timedWriter) Write(p []byte) (int, error) {
	if err := w.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, fmt.Errorf("set write deadline: %w", err)
	}
	return w.conn.Write(p)
}
