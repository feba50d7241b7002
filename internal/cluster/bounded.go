package cluster

import (
	"encoding/json"
	"fmt"
	"strconv"

	"nsq/internal/api"
)

// bounded decodes a T from JSON whose arrays are not too long for our memory.
type bounded[T any] struct{ value T }

// UnmarshalJSON implements json.Unmarshaler; the decoder has checked the syntax.
func (b *bounded[T]) UnmarshalJSON(text []byte) error {
	if n := elements(text); n > maxElements {
		return fmt.Errorf("answer has %d elements, more than %d", n, maxElements)
	}
	return json.Unmarshal(text, &b.value)
}

// nodeList is the answer of /nodes.
type nodeList struct{ api.NodeList }

// UnmarshalJSON implements json.Unmarshaler.
func (l *nodeList) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &l.NodeList); err != nil {
		return err
	}
	return checkNodes(len(l.Producers))
}

// producerList is the answer of /lookup.
type producerList struct{ api.Lookup }

// UnmarshalJSON implements json.Unmarshaler.
func (l *producerList) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &l.Lookup); err != nil {
		return err
	}
	return checkNodes(len(l.Producers))
}

func checkNodes(n int) error {
	if n > maxNodes {
		return fmt.Errorf("answer names %d nodes, more than %d", n, maxNodes)
	}
	return nil
}

// elements is how many elements the arrays in a valid JSON text have, empty ones counted as one.
func elements(text []byte) (n int) {
	var arrays []bool // the open brackets: true for an array
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			arrays = append(arrays, c == '[')
			if c == '[' {
				n++
			}
		case (c == ']' || c == '}') && len(arrays) > 0:
			arrays = arrays[:len(arrays)-1]
		case c == ',' && len(arrays) > 0 && arrays[len(arrays)-1]:
			n++
		}
	}
	return n
}

// quote shows a text of a peer in an error.
func quote(text string) string { return strconv.Quote(text[:min(len(text), 100)]) }
