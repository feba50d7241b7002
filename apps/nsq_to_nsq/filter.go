package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"nsq/internal/utility"
)

// filter says which messages are published, and what of them.
type filter struct {
	field     string       // that must be there; empty: none
	value     string       // that it must have; empty: any
	whitelist utility.List // fields to publish; empty: the message as it is
}

// Why there is no answer whether a message passes.
var (
	errNoJSON  = errors.New("no JSON object")
	errNoField = errors.New("missing field to check required value")
)

// apply returns what is published of a message, nil if it does not pass.
func (f *filter) apply(body []byte) ([]byte, error) {
	if f.field == "" && len(f.whitelist) == 0 {
		return body, nil
	}
	fields, err := decodeObject(body)
	if err != nil {
		return nil, err
	}
	if f.field != "" {
		if pass, err := f.required(fields); !pass || err != nil {
			return nil, err
		}
	}
	if len(f.whitelist) == 0 {
		return body, nil
	}
	return encodeObject(slices.DeleteFunc(fields, func(field field) bool {
		return !slices.Contains(f.whitelist, field.name)
	})), nil
}

func (f *filter) required(fields []field) (bool, error) {
	i := slices.IndexFunc(fields, func(field field) bool { return field.name == f.field })
	switch {
	case f.value == "":
		return i >= 0, nil
	case i < 0:
		return false, errNoField
	}
	switch value := fields[i].value; value[0] {
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return err == nil && text == f.value, nil // it was decoded before, and cannot fail
	case '{', '[', 't', 'f', 'n':
		return false, nil
	default:
		return sameNumber(string(value), f.value), nil
	}
}

// sameNumber says whether two texts are equal as numbers.
func sameNumber(a, b string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	if errA != nil || errB != nil || x != y {
		return false
	}
	// Different large integers are the same float.
	digitsA, digitsB := strings.TrimLeft(a, "+-0"), strings.TrimLeft(b, "+-0")
	return !isDigits(digitsA) || !isDigits(digitsB) || digitsA == digitsB
}

func isDigits(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// field is a key of an object with its value, both as they are in the message.
type field struct {
	name  string // decoded
	key   []byte
	value []byte
}

// decodeObject returns the fields of a JSON object in their order. Of those with the same name it is the
// last one. null has no fields, and what is no object is errNoJSON.
func decodeObject(body []byte) ([]field, error) {
	if !json.Valid(body) {
		return nil, errNoJSON
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a number may be too large for a float, if nobody asks what it is
	begin, err := decoder.Token()
	if err != nil {
		return nil, errNoJSON
	}
	if begin == nil {
		return nil, nil
	}
	if begin != json.Delim('{') {
		return nil, errNoJSON
	}
	var fields []field
	places := make(map[string]int)
	for decoder.More() {
		from := decoder.InputOffset()
		name, err := decoder.Token()
		if err != nil {
			return nil, errNoJSON
		}
		key := bytes.TrimLeft(body[from:decoder.InputOffset()], ", \t\r\n")
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errNoJSON
		}
		next := field{name: name.(string), key: key, value: value}
		if place, again := places[next.name]; again {
			fields[place] = next
			continue
		}
		places[next.name] = len(fields)
		fields = append(fields, next)
	}
	return fields, nil
}

// encodeObject writes the fields without space between them.
func encodeObject(fields []field) []byte {
	object := []byte{'{'}
	for i, field := range fields {
		if i > 0 {
			object = append(object, ',')
		}
		object = append(object, field.key...)
		object = append(object, ':')
		object = append(object, field.value...)
	}
	return append(object, '}')
}
