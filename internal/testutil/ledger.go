package testutil

import (
	"fmt"
	"slices"
	"sync"
)

// Ledger is the account of a test's messages. Each message has a key of its own. A publisher enters
// what it is about to send and what was acknowledged; a consumer enters, under the name of what it
// reads from, each message that it finishes. Its methods may be called from any goroutine.
type Ledger struct {
	mu       sync.Mutex
	sent     map[string]bool           // whether it was acknowledged
	acked    int                       // how many were
	finished map[string]map[string]int // by reader and key, how often
	left     map[string]int            // by reader, how many acknowledged messages it has not finished
}

// NewLedger returns an empty ledger. Only the readers named here are in it.
func NewLedger(readers ...string) *Ledger {
	l := &Ledger{sent: map[string]bool{}, finished: map[string]map[string]int{}, left: map[string]int{}}
	for _, reader := range readers {
		l.finished[reader] = map[string]int{}
	}
	return l
}

// Sending enters messages that are going to be sent. Unless they are acknowledged they may arrive or
// not.
func (l *Ledger) Sending(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if _, again := l.sent[key]; again {
			panic(fmt.Sprintf("message %q is sent again", key))
		}
		l.sent[key] = false
	}
}

// Acknowledged enters messages that must arrive from now on.
func (l *Ledger) Acknowledged(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if known, ok := l.sent[key]; !ok || known {
			panic(fmt.Sprintf("message %q is acknowledged out of turn", key))
		}
		l.sent[key] = true
		l.acked++
		for reader, finished := range l.finished {
			if finished[key] == 0 {
				l.left[reader]++
			}
		}
	}
}

// Finished enters a message that the reader has finished.
func (l *Ledger) Finished(reader, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	finished, ok := l.finished[reader]
	if !ok {
		panic(fmt.Sprintf("reader %q is not in the ledger", reader))
	}
	finished[key]++
	if finished[key] == 1 && l.sent[key] {
		l.left[reader]--
	}
}

// Acked is how many messages were acknowledged.
func (l *Ledger) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// Left is how many acknowledged messages the reader has not finished.
func (l *Ledger) Left(reader string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left[reader]
}

// Balance is what became of the messages for one reader. Keys are sorted.
type Balance struct {
	Lost       []string // acknowledged and not finished
	Duplicates []string // finished again, once for each time
	Unexpected []string // finished and never sent
	Unsure     int      // finished without having been acknowledged
}

// Balance compares what was published with what the reader finished.
func (l *Ledger) Balance(reader string) Balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b Balance
	finished := l.finished[reader]
	for key, acked := range l.sent {
		if acked && finished[key] == 0 {
			b.Lost = append(b.Lost, key)
		}
	}
	for key, times := range finished {
		acked, sent := l.sent[key]
		switch {
		case !sent:
			b.Unexpected = append(b.Unexpected, key)
		case !acked:
			b.Unsure++
		}
		for range times - 1 {
			b.Duplicates = append(b.Duplicates, key)
		}
	}
	for _, keys := range [][]string{b.Lost, b.Duplicates, b.Unexpected} {
		slices.Sort(keys)
	}
	return b
}

// shownKeys is how many keys of a kind a message shows.
const shownKeys = 10

// String tells the numbers and some of the keys.
func (b Balance) String() string {
	show := func(keys []string) string {
		return fmt.Sprintf("%d %.20q", len(keys), keys[:min(len(keys), shownKeys)])
	}
	return fmt.Sprintf("lost %s, duplicates %s, unexpected %s, finished without an OK %d",
		show(b.Lost), show(b.Duplicates), show(b.Unexpected), b.Unsure)
}
