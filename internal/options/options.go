// Package options reads the settings of a daemon from its command line and its TOML file.
//
// A daemon describes its options once, as a Table whose rows point into its own plain struct. From
// that one description come the flags, the --help text, the keys of the file, the range checks, what
// /config answers, the sample file and the reference in the documents:
//
//	table := options.New("nsqd",
//		options.Group{Title: "Messages", Options: []options.Option{
//			{Flag: "msg-timeout", Value: options.Duration(&o.MsgTimeout, 1), Help: "..."},
//		}},
//	)
//	warnings, err := table.Load(os.Args[1:], os.Stdout, os.Stderr)
//
// A flag wins over the file, the file over the value that the struct had before. The package does
// not know any daemon, opens no socket and logs nothing.
//
// Source: nsqd-config spec, sections 1 to 3, 6 and 7; nsqd-http spec, section 12.
package options

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// NoKey as Option.Key says that an option exists on the command line only.
const NoKey = "-"

// Option is one row of a table.
type Option struct {
	Flag       string // without dashes
	Key        string // in the file and in /config; empty: Flag with "_" for "-"
	Help       string // one line, says the unit
	Argument   string // what --help calls the argument, such as "bytes"; empty: the type
	Origin     string // of a default that depends on the machine, such as "the host name"; empty: a constant
	Value      Value
	Changeable bool   // at runtime, through PUT /config/<key>
	Refusal    string // replaces our own words when a value is out of range: "--<flag> <Refusal>"
}

// TOMLKey is the name of the option in the file and in /config, empty if it has none there.
func (o *Option) TOMLKey() string {
	switch o.Key {
	case NoKey:
		return ""
	case "":
		return strings.ReplaceAll(o.Flag, "-", "_")
	}
	return o.Key
}

// from says in --help where a default comes from, empty if it is a constant.
func (o *Option) from() string {
	if o.Origin == "" {
		return ""
	}
	return ", from " + o.Origin
}

// Group is a part of the table with a title of its own in --help.
type Group struct {
	Title   string
	Options []Option
}

// Table is the description of all options of a program. It reads and writes the struct that its
// rows point to, without locking: one goroutine at a time.
type Table struct {
	program string
	groups  []Group

	// The options that every daemon has because the table itself obeys them.
	config  string
	strict  bool
	version bool
}

// New makes the table of a program; the options that every daemon has come first. The rows'
// present values are their defaults.
func New(program string, groups ...Group) *Table {
	t := &Table{program: program}
	own := Group{Title: "Program", Options: []Option{
		{Flag: "config", Key: NoKey, Value: String(&t.config), Argument: "path",
			Help: "TOML file with settings; flags win over it"},
		{Flag: "config-strict", Key: NoKey, Value: Bool(&t.strict),
			Help: "refuse to start when the file has an unknown key, instead of logging a warning"},
		{Flag: "version", Key: NoKey, Value: Bool(&t.version),
			Help: "print the version and exit"},
	}}
	t.groups = append([]Group{own}, groups...)
	return t
}

// Program is the name of the program that the table belongs to.
func (t *Table) Program() string { return t.program }

// Groups are the groups of the table in the order of --help.
func (t *Table) Groups() []Group { return t.groups }

// all walks over the rows of every group.
func (t *Table) all() iter.Seq[*Option] {
	return func(yield func(*Option) bool) {
		for _, group := range t.groups {
			for i := range group.Options {
				if !yield(&group.Options[i]) {
					return
				}
			}
		}
	}
}

// find returns the row with the given key, or nil.
func (t *Table) find(key string) *Option {
	for option := range t.all() {
		if key != "" && option.TOMLKey() == key {
			return option
		}
	}
	return nil
}

// Validate returns the first value that is out of its range, naming the flag.
func (t *Table) Validate() error {
	for option := range t.all() {
		err := option.Value.validate()
		if err != nil && option.Refusal != "" {
			err = errors.New(option.Refusal)
		}
		if err != nil {
			return fmt.Errorf("--%s %w", option.Flag, err)
		}
	}
	return nil
}

// Errors of Set.
var (
	ErrUnknownOption = errors.New("unknown option")                      // no row has this key
	ErrNotChangeable = errors.New("option cannot be changed at runtime") // only with a restart
	ErrBadValue      = errors.New("bad value")                           // does not parse, or out of range
)

// Get returns the value of the option with this key as GET /config answers it, a copy: a string
// goes out bare, everything else as JSON. The second result is false if there is no such key.
func (t *Table) Get(key string) (any, bool) {
	option := t.find(key)
	if option == nil {
		return nil, false
	}
	return option.Value.get(), true
}

// Set changes the option with this key to what the body of PUT /config says. The old value stays
// whole when there is an error, which is one of those above.
func (t *Table) Set(key string, body []byte) error {
	option := t.find(key)
	if option == nil {
		return fmt.Errorf("%w: %q", ErrUnknownOption, key)
	}
	if !option.Changeable {
		return fmt.Errorf("%w: %q", ErrNotChangeable, key)
	}
	if err := option.Value.fromBody(body); err != nil {
		return fmt.Errorf("%w for %s: %w", ErrBadValue, key, err)
	}
	return nil
}
