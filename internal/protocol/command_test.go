package protocol

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestCutLine(t *testing.T) {
	long := strings.Repeat("N", MaxLineLength-1)
	for _, test := range []struct {
		name, buf, line string
		length          int
	}{
		{"nothing", "", "", 0},
		{"no line feed yet", "SUB t ch", "", 0},
		{"a carriage return is no end", "SUB t ch\r", "", 0},
		{"whole line", "NOP\n", "NOP", 4},
		{"empty line", "\n", "", 1},
		{"one carriage return is dropped", "NOP\r\n", "NOP", 5},
		{"only one carriage return is dropped", "NOP\r\r\n", "NOP\r", 6},
		{"a lone carriage return is an empty line", "\r\n", "", 2},
		{"a carriage return elsewhere stays", "N\rP\n", "N\rP", 4},
		{"the first of several", "A\nB\n", "A", 2},
		{"what follows is left alone", "PUB t\n\x00\x00\x00\x01\n", "PUB t", 6},
		{"as long as a line may be", long + "\n", long, MaxLineLength},
	} {
		t.Run(test.name, func(t *testing.T) {
			line, length := CutLine([]byte(test.buf))
			if string(line) != test.line || length != test.length {
				t.Errorf("got %q, %d, want %q, %d", line, length, test.line, test.length)
			}
		})
	}
}

func TestCommandNames(t *testing.T) {
	known := map[string]Op{
		"IDENTIFY": OpIdentify, "AUTH": OpAuth, "SUB": OpSub, "RDY": OpRdy, "FIN": OpFin, "REQ": OpReq,
		"TOUCH": OpTouch, "CLS": OpCls, "NOP": OpNop, "PUB": OpPub, "MPUB": OpMPub, "DPUB": OpDPub,
	}
	if len(known) != int(NumOps)-1 {
		t.Fatalf("%d commands are tested of %d", len(known), NumOps-1)
	}
	for name, op := range known {
		cmd := ParseCommand([]byte(name))
		if cmd.Op != op || string(cmd.Name) != name || op.String() != name {
			t.Errorf("%s is read as %v (%s), whose name is %s", name, cmd.Op, cmd.Name, op)
		}
		for _, wrong := range []string{strings.ToLower(name), name + "X", name[:len(name)-1], name + "\r", name + "\t", "\x00" + name} {
			if cmd := ParseCommand([]byte(wrong)); cmd.Op != OpUnknown || string(cmd.Name) != wrong {
				t.Errorf("%q is read as %v (%q)", wrong, cmd.Op, cmd.Name)
			}
		}
	}
}

// Parameters are separated by every single space, as the reference does it.
func TestParameters(t *testing.T) {
	for _, test := range []struct {
		line   string
		name   string
		params []string
	}{
		{"", "", nil},
		{"NOP", "NOP", nil},
		{"RDY ", "RDY", []string{""}},
		{"RDY 5", "RDY", []string{"5"}},
		{"SUB t ch", "SUB", []string{"t", "ch"}},
		{"SUB  ch", "SUB", []string{"", "ch"}},
		{"SUB t ch ", "SUB", []string{"t", "ch", ""}},
		{" NOP", "", []string{"NOP"}},
		{"  ", "", []string{"", ""}},
		{"REQ id 5 extra more", "REQ", []string{"id", "5", "extra", "more"}},
		{"SUB t\tch", "SUB", []string{"t\tch"}},
	} {
		cmd := ParseCommand([]byte(test.line))
		if string(cmd.Name) != test.name {
			t.Errorf("%q: name %q, want %q", test.line, cmd.Name, test.name)
		}
		for i, want := range test.params {
			if !cmd.Any() {
				t.Errorf("%q: parameter %d is not announced", test.line, i)
			}
			if got, ok := cmd.Next(); !ok || string(got) != want {
				t.Errorf("%q: parameter %d is %q, %v, want %q", test.line, i, got, ok, want)
			}
		}
		for range 2 { // the end stays the end
			if got, ok := cmd.Next(); cmd.Any() || ok || got != nil {
				t.Errorf("%q: a parameter too many: %q", test.line, got)
			}
		}
	}
}

