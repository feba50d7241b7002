package testutil

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each fate of a message has its place in the balance, whatever the order of OK and FIN.
func TestLedger(t *testing.T) {
	l := NewLedger("c", "idle")
	l.Sending("kept", "lost", "twice", "thrice", "early", "unsure", "vanished")
	l.Finished("c", "early") // a consumer can be faster than the OK
	l.Acknowledged("kept", "lost", "twice", "thrice", "early")
	for _, key := range []string{"kept", "twice", "twice", "thrice", "thrice", "thrice", "unsure", "foreign"} {
		l.Finished("c", key)
	}
	want := Balance{
		Lost:       []string{"lost"},
		Duplicates: []string{"thrice", "thrice", "twice"},
		Unexpected: []string{"foreign"},
		Unsure:     1,
	}
	if diff := cmp.Diff(want, l.Balance("c")); diff != "" {
		t.Error(diff)
	}
	if l.Acked() != 5 || l.Left("c") != 1 || l.Left("idle") != 5 {
		t.Errorf("%d acknowledged, %d and %d left", l.Acked(), l.Left("c"), l.Left("idle"))
	}
	if lost := l.Balance("idle").Lost; len(lost) != 5 {
		t.Errorf("a reader of nothing lost %q", lost)
	}
	text := `lost 1 ["lost"], duplicates 3 ["thrice" "thrice" "twice"], unexpected 1 ["foreign"], finished without an OK 1`
	if got := l.Balance("c").String(); got != text {
		t.Errorf("balance %s\nwant    %s", got, text)
	}
}

// Entries that make no sense are mistakes of the test that makes them.
func TestLedgerMisuse(t *testing.T) {
	for name, misuse := range map[string]func(l *Ledger){
		"sent again":         func(l *Ledger) { l.Sending("a") },
		"acknowledged again": func(l *Ledger) { l.Acknowledged("a") },
		"never sent":         func(l *Ledger) { l.Acknowledged("b") },
		"unknown reader":     func(l *Ledger) { l.Finished("d", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger("c")
			l.Sending("a")
			l.Acknowledged("a")
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			misuse(l)
		})
	}
}

// A long list is cut in what is shown, not in what is counted.
func TestBalanceShowsSome(t *testing.T) {
	var b Balance
	for i := range 50 {
		b.Lost = append(b.Lost, fmt.Sprint(i))
	}
	want := `lost 50 ["0" "1" "2" "3" "4" "5" "6" "7" "8" "9"], duplicates 0 [], unexpected 0 [], finished without an OK 0`
	if got := b.String(); got != want {
		t.Errorf("balance %s\nwant    %s", got, want)
	}
}
