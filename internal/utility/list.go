package utility

import "strings"

// List is a flag that may be repeated: each time adds one text, commas included.
type List []string

// String joins the texts with commas.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set adds a text; it never fails.
func (l *List) Set(text string) error {
	*l = append(*l, text)
	return nil
}
