package arch

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	fenced     = regexp.MustCompile("(?ms)^```.*?^```$")
	code       = regexp.MustCompile("`[^`\n]*`")
	heading    = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	noAnchor   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// document is what a Markdown file has that a link can lead to, and the links that it has.
type document struct {
	anchors map[string]bool
	links   []string
}

func parseDocument(text string) document {
	d := document{anchors: make(map[string]bool)}
	text = fenced.ReplaceAllString(text, "")
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		d.anchors[strings.ReplaceAll(name, " ", "-")] = true
	}
	// A heading may have code in it, while a link in code is none.
	for _, match := range inlineLink.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		d.links = append(d.links, match[1])
	}
	return d
}

// documents are the Markdown files of the module by their path.
func documents(t *testing.T) map[string]document {
	t.Helper()
	found := make(map[string]document)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != root && (base == "testdata" || base == "node_modules" || base[0] == '.') {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		found[filepath.Clean(name)] = parseDocument(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Every link of a Markdown file to another file of the module, or to a heading, leads somewhere.
func TestLinks(t *testing.T) {
	found := documents(t)
	checked := 0
	for from, d := range found {
		for _, link := range d.links {
			target, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", from, err)
				continue
			}
			if target.Scheme != "" {
				continue // others answer for theirs
			}
			checked++
			if why := broken(from, target, found); why != "" {
				t.Errorf("%s links to %s: %s", from, link, why)
			}
		}
	}
	if checked == 0 {
		t.Errorf("no link in %d files", len(found))
	}
}

// broken says what is wrong with a link of the file; empty: nothing.
func broken(from string, target *url.URL, found map[string]document) string {
	to := from
	if target.Path != "" {
		to = filepath.Join(filepath.Dir(from), filepath.FromSlash(target.Path))
		if inside, err := filepath.Rel(root, to); err != nil || !filepath.IsLocal(inside) {
			return "it leads out of the module"
		}
		if _, err := os.Stat(to); err != nil {
			return "there is no such file"
		}
	}
	if d, ok := found[to]; target.Fragment != "" && ok && !d.anchors[target.Fragment] {
		return "there is no such heading"
	}
	return ""
}

// The check sees links where they are, and tells good ones from broken ones.
func TestBroken(t *testing.T) {
	text := "# A `code` heading: two\n\nA [link](b.md#x), ![picture](c.png) and `[code](d)`.\n\n```\n[fenced](e)\n# none\n```\n"
	d := parseDocument(text)
	if got := strings.Join(d.links, " "); got != "b.md#x c.png" {
		t.Errorf("links %q", got)
	}
	if !d.anchors["a-code-heading-two"] {
		t.Errorf("anchors %v", d.anchors)
	}
	if d.anchors["none"] {
		t.Error("a comment in a script is taken for a heading")
	}
	readme := filepath.Join(root, "README.md")
	found := map[string]document{readme: d}
	for link, want := range map[string]string{
		"LICENSE":             "",
		"internal/arch":       "",
		"#a-code-heading-two": "",
		"#nosuch":             "there is no such heading",
		"README.md#nosuch":    "there is no such heading",
		"nosuch.md":           "there is no such file",
		"../../elsewhere.md":  "it leads out of the module",
	} {
		if got := broken(readme, must(url.Parse(link)), found); got != want {
			t.Errorf("%s: %q, want %q", link, got, want)
		}
	}
}
