package archive

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every token of the time is replaced, and nothing else is.
func TestDatetime(t *testing.T) {
	zone := time.FixedZone("XYZ", 2*3600+30*60)
	moment := time.Date(2026, 2, 3, 15, 4, 9, 0, zone) // a Tuesday
	for format, want := range map[string]string{
		"%Y-%m-%d_%H":      "2026-02-03_15",
		"%y %B %b %A %a":   "26 February Feb Tuesday Tue",
		"%I%p %M %S %Z %z": "03PM 04 09 XYZ +0230",
		"100%%":            "100%",
		"%j %e %q %-d":     "%j %e %q %-d",
		"%":                "%",
		"x%":               "x%",
		"%%Y":              "%Y",
		"Jan-2006-v15-3":   "Jan-2006-v15-3",
		"":                 "",
		"é%Yé%é":           "é2026é%é",
	} {
		compiled, err := compileDatetime(format)
		if err != nil {
			t.Errorf("%q: %v", format, err)
			continue
		}
		if got := compiled.FormatString(moment); got != want {
			t.Errorf("%q gives %q, want %q", format, got, want)
		}
	}
}

// No format is refused, and without a percent sign it is the result.
func FuzzDatetime(f *testing.F) {
	for _, seed := range []string{"%Y-%m-%d_%H", "%", "%%", "%-", "%#", "2006", "\xff%\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, format string) {
		compiled, err := compileDatetime(format)
		if err != nil {
			t.Fatalf("%q: %v", format, err)
		}
		got := compiled.FormatString(noon)
		if !strings.Contains(format, "%") && got != format {
			t.Fatalf("%q gives %q", format, got)
		}
	})
}

func TestNames(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, test := range []struct {
		format, suffix string
		revised        bool
		want           string
	}{
		{"<TOPIC>.<HOST><REV>.<DATETIME>.log", "", false, "t.h.2026.log"},
		{"<TOPIC>.<HOST><REV>.<DATETIME>.log", ".gz", true, "t.h-000000.2026.log.gz"},
		{"<TOPIC><REV>.gz", ".gz", true, "t-000000.gz"},
		{"<TOPIC><REV>.log", ".zst", true, "t-000000.log.zst"},
		{"<DATETIME>/<TOPIC>/<TOPIC>-<PID>", "", false, "2026/t/t-" + pid},
		{"a<REV>/b<REV>", "", true, "a-000000/b-000000"},
		{"//x//<TOPIC>", "", false, "x/t"},
		{"<topic><TOPIC", "", false, "<topic><TOPIC"},
		{"../<TOPIC>", "", false, "../t"}, // who starts the program may want this
	} {
		n, err := Naming{Format: test.format, Datetime: "%Y", Host: "h"}.newNames("t", test.revised, test.suffix)
		if err != nil {
			t.Errorf("%q: %v", test.format, err)
			continue
		}
		name := n.at(noon)
		if got := name.String(); got != test.want {
			t.Errorf("%q gives %q, want %q", test.format, got, test.want)
		}
		if !test.revised {
			continue
		}
		name.revision = 1234567
		if parsed, ok := n.parse(name.String()); !ok || parsed != name {
			t.Errorf("%q is read as %v, %v", name, parsed, ok)
		}
	}
}

// The topic, which a peer has chosen, does not lead out of the folder.
func TestTopicIsNoPath(t *testing.T) {
	for format, bad := range map[string]bool{"<TOPIC>/x": true, "a/<TOPIC>/<TOPIC>/x": true, "<TOPIC>.log": false} {
		if _, err := (Naming{Format: format}).newNames("..", false, ""); (err != nil) != bad {
			t.Errorf("%q with topic ..: %v", format, err)
		}
	}
}

// Where files never continue others, or move, a name without revision is refused.
func TestRevisionIsRequired(t *testing.T) {
	for _, c := range []Config{
		{Compression: Gzip, Level: 6}, {Compression: Zstd, Level: 3}, {RotateSize: 1}, {RotateInterval: 1},
		{Mover: NewMover("/a", "/b")},
	} {
		c.Naming.Format = "<TOPIC>"
		if err := c.Check(); !errors.Is(err, ErrNoRevision) {
			t.Errorf("%+v: %v", c, err)
		}
		c.Naming.Format = "<TOPIC><REV>"
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (&Config{Naming: Naming{Format: "<TOPIC>"}}).Check(); err != nil {
		t.Error(err)
	}
}

// What is found in the work folder is taken for an archive's file only if it is one.
func TestForeignNames(t *testing.T) {
	n, err := Naming{Format: "<TOPIC>.<HOST><REV>.<PID>.<DATETIME><REV>.log", Datetime: "%H", Host: "a+b"}.newNames("t", true, "")
	must(t, err)
	for path, ok := range map[string]bool{
		"t.a+b-000001.77.12-000001.log":                           true,
		"t.a+b-000001.77.12-000002.log":                           false,
		"t.a+b-00001.77.12-00001.log":                             false,
		"t.aab-000001.77.12-000001.log":                           false,
		"t.a+b-000001.x.12-000001.log":                            false,
		"x/t.a+b-000001.77.12-000001.log":                         false,
		"t.a+b-000001.77.12-000001.log.gz":                        false,
		"t.a+b-99999999999999999999.7.1-99999999999999999999.log": false,
	} {
		if got, found := n.parse(path); found != ok || ok && !strings.HasPrefix(got.String(), "t.a+b-000001.77.") {
			t.Errorf("%q: %v, %v", path, got, found)
		}
	}
}

// Whatever lies in the folder, reading its name does not fail, and a name that is read is that name.
func FuzzParse(f *testing.F) {
	n, err := Naming{Format: "<TOPIC><REV>.<DATETIME><REV>"}.newNames("t", true, "")
	must(f, err)
	f.Add("t-000001.x-000001")
	f.Add("t-0000001.x-0000001")
	f.Fuzz(func(t *testing.T, path string) {
		if got, ok := n.parse(path); ok {
			again, ok := n.parse(got.String())
			if !ok || again != got {
				t.Fatalf("%q is %v, and then %v", path, got, again)
			}
		}
	})
}
