package options

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Sample says how the sample file of a program differs from a list of its defaults.
type Sample struct {
	Active []string          // keys that are set; the others are commented out
	Values map[string]string // by key, what is written in place of the default, in TOML
}

// Sample is a settings file that has every key of the table, each under its help. It shows the
// present values, which a caller wants to be the defaults. The error is about a key that the table
// does not have, or a default that depends on the machine and has no value in its place.
func (t *Table) Sample(s Sample) (string, error) {
	if err := t.checkSample(s); err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "## Settings of %[1]s, to be used with %[1]s --config=PATH. Every key is here; those that are\n", t.program)
	out.WriteString("## commented out show the default, or an example where a default is named. A flag wins over its key.\n")
	for _, group := range t.groups {
		title := "\n\n### " + group.Title + "\n"
		for _, option := range group.Options {
			if option.TOMLKey() == "" {
				continue
			}
			out.WriteString(title)
			title = ""
			writeSample(&out, &option, s)
		}
	}
	return out.String(), nil
}

func (t *Table) checkSample(s Sample) error {
	named := slices.Clone(s.Active)
	for key := range s.Values {
		named = append(named, key)
	}
	for _, key := range named {
		if t.find(key) == nil {
			return fmt.Errorf("sample has the unknown key %q", key)
		}
	}
	for option := range t.all() {
		key := option.TOMLKey()
		if option.Origin != "" && (s.Values[key] == "" || slices.Contains(s.Active, key)) {
			return fmt.Errorf("sample needs an example for %q, commented out: the default depends on the machine", key)
		}
	}
	return nil
}

// Uncommented is a sample file with every key set.
func Uncommented(sample string) string {
	return commented.ReplaceAllString(sample, "$1")
}

// commented is a key that is commented out; comments for people have two signs.
var commented = regexp.MustCompile(`(?m)^#([^#])`)

func writeSample(out *strings.Builder, option *Option, s Sample) {
	key, shown := option.TOMLKey(), option.Value.literal()
	note := ""
	if example, ok := s.Values[key]; ok {
		note = " (default " + option.preset() + ")"
		shown = example
	}
	sign := "#"
	if slices.Contains(s.Active, key) {
		sign = ""
	}
	fmt.Fprintf(out, "\n## %s%s\n%s%s = %s\n", option.Help, note, sign, key, shown)
}

// preset is the default in documents, the same on every machine.
func (o *Option) preset() string {
	if o.Origin != "" {
		return strings.TrimPrefix(o.from(), ", ")
	}
	return o.Value.literal()
}

// Markdown is the reference of the options: a heading and a table for each group. It shows the
// present values as the defaults.
func (t *Table) Markdown() string {
	var out strings.Builder
	for _, group := range t.groups {
		fmt.Fprintf(&out, "\n### %s: %s\n\n", t.program, group.Title)
		out.WriteString("| flag | key | type | default | range | meaning |\n|---|---|---|---|---|---|\n")
		for _, option := range group.Options {
			writeRow(&out, &option)
		}
	}
	return out.String()
}

func writeRow(out *strings.Builder, option *Option) {
	key, preset, kind, help := "none", option.preset(), option.Value.Type(), option.Help
	if name := option.TOMLKey(); name != "" {
		key = code(name)
	}
	if option.Origin == "" {
		preset = code(preset)
	}
	if option.Value.repeats() {
		kind = "list of " + kind + "s"
	}
	if option.Changeable {
		help += ". **Can be changed at runtime**"
	}
	cells := []string{code("--" + option.Flag), key, kind, preset, option.Value.limits(), help}
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

func code(text string) string { return "`" + text + "`" }
