package protocol

import (
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	for _, name := range []string{
		"a", "Z", "9", ".", "_", "-", "...", "orders", "Orders_2.v-1",
		strings.Repeat("a", 64),
		"a#ephemeral", ".#ephemeral", strings.Repeat("a", 54) + "#ephemeral",
	} {
		if !ValidName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{
		"", "#ephemeral", "a#foo", "a#", "#", "a#ephemeral#ephemeral", "a#Ephemeral", "#ephemerala", "a#ephemeral ",
		"a!", "a b", "a:b", "a/b", "..\\", "a\x00", "a\n", "é", "a\xff", "a*", "a#ephemera", "a@",
		strings.Repeat("a", 65),
		strings.Repeat("a", 55) + "#ephemeral",
		strings.Repeat("a", 1<<20),
	} {
		if ValidName(name) {
			t.Errorf("%.80q is accepted", name)
		}
	}
}

// Each byte alone is a name exactly if the alphabet has it.
func TestNameAlphabet(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	for c := range 256 {
		name := string([]byte{byte(c)})
		if want := strings.Contains(alphabet, name); ValidName(name) != want {
			t.Errorf("%q: valid is %v", name, !want)
		}
	}
}

func TestIsEphemeral(t *testing.T) {
	for name, want := range map[string]bool{"a#ephemeral": true, "a": false, "ephemeral": false, "a#ephemeralx": false} {
		if IsEphemeral(name) != want {
			t.Errorf("%q: ephemeral is %v", name, !want)
		}
	}
}
