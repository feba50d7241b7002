// Package optionstest holds the documents that are made from a table of options against the table:
// a test that calls it fails when they differ, and rewrites them when it is run with -update. It
// does not know any daemon.
package optionstest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nsq/internal/options"
)

var update = flag.Bool("update", false, "rewrite the documents that are made from the options")

// Daemon is what has a table of options.
type Daemon interface {
	Table() *options.Table
	Validate() error
}

// Rows returns what scripts and files know of each option of a table, in its order: flag, key, type,
// and the value as JSON. An option that is a flag only has neither key nor value.
func Rows(t *testing.T, table *options.Table) (rows [][4]string) {
	t.Helper()
	for _, group := range table.Groups() {
		for _, option := range group.Options {
			row := [4]string{option.Flag, option.TOMLKey(), option.Value.Type()}
			if value, ok := table.Get(row[1]); ok {
				text, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				row[3] = string(text)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Reference compares the part of a document between the marks "<!-- options of PROGRAM -->" and
// "<!-- end of PROGRAM -->" with the reference of the table, which has its defaults.
func Reference(t *testing.T, path string, table *options.Table) {
	t.Helper()
	text := read(t, path)
	begin := fmt.Sprintf("<!-- options of %s -->\n", table.Program())
	end := fmt.Sprintf("\n<!-- end of %s -->\n", table.Program())
	before, rest, found := strings.Cut(text, begin)
	_, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the options: want %q and %q", path, begin, end)
	}
	compare(t, path, text, before+begin+table.Markdown()+end+after)
}

// SampleFile compares a sample file with the table, which has its defaults, and makes sure that it
// can be used: as it is, and with each key set. create makes the daemon's options with the defaults;
// the arguments are given where each key is set, for keys that need others.
func SampleFile(t *testing.T, path string, create func() Daemon, sample options.Sample, arguments ...string) {
	t.Helper()
	want, err := create().Table().Sample(sample)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, path, read(t, path), want)
	usable(t, create(), path)

	all := filepath.Join(t.TempDir(), "all.cfg")
	if err := os.WriteFile(all, []byte(options.Uncommented(want)), 0o600); err != nil {
		t.Fatal(err)
	}
	usable(t, create(), all, arguments...)
}

// usable fails the test unless the daemon starts with the file without a complaint.
func usable(t *testing.T, daemon Daemon, path string, arguments ...string) {
	t.Helper()
	var output strings.Builder
	arguments = append([]string{"--config-strict", "--config", path}, arguments...)
	warnings, err := daemon.Table().Load(arguments, &output, &output)
	if err != nil || len(warnings) > 0 || output.Len() > 0 {
		t.Errorf("%s: error %v, warnings %q, output %q", path, err, warnings, output.String())
	}
	if err := daemon.Validate(); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// read returns a file's text, and nothing of a file that is to be written anew.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	return string(text)
}

func compare(t *testing.T, path, got, want string) {
	t.Helper()
	switch {
	case got == want:
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the options say, in line %d: go test . -update writes it anew", path, firstDifference(got, want))
	}
}

// firstDifference is the first line, from 1, in which two texts differ.
func firstDifference(a, b string) int {
	other := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(other) || line != other[i] {
			return i + 1
		}
	}
	return strings.Count(a, "\n") + 2
}