func TestParseDecimal(t *testing.T) {
	const largest = int64(math.MaxInt64)
	for _, test := range []struct {
		digits string
		want   int64
	}{
		{"", 0}, {"0", 0}, {"1", 1}, {"007", 7}, {"2501", 2501}, {"3600001", 3600001},
		{"9223372036854775806", largest - 1},
		{"9223372036854775807", largest},
		{"9223372036854775808", largest},  // 2^63
		{"18446744073709551615", largest}, // 2^64 - 1
		{"18446744073709551616", largest}, // 2^64, 0 to a parser that wraps around
		{"18446744073710", 18446744073710},
		{"922337203685477581", 922337203685477581},
		{"92233720368547758070", largest},
		{strings.Repeat("9", 16000), largest},
		{strings.Repeat("0", 16000) + "12", 12},
	} {
		if got, ok := ParseDecimal([]byte(test.digits)); !ok || got != test.want {
			t.Errorf("%.40q: got %d, %v, want %d", test.digits, got, ok, test.want)
		}
	}
	for _, bad := range []string{"-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "a", "1a", "١", "1\r", "1\x00", strings.Repeat("9", 30) + "x"} {
		if got, ok := ParseDecimal([]byte(bad)); ok || got != 0 {
			t.Errorf("%q is read as %d", bad, got)
		}
	}
}

// Whatever arrives, a line is a piece of the buffer without a line feed, and its words joined by
// spaces are the line again.
func FuzzCommand(f *testing.F) {
	for _, seed := range []string{"", "\n", "\r\n", "SUB t ch\r\n", "RDY \n", "PUB t\n\x00\x00\x00\x01a", " \n", "FIN 0123456789abcdef\nNOP\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, buf []byte) {
		line, length := CutLine(buf)
		if length == 0 {
			if line != nil || bytes.IndexByte(buf, '\n') >= 0 {
				t.Fatalf("no line found in %q", buf)
			}
			return
		}
		ending := buf[len(line):length]
		if !bytes.HasPrefix(buf, line) || bytes.IndexByte(line, '\n') >= 0 || string(ending) != "\n" && string(ending) != "\r\n" {
			t.Fatalf("line %q with ending %q of %q", line, ending, buf)
		}
		cmd := ParseCommand(line)
		if cmd.Op != OpUnknown && cmd.Op.String() != string(cmd.Name) {
			t.Fatalf("%q is read as %v", cmd.Name, cmd.Op)
		}
		words := [][]byte{cmd.Name}
		for cmd.Any() {
			param, _ := cmd.Next()
			words = append(words, param)
		}
		for _, word := range words {
			if bytes.IndexByte(word, ' ') >= 0 {
				t.Fatalf("word %q of %q", word, line)
			}
		}
		if joined := bytes.Join(words, []byte(" ")); !bytes.Equal(joined, line) {
			t.Fatalf("words of %q are those of %q", line, joined)
		}
	})
}

// Digits have the value that arithmetic without a limit gives them, capped; all else is refused.
func FuzzParseDecimal(f *testing.F) {
	for _, seed := range []string{"", "0", "9223372036854775807", "18446744073709551616", "-1", "1x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, digits []byte) {
		got, ok := ParseDecimal(digits)
		if valid := len(bytes.Trim(digits, "0123456789")) == 0; ok != valid {
			t.Fatalf("%q: accepted %v", digits, ok)
		}
		if !ok {
			return
		}
		want, _ := new(big.Int).SetString("0"+string(digits), 10)
		if largest := big.NewInt(math.MaxInt64); want.Cmp(largest) > 0 {
			want = largest
		}
		if want.Int64() != got {
			t.Fatalf("%q: got %d, want %d", digits, got, want)
		}
	})
}
