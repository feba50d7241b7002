package lookup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Lines are trimmed, split at each single space, and count only with their end.
func TestReadCommand(t *testing.T) {
	fits := strings.Repeat("x", MaxLineLength-1)
	tests := []struct {
		input string
		want  []Command
		end   error
	}{
		{"PING\n", []Command{{"PING", []string{}}}, io.EOF},
		{"PING\r\n  PING \t\n", []Command{{"PING", []string{}}, {"PING", []string{}}}, io.EOF},
		{"REGISTER t  c\n", []Command{{"REGISTER", []string{"t", "", "c"}}}, io.EOF},
		{"\nping a", []Command{{"", []string{}}}, io.EOF},
		{fits + "\n", []Command{{fits, []string{}}}, io.EOF},
		{"PING\n" + fits + "x\n", []Command{{"PING", []string{}}}, errLineTooLong},
		{"", nil, io.EOF},
	}
	for _, test := range tests {
		for name, source := range map[string]io.Reader{
			"whole":  strings.NewReader(test.input),
			"pieces": iotest.OneByteReader(strings.NewReader(test.input)),
		} {
			r := NewReader(source)
			var got []Command
			c, err := ReadCommand(r)
			for ; err == nil; c, err = ReadCommand(r) {
				got = append(got, c)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.end) {
				t.Errorf("%.40q in %s ended with %v, want %v (-want +got):\n%s", test.input, name, err, test.end, diff)
			}
		}
	}
}

func TestRegistrationParameters(t *testing.T) {
	long := strings.Repeat("x", 65)
	tests := []struct {
		line string
		want Registration
		err  string
	}{
		{"REGISTER t", Registration{Topic: "t", Channel: ""}, ""},
		{"REGISTER t c", Registration{Topic: "t", Channel: "c"}, ""},
		{"REGISTER t c surplus", Registration{Topic: "t", Channel: "c"}, ""},
		{"REGISTER t  c", Registration{Topic: "t", Channel: ""}, ""},
		{"UNREGISTER t#ephemeral c#ephemeral", Registration{Topic: "t#ephemeral", Channel: "c#ephemeral"}, ""},
		{"REGISTER", Registration{}, "E_INVALID REGISTER insufficient number of params"},
		{"UNREGISTER", Registration{}, "E_INVALID UNREGISTER insufficient number of params"},
		{"REGISTER  t", Registration{}, "E_BAD_TOPIC REGISTER topic name '' is not valid"},
		{"UNREGISTER * *", Registration{}, "E_BAD_TOPIC UNREGISTER topic name '*' is not valid"},
		{"REGISTER " + long, Registration{}, "E_BAD_TOPIC REGISTER topic name '" + long + "' is not valid"},
		{"REGISTER t #ephemeral", Registration{}, "E_BAD_CHANNEL REGISTER channel name '#ephemeral' is not valid"},
		{"UNREGISTER t a*b", Registration{}, "E_BAD_CHANNEL UNREGISTER channel name 'a*b' is not valid"},
	}
	for _, test := range tests {
		c, err := ReadCommand(NewReader(strings.NewReader(test.line + "\n")))
		if err != nil {
			t.Fatalf("%q: %v", test.line, err)
		}
		got, fault := c.Registration()
		text := ""
		if fault != nil {
			text = fault.Text
		}
		if got != test.want || text != test.err {
			t.Errorf("%q = %v, %q; want %v, %q", test.line, got, text, test.want, test.err)
		}
	}
}

// body is an IDENTIFY body with a length of the caller's choice.
func body(length int32, json string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(length)), json...)
}

const goodIdentity = `{"broadcast_address":"b","tcp_port":1,"http_port":2,"version":"1.0"}`

func TestReadIdentity(t *testing.T) {
	good := AppendFrame(nil, `{"BROADCAST_ADDRESS":"b","tcp_port":-1,"http_port":99999,"version":"1","hostname":"h","topology_zone":"z","topology_region":"r","remote_address":"x","new":[1]}`)
	got, fault := ReadIdentity(bytes.NewReader(good))
	want := Identity{BroadcastAddress: "b", TCPPort: -1, HTTPPort: 99999, Version: "1", Hostname: "h", TopologyZone: "z", TopologyRegion: "r"}
	if fault != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, fault, want)
	}

	const decode, missing = "E_BAD_BODY IDENTIFY failed to decode JSON body", "E_BAD_BODY IDENTIFY missing fields"
	bad := []struct {
		input []byte
		err   string
	}{
		{nil, "E_BAD_BODY IDENTIFY failed to read body size"},
		{[]byte{0, 0, 0}, "E_BAD_BODY IDENTIFY failed to read body size"},
		{body(int32(len(goodIdentity))+1, goodIdentity), "E_BAD_BODY IDENTIFY failed to read body"},
		{body(5, ""), "E_BAD_BODY IDENTIFY failed to read body"},
		{body(-1, goodIdentity), "E_BAD_BODY IDENTIFY invalid body size -1"},
		{body(-2147483648, ""), "E_BAD_BODY IDENTIFY invalid body size -2147483648"},
		{body(2147483647, ""), "E_BAD_BODY IDENTIFY invalid body size 2147483647"},
		{body(MaxBodyLength+1, ""), "E_BAD_BODY IDENTIFY invalid body size 65537"},
		{AppendFrame(nil, ""), decode},
		{AppendFrame(nil, "[]"), decode},
		{AppendFrame(nil, "{"), decode},
		{AppendFrame(nil, goodIdentity+"x"), decode},
		{AppendFrame(nil, `{"tcp_port":"1"}`), decode},
		{AppendFrame(nil, `{"tcp_port":1.5}`), decode},
		{AppendFrame(nil, "null"), missing},
		{AppendFrame(nil, "{}"), missing},
	}
	for _, field := range []string{`"broadcast_address":"b"`, `"tcp_port":1`, `"http_port":2`, `"version":"1.0"`} {
		bad = append(bad, struct {
			input []byte
			err   string
		}{AppendFrame(nil, strings.Replace(goodIdentity, field, `"x":0`, 1)), missing})
	}
	for _, test := range bad {
		if _, fault := ReadIdentity(bytes.NewReader(test.input)); fault == nil || fault.Text != test.err {
			t.Errorf("%.40q: got %v, want %s", test.input, fault, test.err)
		}
	}
	if _, fault := ReadIdentity(bytes.NewReader(body(MaxBodyLength, goodIdentity+strings.Repeat(" ", MaxBodyLength-len(goodIdentity))))); fault != nil {
		t.Errorf("a body of the greatest length: %v", fault)
	}
}

