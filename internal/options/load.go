package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"nsq/internal/version"
)

// maxFileSize bounds a settings file in bytes; a real one has a few thousand.
const maxFileSize = 1 << 20

// Exit is the error of a command line that ends the program: everything there was to say has been
// written already, only the code is left.
type Exit struct{ Code int }

func (e Exit) Error() string { return fmt.Sprintf("exit with code %d", e.Code) }

// Load sets the options from the arguments, which do not include the program's name, and from the
// file that they name. Help and errors of the command line go to stderr, the version to stdout;
// then the error is an Exit. The warnings are for the log. Ranges are not checked: see Validate.
func (t *Table) Load(args []string, stdout, stderr io.Writer) (warnings []string, err error) {
	if err := t.parseFlags(args, stderr); err != nil {
		return nil, err
	}
	if t.version {
		if _, err := fmt.Fprintln(stdout, version.Line(t.program)); err != nil {
			return nil, fmt.Errorf("print version: %w", err)
		}
		return nil, Exit{Code: 0}
	}
	if t.config == "" {
		return nil, nil
	}
	keys, err := readFile(t.config)
	if err != nil {
		return nil, t.fileError(err)
	}
	return t.apply(keys)
}

// parseFlags reads the command line. Anything that is left over is an error: a forgotten dash must
// not make the rest of the line ineffective.
func (t *Table) parseFlags(args []string, stderr io.Writer) error {
	set := flag.NewFlagSet(t.program, flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() { t.usage(set) }
	for option := range t.all() {
		set.Var(option.Value, option.Flag, option.Help)
	}
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return Exit{Code: 0}
	case err != nil:
		return Exit{Code: 2}
	case set.NArg() > 0 && !t.version:
		fmt.Fprintf(stderr, "unexpected argument %q: every setting is a flag, and a boolean one takes its value after \"=\"\n", set.Arg(0))
		set.Usage()
		return Exit{Code: 2}
	}
	return nil
}

// readFile reads the top level of a TOML file.
func readFile(path string) (map[string]any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("larger than %d bytes", maxFileSize)
	}
	var keys map[string]any
	if _, err := toml.Decode(string(data), &keys); err != nil {
		return nil, err
	}
	return keys, nil
}

func (t *Table) fileError(err error) error {
	return fmt.Errorf("failed to load config file %s - %w", t.config, err)
}

// apply takes the keys of the file over into the options that no flag has set.
func (t *Table) apply(keys map[string]any) (warnings []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		option := t.find(key)
		if option == nil {
			problem := fmt.Errorf("unknown key %q%s", key, t.hint(key))
			if t.strict {
				return nil, t.fileError(problem)
			}
			warnings = append(warnings, fmt.Sprintf("config file %s: %v is ignored", t.config, problem))
			continue
		}
		if option.Value.given() {
			continue
		}
		err := option.Value.fromFile(keys[key])
		switch {
		case errors.Is(err, errWord):
			return nil, fmt.Errorf("failed parsing %s %v", key, keys[key])
		case err != nil:
			return nil, fmt.Errorf("failed parsing %s %v - %w", key, keys[key], err)
		}
	}
	return warnings, nil
}

// hint names the key that was probably meant: people write the name of the flag.
func (t *Table) hint(key string) string {
	spelled := strings.ReplaceAll(key, "_", "-")
	for option := range t.all() {
		if option.Flag != spelled {
			continue
		}
		if real := option.TOMLKey(); real != "" {
			return fmt.Sprintf(" (did you mean %q?)", real)
		}
		return " (a flag only)"
	}
	return ""
}

// usageEnd is what every stranger has to know of the notation.
const usageEnd = `
A boolean flag takes its value after "=": -name=false. Durations are written like 250ms, 30s or 1h30m.
The keys of the TOML file are the names of the flags with "_" for "-", unless another key is named above.
`

// usage writes what --help shows. The set remembers the defaults, which the arguments that came
// before --help may have replaced in the options.
func (t *Table) usage(set *flag.FlagSet) {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage of %s:\n", t.program)
	for _, group := range t.groups {
		fmt.Fprintf(&text, "\n%s:\n", group.Title)
		for _, option := range group.Options {
			writeUsage(&text, &option, set.Lookup(option.Flag).DefValue)
		}
	}
	text.WriteString(usageEnd)
	io.WriteString(set.Output(), text.String()) // where stderr fails there is nobody left to tell
}

func writeUsage(out *strings.Builder, option *Option, preset string) {
	fmt.Fprintf(out, "  -%s", option.Flag)
	if !option.Value.IsBoolFlag() {
		fmt.Fprintf(out, " %s", cmp.Or(option.Argument, option.Value.Type()))
	}
	fmt.Fprintf(out, "\n    \t%s", option.Help)
	var notes []string
	if option.Value.repeats() {
		notes = append(notes, "may be given more than once")
	}
	if preset != "" && preset != "false" {
		notes = append(notes, "default "+preset+option.from())
	}
	if option.Key != "" && option.Key != NoKey {
		notes = append(notes, "key "+option.Key)
	}
	if len(notes) > 0 {
		fmt.Fprintf(out, " (%s)", strings.Join(notes, "; "))
	}
	out.WriteByte('\n')
}
