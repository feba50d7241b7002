package options

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// decodeList reads an array of the file element by element, or the short form, a text with commas.
// The result is never nil: /config answers [] for an empty list.
func decodeList[T any](v any, short func(string) ([]T, error), element func(any) (T, bool), want error) ([]T, error) {
	switch v := v.(type) {
	case string:
		return short(v)
	case []any:
		list := make([]T, 0, len(v))
		for _, raw := range v {
			e, ok := element(raw)
			if !ok {
				return nil, want
			}
			list = append(list, e)
		}
		return list, nil
	}
	return nil, want
}

// added returns a new list, not nil, of the old elements and some more.
func added[T any](old, more []T) []T { return append(append([]T{}, old...), more...) }

// copied answers a list with a copy, so that nobody can write to the setting. It keeps nil, which
// /config shows as null.
func copied[T any](list []T) any { return slices.Clone(list) }

// array writes a list as TOML does.
func array[T any](list []T, element func(T) string) string {
	elements := make([]string, len(list))
	for i, e := range list {
		elements[i] = element(e)
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

// Strings is a list of texts. Each use of the flag adds one, commas included; an empty one adds
// nothing, which is the way to empty a list of the file from the command line.
func Strings(at *[]string) Value {
	return &value[[]string]{at: at, kind: kind[[]string]{
		name: "string",
		parse: func(text string) ([]string, error) {
			if text == "" {
				return []string{}, nil
			}
			return []string{text}, nil
		},
		decode: func(v any) ([]string, error) {
			short := func(text string) ([]string, error) { return splitList(text), nil }
			element := func(raw any) (string, bool) { text, ok := raw.(string); return text, ok }
			return decodeList(v, short, element, errors.New("want a list of strings"))
		},
		show:    func(list []string) string { return strings.Join(list, ",") },
		literal: func(list []string) string { return array(list, quoted) },
		answer:  copied[string],
		body:    stringsOfJSON,
		join:    added[string],
	}}
}

// stringsOfJSON reads a JSON array of strings, or null.
func stringsOfJSON(body []byte) ([]string, error) {
	var elements []*string // a null among the strings is an error, not ""
	if err := json.Unmarshal(body, &elements); err != nil {
		return nil, fmt.Errorf("want a JSON array of strings: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return nil, nil
	}
	list := make([]string, 0, len(elements))
	for _, element := range elements {
		if element == nil {
			return nil, errors.New("want a JSON array of strings: null is none")
		}
		list = append(list, *element)
	}
	return list, nil
}

// Floats is a list of numbers. A flag has one or more, separated by commas, and each use of it adds
// to them; those of the command line are sorted from high to low, those of the file are left in order.
func Floats(at *[]float64) Value {
	short := func(text string) ([]float64, error) {
		list := []float64{}
		for _, element := range splitList(text) {
			f, err := strconv.ParseFloat(element, 64)
			if err != nil {
				return nil, errParse
			}
			list = append(list, f)
		}
		return list, nil
	}
	element := func(raw any) (float64, bool) {
		switch raw := raw.(type) {
		case float64:
			return raw, true
		case int64:
			return float64(raw), true
		}
		return 0, false
	}
	return &value[[]float64]{at: at, kind: kind[[]float64]{
		name:  "float",
		parse: short,
		decode: func(v any) ([]float64, error) {
			list, err := decodeList(v, short, element, errors.New("want a list of numbers"))
			if errors.Is(err, errParse) {
				return nil, errors.New("want numbers separated by commas")
			}
			return list, err
		},
		show: func(list []float64) string {
			return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ","), "[]")
		},
		literal: func(list []float64) string { return array(list, printed[float64]) },
		answer:  copied[float64],
		join: func(old, more []float64) []float64 {
			list := added(old, more)
			slices.Sort(list)
			slices.Reverse(list)
			return list
		},
	}}
}
