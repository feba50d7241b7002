// Package destination chooses which of several addresses gets the next message, and learns from what
// became of the last ones which of them to leave alone for a while.
//
//	pool := destination.New(destination.HostPool, addresses)
//	turn := pool.Next()
//	err := send(turn.Address)
//	turn.Done(err == nil)
//
// It knows addresses by their place in a list and sends nothing.
//
// Source: apps spec, section 5.
package destination

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Mode is a way to choose.
type Mode string

// The modes.
const (
	RoundRobin    Mode = "round-robin"    // one after the other, whatever became of them
	HostPool      Mode = "hostpool"       // one after the other, but for dead ones
	EpsilonGreedy Mode = "epsilon-greedy" // fast ones more often, dead ones not at all
)

// ParseMode reads a mode; the error names those that there are.
func ParseMode(text string) (Mode, error) {
	modes := []Mode{HostPool, RoundRobin, EpsilonGreedy}
	if i := slices.Index(modes, Mode(text)); i >= 0 {
		return modes[i], nil
	}
	return "", fmt.Errorf("must be one of %q, is %q", modes, text)
}

// How long a dead host is left alone: the first time, and at most. It doubles in between.
const (
	firstRetry   = 30 * time.Second
	longestRetry = 900 * time.Second
)

// Pool chooses among addresses. It is safe for concurrent use.
type Pool struct {
	now    func() time.Time
	random func() float64 // [0,1)

	mu      sync.Mutex // guards all below
	mode    Mode
	hosts   []*host
	next    int     // the place where hostpool goes on, or how many turns round-robin has given
	epsilon float64 // how likely epsilon-greedy explores
}

// host is one address.
type host struct {
	address string
	dead    bool
	delay   time.Duration // between this and the next time that a dead host is tried
	retryAt time.Time     // of a dead host
	speed   speed
}

// New returns a pool. There must be at least one address.
func New(mode Mode, addresses []string) *Pool {
	return newPool(mode, addresses, time.Now, rand.Float64)
}

func newPool(mode Mode, addresses []string, now func() time.Time, random func() float64) *Pool {
	p := &Pool{now: now, random: random, mode: mode, epsilon: firstEpsilon}
	for _, address := range addresses {
		p.hosts = append(p.hosts, &host{address: address})
	}
	return p
}

// Turn is one use of an address.
type Turn struct {
	Index   int // of the address in the list
	Address string

	pool  *Pool
	start time.Time
}

// Next gives a turn to one of the addresses.
func (p *Pool) Next() Turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	i := p.choose(now)
	return Turn{Index: i, Address: p.hosts[i].address, pool: p, start: now}
}

// Done ends the turn: did the host do its part? That it refused a message is no reason to say no, and a
// turn need not be ended if nothing was learnt. Time counts from Next.
func (t Turn) Done(alive bool) {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	h, now := p.hosts[t.Index], p.now()
	switch {
	case alive:
		h.dead = false
		h.speed.add(now, now.Sub(t.start))
	case !h.dead:
		h.dead, h.delay, h.retryAt = true, firstRetry, now.Add(firstRetry)
	}
}

// choose returns the place of the address whose turn it is; p.mu is held.
func (p *Pool) choose(now time.Time) int {
	switch p.mode {
	case RoundRobin:
		p.next++ // the first one gets the last turn of a round
		return p.next % len(p.hosts)
	case EpsilonGreedy:
		return p.greedy(now)
	default:
		return p.cycle(now, func(*host) bool { return true })
	}
}

// cycle gives the turn to the next host that may have one and that is wanted; if there is none, all are
// alive again and the first one gets it.
func (p *Pool) cycle(now time.Time, wanted func(*host) bool) int {
	for step := range p.hosts {
		i := (p.next + step) % len(p.hosts)
		h := p.hosts[i]
		if !h.eligible(now) || !wanted(h) {
			continue
		}
		p.next = (i + 1) % len(p.hosts)
		if h.dead {
			h.delay = min(2*h.delay, longestRetry)
			h.retryAt = now.Add(h.delay)
		}
		return i
	}
	for _, h := range p.hosts {
		h.dead = false
	}
	p.next = 1 % len(p.hosts)
	return 0
}

// eligible says whether the host may have a turn: it is alive, or it is time to try again.
func (h *host) eligible(now time.Time) bool { return !h.dead || !now.Before(h.retryAt) }
