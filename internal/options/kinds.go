package options

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"nsq/internal/log"
)

// NoLimit as the upper bound of Int allows every number.
const NoLimit = math.MaxInt64

// The words of the flag package, which scripts and people know.
var (
	errParse = errors.New("parse error")
	errRange = errors.New("value out of range")
)

// errWord is the failure of a value in the file that is a word of a fixed set. The text around it
// is NSQ's own and has no room for a reason.
var errWord = errors.New("unknown word")

// within returns the check that low <= v <= high; where there is no upper limit the words leave it out.
func within[T cmp.Ordered](low, high T, limited bool) func(T) error {
	return func(v T) error {
		switch {
		case low <= v && v <= high:
			return nil
		case limited:
			return fmt.Errorf("must be [%v,%v], is %v", low, high, v)
		default:
			return fmt.Errorf("must be at least %v, is %v", low, v)
		}
	}
}

// between are the words for low to high, both included, in documents. A bound that stands for none
// is left out.
func between(low, high int64) string {
	switch {
	case high == NoLimit:
		return fmt.Sprintf("%d or more", low)
	case low == math.MinInt32:
		return fmt.Sprintf("%d or less", high)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// atLeast are the words for a length of time of low or more.
func atLeast(low time.Duration) string {
	if low == 1 {
		return "more than 0"
	}
	return shortDuration(low) + " or more"
}

// shortDuration writes 1m for 1m0s, and 0 for 0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	if text == "0s" {
		return "0"
	}
	return text
}

// Int is a whole number from low to high, both included. The command line knows Go's notations
// (0x10, 1_000), a quoted number in the file is decimal.
func Int[T int | int64](at *T, low, high int64) Value {
	convert := func(n int64, err error) (T, error) {
		if errors.Is(err, strconv.ErrRange) || int64(T(n)) != n {
			return 0, errRange
		}
		if err != nil {
			return 0, errParse
		}
		return T(n), nil
	}
	check := within(low, high, high != NoLimit)
	return &value[T]{
		at: at,
		kind: kind[T]{
			name:  "int",
			parse: func(text string) (T, error) { return convert(strconv.ParseInt(text, 0, 64)) },
			decode: func(v any) (T, error) {
				switch v := v.(type) {
				case int64:
					return convert(v, nil)
				case string:
					return convert(strconv.ParseInt(v, 10, 64))
				}
				return 0, errors.New("want a whole number")
			},
			show:   printed[T],
			answer: itself[T],
		},
		refuse: func(v T) error { return check(int64(v)) },
		bounds: between(low, high),
	}
}

// Duration is a length of time of at least low. A bare number in the file is milliseconds;
// /config answers nanoseconds.
func Duration(at *time.Duration, low time.Duration) Value {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errParse
		}
		return d, nil
	}
	return &value[time.Duration]{
		at: at,
		kind: kind[time.Duration]{
			name:  "duration",
			parse: parse,
			decode: func(v any) (time.Duration, error) {
				switch v := v.(type) {
				case int64:
					const most = int64(math.MaxInt64 / time.Millisecond)
					if v < -most || v > most {
						return 0, errRange
					}
					return time.Duration(v) * time.Millisecond, nil
				case string:
					if d, err := parse(v); err == nil {
						return d, nil
					}
				}
				return 0, errors.New(`want a duration such as "1m30s", or whole milliseconds`)
			},
			show:    shortDuration,
			literal: func(d time.Duration) string { return quoted(shortDuration(d)) },
			answer:  func(d time.Duration) any { return int64(d) },
		},
		refuse: within(low, math.MaxInt64, false),
		bounds: atLeast(low),
	}
}

// Bool is a switch. In the file 1 and 0 mean true and false, as do the words of the command line in quotes.
func Bool(at *bool) Value {
	parse := func(text string) (bool, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return false, errParse
		}
		return b, nil
	}
	return &value[bool]{
		at: at,
		kind: kind[bool]{
			name:  "bool",
			parse: parse,
			decode: func(v any) (bool, error) {
				if n, ok := v.(int64); ok && (n == 0 || n == 1) {
					return n == 1, nil
				}
				if b, ok := v.(bool); ok {
					return b, nil
				}
				if text, ok := v.(string); ok {
					if b, err := parse(text); err == nil {
						return b, nil
					}
				}
				return false, errors.New("want true or false")
			},
			show:    printed[bool],
			answer:  itself[bool],
			boolean: true,
		},
	}
}

// String is a text without rules.
func String(at *string) Value { return text(at, nil, "") }

// Choice is a text that is one of the given ones, letter for letter.
func Choice(at *string, allowed ...string) Value {
	return text(at, func(v string) error {
		if slices.Contains(allowed, v) {
			return nil
		}
		return fmt.Errorf("must be one of %q, is %q", allowed, v)
	}, oneOf(allowed))
}

// oneOf are the words for a choice in documents.
func oneOf(allowed []string) string {
	words := make([]string, len(allowed))
	for i, word := range allowed {
		if words[i] = word; word == "" {
			words[i] = "empty"
		}
	}
	return strings.Join(words, ", ")
}

func text(at *string, refuse func(string) error, bounds string) Value {
	return &value[string]{
		at: at,
		kind: kind[string]{
			name:  "string",
			parse: func(text string) (string, error) { return text, nil },
			decode: func(v any) (string, error) {
				if text, ok := v.(string); ok {
					return text, nil
				}
				return "", errors.New("want a string in quotes")
			},
			show: func(text string) string {
				if text == "" {
					return ""
				}
				return strconv.Quote(text)
			},
			literal: quoted,
			answer:  itself[string],
		},
		refuse: refuse,
		bounds: bounds,
	}
}

// word describes a kind whose values are words of a fixed set. Whatever the file has is turned into
// text first, so that tls_required = true and tls_required = "true" are the same.
func word[T any](name string, parse func(string) (T, error), show func(T) string, answer func(T) any) kind[T] {
	return kind[T]{
		name:  name,
		parse: parse,
		decode: func(v any) (T, error) {
			parsed, err := parse(fmt.Sprint(v))
			if err != nil {
				return parsed, errWord
			}
			return parsed, nil
		},
		show:    show,
		literal: func(v T) string { return quoted(show(v)) },
		answer:  answer,
	}
}

// quoted is a text as TOML writes it: as Go does, but for control characters other than tab and line
// feed, which no default has.
func quoted(text string) string { return strconv.Quote(text) }

// LogLevel is a log level; /config answers its number.
func LogLevel(at *log.Level) Value {
	number := func(level log.Level) any { return int(level) }
	return &value[log.Level]{
		at:     at,
		kind:   word("level", log.ParseLevel, log.Level.String, number),
		bounds: "debug, info, warn, error, fatal",
	}
}

// splitList reads the short form of a list, a text with commas. Elements that are blank are left out.
func splitList(text string) []string {
	list := []string{}
	for element := range strings.SplitSeq(text, ",") {
		if element = strings.TrimSpace(element); element != "" {
			list = append(list, element)
		}
	}
	return list
}
