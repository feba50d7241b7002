package options

import (
	"flag"
	"fmt"
)

// Value is one option's place in a struct, and how the option is written in each of the places
// where one is written. The constructors of this package make them: Int, Duration, Bool, String,
// Choice, Strings, Floats, LogLevel, TLSRequired, TLSMinVersion.
type Value interface {
	flag.Value
	IsBoolFlag() bool
	Type() string // of the argument, in a word for --help

	given() bool     // on the command line
	repeats() bool   // the flag adds to a list
	limits() string  // what is accepted, in words; empty: no limits
	literal() string // the present value as the file writes it
	fromFile(v any) error
	fromBody(body []byte) error
	validate() error
	get() any
}

// kind is the way of writing values of one type.
type kind[T any] struct {
	name    string                       // what Type answers
	parse   func(text string) (T, error) // an argument of a flag
	decode  func(v any) (T, error)       // a value that the TOML library made
	show    func(T) string               // the default in --help
	literal func(T) string               // the value in TOML; nil: show, which is a literal already
	answer  func(T) any                  // to GET /config
	body    func([]byte) (T, error)      // of PUT /config; nil: parse
	join    func(old, more T) T          // what a flag given again does; nil: the last one wins
	boolean bool                         // the bare flag means true
}

// value implements Value for every kind.
type value[T any] struct {
	kind   kind[T]
	at     *T
	refuse func(T) error // what is wrong with a value out of range; nil: nothing ever is
	bounds string        // what refuse and the kind let through, in words
	isSet  bool          // from the command line
}

func (v *value[T]) String() string { return v.kind.show(*v.at) }

func (v *value[T]) IsBoolFlag() bool { return v.kind.boolean }

func (v *value[T]) Type() string { return v.kind.name }

func (v *value[T]) given() bool { return v.isSet }

func (v *value[T]) repeats() bool { return v.kind.join != nil }

func (v *value[T]) limits() string { return v.bounds }

func (v *value[T]) literal() string {
	if v.kind.literal == nil {
		return v.kind.show(*v.at)
	}
	return v.kind.literal(*v.at)
}

// Set takes an argument of the command line; the flag package calls it.
func (v *value[T]) Set(text string) error {
	parsed, err := v.kind.parse(text)
	if err != nil {
		return err
	}
	if v.kind.join != nil {
		var old T // a default is replaced, not added to
		if v.isSet {
			old = *v.at
		}
		parsed = v.kind.join(old, parsed)
	}
	*v.at, v.isSet = parsed, true
	return nil
}

func (v *value[T]) fromFile(raw any) error {
	decoded, err := v.kind.decode(raw)
	if err != nil {
		return err
	}
	*v.at = decoded
	return nil
}

func (v *value[T]) fromBody(body []byte) error {
	read := v.kind.body
	if read == nil {
		read = func(b []byte) (T, error) { return v.kind.parse(string(b)) }
	}
	fresh, err := read(body)
	if err == nil && v.refuse != nil {
		err = v.refuse(fresh)
	}
	if err != nil {
		return err
	}
	*v.at = fresh
	return nil
}

func (v *value[T]) validate() error {
	if v.refuse == nil {
		return nil
	}
	return v.refuse(*v.at)
}

func (v *value[T]) get() any { return v.kind.answer(*v.at) }

// itself is the answer of kinds whose values JSON writes as they are.
func itself[T any](v T) any { return v }

// printed shows a value in the default format.
func printed[T any](v T) string { return fmt.Sprint(v) }
