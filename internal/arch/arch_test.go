package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module   = "nsq"
	root     = "../.."
	maxLines = 700 // of a file
)

// file is one source file of the module.
type file struct {
	name  string // from the root of the module
	test  bool
	lines int
	ast   *ast.File
}

func (f *file) imports() (paths []string) {
	for _, spec := range f.ast.Imports {
		paths = append(paths, must(strconv.Unquote(spec.Path.Value)))
	}
	return paths
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// packages are the source files of the module, by the folder they are in.
func packages(t *testing.T) map[string][]*file {
	t.Helper()
	found := make(map[string][]*file)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// What the go command does not look into either.
			if base := entry.Name(); name != root && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		inModule := filepath.ToSlash(must(filepath.Rel(root, name)))
		dir := path.Dir(inModule)
		found[dir] = append(found[dir], &file{
			name:  inModule,
			test:  strings.HasSuffix(name, "_test.go"),
			lines: bytes.Count(source, []byte("\n")),
			ast:   parsed,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found["internal/arch"]) == 0 {
		t.Fatalf("not even this package was found in %v", slices.Sorted(maps.Keys(found)))
	}
	return found
}

// Code imports what the table allows and nothing else, and every package has its row.
func TestImports(t *testing.T) {
	rows := make(map[string]reasons)
	for _, row := range table {
		if _, twice := rows[row.path]; twice {
			t.Errorf("%s has two rows", row.path)
		}
		rows[row.path] = row.may
	}
	for dir, files := range packages(t) {
		may, ok := rows[dir]
		if !ok {
			t.Errorf("%s has no row: say in the table what it may import, and why", dir)
			continue
		}
		for _, f := range files {
			if f.test {
				continue
			}
			for _, imported := range f.imports() {
				if why := refusal(dir, may, imported); why != "" {
					t.Errorf("%s: %s", f.name, why)
				}
			}
		}
	}
}

// refusal says why the package dir, with those imports in its row, must not import that path;
// empty: it may.
func refusal(dir string, may reasons, imported string) string {
	if inner, ours := strings.CutPrefix(imported, module+"/"); ours {
		if may[inner] == "" && everyone[inner] == "" {
			return dir + " must not import " + inner
		}
		return ""
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for library, where := range outside {
		if imported == library || strings.HasPrefix(imported, library+"/") {
			if where[dir] == "" {
				return dir + " must not import " + library + ", which is the business of " +
					strings.Join(slices.Sorted(maps.Keys(where)), " and ")
			}
			return ""
		}
	}
	return dir + " must not import " + imported + ", for which there is no place"
}

// The check itself refuses what it should.
func TestRefusal(t *testing.T) {
	broker := reasons{"internal/diskq": "because"}
	for _, test := range []struct {
		imported string
		refused  bool
	}{
		{"fmt", false},
		{"encoding/json", false},
		{"nsq/internal/diskq", false},
		{"nsq/internal/log", false},
		{"nsq/internal/httpx", true},
		{"nsq/nsqd/session", true},
		{"github.com/nsqio/go-diskqueue", true},
		{"github.com/klauspost/compress/flate", true},
		{"example.org/unheard/of", true},
	} {
		if why := refusal("nsqd/broker", broker, test.imported); (why != "") != test.refused {
			t.Errorf("import of %s: %q, want a refusal: %v", test.imported, why, test.refused)
		}
	}
	if why := refusal("nsqd/session", nil, "github.com/klauspost/compress/flate"); why != "" {
		t.Error(why)
	}
}

// Every reason in the table is one, and nothing is allowed that does not exist.
func TestTable(t *testing.T) {
	found := packages(t)
	check := func(who string, may reasons) {
		for imported, why := range may {
			if why == "" {
				t.Errorf("%s may import %s for no reason", who, imported)
			}
			if !slices.ContainsFunc(table, func(row pkg) bool { return row.path == imported }) {
				t.Errorf("%s may import %s, which has no row", who, imported)
			}
		}
	}
	check("everyone", everyone)
	for _, row := range table {
		check(row.path, row.may)
		if len(found[row.path]) == 0 {
			t.Errorf("%s has a row and no files", row.path)
		}
	}
}

// Programs are in apps and bench, and only programs are.
func TestMains(t *testing.T) {
	for dir, files := range packages(t) {
		place, _, _ := strings.Cut(dir, "/")
		for _, f := range files {
			isMain, forMains := strings.TrimSuffix(f.ast.Name.Name, "_test") == "main", place == "apps" || place == "bench"
			if isMain && !forMains {
				t.Errorf("%s is package main outside of apps and bench", f.name)
			}
			if !isMain && place == "apps" {
				t.Errorf("%s is no package main: what it has belongs to a package of its own", f.name)
			}
		}
	}
}

// Every package says in one comment what it is for.
func TestPackageComments(t *testing.T) {
	for dir, files := range packages(t) {
		var in []string
		begin := "Package " + path.Base(dir) + " "
		for _, f := range files {
			if f.ast.Doc == nil {
				continue
			}
			in = append(in, f.name)
			if f.ast.Name.Name == "main" {
				begin = "Command " + path.Base(dir) + " "
			}
			if !strings.HasPrefix(f.ast.Doc.Text(), begin) {
				t.Errorf("the package comment in %s does not begin with %q", f.name, begin)
			}
		}
		if len(in) != 1 {
			t.Errorf("package %s has %d package comments %v, want one", dir, len(in), in)
		}
	}
}

// No file is so long that it has to be about more than one thing.
func TestFileLength(t *testing.T) {
	for _, files := range packages(t) {
		for _, f := range files {
			if f.lines > maxLines {
				t.Errorf("%s has %d lines, more than %d", f.name, f.lines, maxLines)
			}
		}
	}
}

// The module builds for others as it does for us: with go install, a replace would not count.
func TestNoReplace(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("module "+module+"\n")) {
		t.Fatalf("go.mod is not that of module %s", module)
	}
	if line := regexp.MustCompile(`(?m)^\s*replace\b.*$`).Find(text); line != nil {
		t.Errorf("go.mod has %q", line)
	}
}
