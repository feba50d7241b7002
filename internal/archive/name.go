package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lestrrat-go/strftime"
)

// revisionMark stands for the revision in a name that has none yet. No name has this byte.
const revisionMark = "\x00"

const datetimeToken = "<DATETIME>"

// Naming says how files are named. Tokens in Format: <TOPIC>, <HOST>, <PID>, <DATETIME>, <REV>.
type Naming struct {
	Format   string // of the path below the folder; may contain slashes
	Datetime string // of <DATETIME>, see strftime
	Host     string // for <HOST>
}

// names are the names of one topic's files. They do not change once made.
type names struct {
	base     string // with <DATETIME> and the revision mark
	pattern  *regexp.Regexp
	datetime *strftime.Strftime
}

// newNames returns the names for a topic. Without revisions <REV> is left out of them. suffix, such as
// ".gz", is what every name ends with.
func (n Naming) newNames(topic string, revised bool, suffix string) (*names, error) {
	if revised && !strings.Contains(n.Format, "<REV>") {
		return nil, ErrNoRevision
	}
	datetime, err := compileDatetime(n.Datetime)
	if err != nil {
		return nil, err
	}
	mark := ""
	if revised {
		mark = revisionMark
	}
	expand := func(topic, pid string) string {
		base := strings.NewReplacer("<TOPIC>", topic, "<HOST>", n.Host, "<PID>", pid, "<REV>", mark).Replace(n.Format)
		if !strings.HasSuffix(base, suffix) {
			base += suffix
		}
		return tidy(base)
	}
	base := expand(topic, strconv.Itoa(os.Getpid()))
	// Names of topics come from peers, and ".." is one: it may not lead where the format does not.
	if !filepath.IsLocal(base) && filepath.IsLocal(expand("t", "1")) {
		return nil, fmt.Errorf("file name %q leads out of the folder", base)
	}
	return &names{base: base, datetime: datetime, pattern: compilePattern(expand(topic, "<PID>"))}, nil
}

// tidy makes a path relative, and in the form that package filepath gives it.
func tidy(path string) string { return filepath.Clean(strings.TrimLeft(path, "/")) }

// compilePattern matches every name that ever was made from base, by any process at any time.
func compilePattern(base string) *regexp.Regexp {
	expression := strings.NewReplacer(
		"<PID>", `\d+`, datetimeToken, `.*`, revisionMark, `(-\d{6,})`,
	).Replace(regexp.QuoteMeta(base))
	return regexp.MustCompile(`(?s)^` + expression + `$`)
}

// at returns the name for a moment, of revision 0.
func (n *names) at(now time.Time) name {
	return name{text: tidy(strings.ReplaceAll(n.base, datetimeToken, n.datetime.FormatString(now)))}
}

// parse reads the path of a file, and says whether it is one of these names.
func (n *names) parse(path string) (name, bool) {
	found := n.pattern.FindStringSubmatchIndex(path)
	if found == nil {
		return name{}, false
	}
	var text strings.Builder
	revision, end := "", 0
	for i := 2; i < len(found); i += 2 {
		from, to := found[i], found[i+1]
		if revision != "" && path[from:to] != revision {
			return name{}, false
		}
		revision = path[from:to]
		text.WriteString(path[end:from] + revisionMark)
		end = to
	}
	text.WriteString(path[end:])
	number, err := strconv.Atoi(strings.TrimPrefix(revision, "-"))
	if err != nil {
		return name{}, false // no revision, or one that no process has counted to
	}
	return name{text: text.String(), revision: number}, true
}

// name is the path of a file below its folder.
type name struct {
	text     string // with the revision mark
	revision int
}

// String is the path: the revision is at least six digits.
func (n name) String() string {
	return strings.ReplaceAll(n.text, revisionMark, fmt.Sprintf("-%06d", n.revision))
}

// knownVerbs are the letters that mean something after a percent sign.
const knownVerbs = "YymBbdAaHIpMSZz%"

// compileDatetime reads a format of strftime. What it does not know it takes literally.
func compileDatetime(format string) (*strftime.Strftime, error) {
	var pattern strings.Builder
	for i := 0; i < len(format); i++ {
		pattern.WriteByte(format[i])
		if format[i] != '%' {
			continue
		}
		if i+1 < len(format) && strings.IndexByte(knownVerbs, format[i+1]) >= 0 {
			i++
			pattern.WriteByte(format[i])
		} else {
			pattern.WriteByte('%')
		}
	}
	return strftime.New(pattern.String())
}