// The keys of IDENTIFY go out in the order in which nsqlookupd has always received them.
func TestAppendIdentify(t *testing.T) {
	id := Identity{BroadcastAddress: "host1", Hostname: "host2", HTTPPort: 4151, TCPPort: 4150, TopologyRegion: "r1", TopologyZone: "z1", Version: "1.3.0"}
	got, err := AppendIdentify([]byte(Magic), id)
	want := "  V1IDENTIFY\n" + string(AppendFrame(nil, `{"broadcast_address":"host1","hostname":"host2","http_port":4151,"tcp_port":4150,"topology_region":"r1","topology_zone":"z1","version":"1.3.0"}`))
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestReadAnswer(t *testing.T) {
	const limit = 8
	tests := []struct {
		input []byte
		want  string
		err   string
	}{
		{AppendFrame(nil, "OK"), "OK", ""},
		{AppendFrame(nil, ""), "", ""},
		{AppendFrame(nil, "12345678"), "12345678", ""},
		{AppendFrame(nil, "123456789"), "", "response body size (9) is greater than limit (8)"},
		{body(2147483647, ""), "", "response body size (2147483647) is greater than limit (8)"},
		{body(-1, ""), "", "response body size (-1) is negative"},
		{body(3, "OK"), "", "read answer: unexpected EOF"},
		{[]byte{0, 0}, "", "read answer length: unexpected EOF"},
		{nil, "", "read answer length: EOF"},
	}
	for _, test := range tests {
		got, err := ReadAnswer(bytes.NewReader(test.input), limit)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if string(got) != test.want || text != test.err {
			t.Errorf("%q = %q, %q; want %q, %q", test.input, got, text, test.want, test.err)
		}
	}
}

// Whatever arrives, a command is no longer than the limit, has no line feed, and a valid registration
// comes back from the line it is written as.
func FuzzReadCommand(f *testing.F) {
	for _, seed := range []string{"PING\n", "REGISTER t c\nUNREGISTER t\n", "  \r\n", "REGISTER  \x00\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r := NewReader(bytes.NewReader(input))
		for {
			c, err := ReadCommand(r)
			if err != nil {
				return
			}
			whole := strings.Join(append([]string{c.Name}, c.Params...), " ")
			if len(whole) >= MaxLineLength || strings.Contains(whole, "\n") {
				t.Fatalf("command %q", whole)
			}
			registration, fault := c.Registration()
			if fault != nil {
				continue
			}
			again, err := ReadCommand(NewReader(strings.NewReader(Change{Registration: registration}.String() + "\n")))
			if err != nil {
				t.Fatalf("%v cannot be read again: %v", registration, err)
			}
			if same, fault := again.Registration(); fault != nil || same != registration {
				t.Fatalf("%v became %v, %v", registration, same, fault)
			}
		}
	})
}

// Whatever arrives, an accepted identity is complete and within the limit.
func FuzzReadIdentity(f *testing.F) {
	f.Add(AppendFrame(nil, goodIdentity))
	f.Add(body(-1, goodIdentity))
	f.Add(body(2147483647, "{"))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bytes.NewReader(input)
		id, fault := ReadIdentity(r)
		if consumed := len(input) - r.Len(); consumed > lengthSize+MaxBodyLength {
			t.Fatalf("%d bytes were read", consumed)
		}
		if fault != nil {
			if !strings.HasPrefix(fault.Text, "E_BAD_BODY IDENTIFY ") {
				t.Fatalf("error %q", fault.Text)
			}
			return
		}
		if id.BroadcastAddress == "" || id.TCPPort == 0 || id.HTTPPort == 0 || id.Version == "" {
			t.Fatalf("incomplete identity %+v", id)
		}
	})
}

// Whatever arrives, an answer is what was framed, and within the limit.
func FuzzReadAnswer(f *testing.F) {
	f.Add(AppendFrame(nil, "OK"), 100)
	f.Add(body(-1, "x"), 100)
	f.Add(body(2147483647, "x"), 1<<30)
	f.Fuzz(func(t *testing.T, input []byte, limit int) {
		answer, err := ReadAnswer(bytes.NewReader(input), limit)
		if err != nil {
			return
		}
		if len(answer) > limit || !bytes.HasPrefix(input, AppendFrame(nil, answer)) {
			t.Fatalf("answer of %d bytes with limit %d", len(answer), limit)
		}
	})
}
