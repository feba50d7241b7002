// Package testutil has what tests of whole programs share: it builds and starts the programs, watches
// and stops them, waits for what must happen, makes certificates, and keeps the ledger of messages
// published and finished.
// It knows a program by its command line, its log and its addresses only; what is said to one is the
// test's business.
//
// Source: nsqd-config spec, sections 8 to 10.
package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Programs is a temporary folder of built programs.
type Programs struct{ dir string }

// Build builds the programs of these names from apps/, for TestMain to do once. Under the race
// detector they are built with it. Whoever calls it removes them in the end.
func Build(names ...string) (*Programs, error) {
	dir, err := os.MkdirTemp("", "nsq-programs")
	if err != nil {
		return nil, fmt.Errorf("make folder of programs: %w", err)
	}
	p := &Programs{dir: dir}
	args := slices.Concat([]string{"build"}, raceFlags, []string{"-o", dir + string(filepath.Separator)})
	for _, name := range names {
		args = append(args, "nsq/apps/"+name)
	}
	if output, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build programs: %w\n%s", err, output), p.Remove())
	}
	return p, nil
}

// Path is the file of a program.
func (p *Programs) Path(name string) string { return filepath.Join(p.dir, name) }

// Remove removes the folder.
func (p *Programs) Remove() error { return os.RemoveAll(p.dir) }
