package web

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// element is a start tag with the text inside the element.
type element struct {
	name string
	attr map[string]string
	text string
	all  strings.Builder // becomes text
	in   string          // names of the elements around it, "/html/body/main"
}

// elements reads a page, and fails the test where its tags are not balanced.
func elements(t *testing.T, page string) []*element {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(page))
	decoder.Strict = false // for <!DOCTYPE html> and attributes without values
	decoder.AutoClose = []string{"meta", "link", "input"}
	decoder.Entity = xml.HTMLEntity
	var all, open []*element
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if len(open) > 0 {
				t.Fatalf("<%s> is not closed", open[len(open)-1].name)
			}
			return all
		}
		if err != nil {
			t.Fatalf("page is not well formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attr: map[string]string{}}
			for _, outer := range open {
				e.in += "/" + outer.name
			}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.EndElement:
			if last := open[len(open)-1]; last.name != token.Name.Local {
				t.Fatalf("<%s> ends with </%s>", last.name, token.Name.Local)
			}
			open[len(open)-1].text = open[len(open)-1].all.String()
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.all.Write(token)
			}
		}
	}
}

// find returns the elements of a name that have all the attributes, given as "name=value", or "name" for
// any value.
func find(all []*element, name string, attributes ...string) (found []*element) {
	for _, e := range all {
		fits := e.name == name
		for _, a := range attributes {
			key, value, exact := strings.Cut(a, "=")
			have, ok := e.attr[key]
			fits = fits && ok && (!exact || have == value)
		}
		if fits {
			found = append(found, e)
		}
	}
	return found
}

// one returns the only such element.
func one(t *testing.T, all []*element, name string, attributes ...string) *element {
	t.Helper()
	found := find(all, name, attributes...)
	if len(found) != 1 {
		t.Fatalf("%d elements <%s %s>, want 1", len(found), name, strings.Join(attributes, " "))
	}
	return found[0]
}

// texts are the texts of elements, blanks trimmed.
func texts(all []*element) []string {
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = strings.Join(strings.Fields(e.text), " ")
	}
	return out
}

// rowNames are the texts of the first cells of all tables.
func rowNames(all []*element) []string {
	var names []string
	for _, e := range find(all, "th", "scope=row") {
		if strings.HasSuffix(e.in, "/tbody/tr") {
			names = append(names, strings.Fields(e.text)[0])
		}
	}
	return names
}

// checkPage says what every page must have, whoever reads it and with whatever.
func checkPage(t *testing.T, page string) []*element {
	t.Helper()
	all := elements(t, page)
	if html := one(t, all, "html"); html.attr["lang"] != "en" {
		t.Error("the language is not said")
	}
	if title := one(t, all, "title"); !strings.HasSuffix(title.text, " · nsqadmin") {
		t.Errorf("title %q", title.text)
	}
	one(t, all, "main", "id=main")
	one(t, all, "h1")
	one(t, all, "nav", "aria-label=Main")
	one(t, all, "a", "class=skip", "href=#main")
	var ids, keys []string
	for _, e := range all {
		if id, ok := e.attr["id"]; ok {
			ids = append(ids, id)
		}
		if id, ok := e.attr["aria-labelledby"]; ok && len(findID(all, id)) != 1 {
			t.Errorf("<%s> is labelled by %q, which is not there once", e.name, id)
		}
		for name := range e.attr {
			if name == "style" || strings.HasPrefix(name, "on") {
				t.Errorf("<%s %s>: the policy forbids it", e.name, name)
			}
		}
		if e.name == "style" || e.name == "script" && e.text != "" {
			t.Errorf("<%s> within the page: the policy forbids it", e.name)
		}
		if key, ok := e.attr["data-key"]; ok && e.name == "section" {
			keys = append(keys, key)
		}
	}
	for _, list := range [][]string{ids, keys} {
		slices.Sort(list)
		if again := slices.Compact(slices.Clone(list)); len(again) != len(list) {
			t.Errorf("not unique: %q", list)
		}
	}
	if len(find(all, "caption")) != len(find(all, "table")) {
		t.Error("a table has no caption")
	}
	for _, th := range find(all, "th") {
		if th.attr["scope"] == "" {
			t.Errorf("head %q says not of what", th.text)
		}
	}
	for _, svg := range find(all, "svg") {
		if svg.attr["aria-label"] == "" || svg.attr["role"] != "img" {
			t.Error("a drawing has no text")
		}
	}
	for _, input := range find(all, "input") {
		if input.attr["type"] != "hidden" && input.attr["aria-label"] == "" && !strings.HasSuffix(input.in, "/label") && len(find(all, "label", "for="+input.attr["id"])) != 1 {
			t.Errorf("input %q has no label", input.attr["name"])
		}
	}
	return all
}

func findID(all []*element, id string) (found []*element) {
	for _, e := range all {
		if e.attr["id"] == id {
			found = append(found, e)
		}
	}
	return found
}
