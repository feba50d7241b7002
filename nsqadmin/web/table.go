package web

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// pageRows is how many rows of a table one page shows: what a browser patches without being felt.
const pageRows = 100

// maxSearch bounds, in bytes, the text that is searched for.
const maxSearch = 256

// column is a column of a table over rows of T.
type column[T any] struct {
	key     string // in the URL; empty for a column that cannot be sorted by
	title   string
	hint    string // longer than the title, shown as its tooltip
	num     bool   // a number: to the right, and sorted from the largest
	low     bool   // the first to go on a narrow screen
	compare func(a, b T) int
	cell    func(T) cell
}

// by makes the order of a column from what it is sorted by.
func by[T any, V cmp.Ordered](value func(T) V) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(value(a), value(b)) }
}

// cell is what a table shows at one place.
type cell struct {
	Text   string
	Href   string // makes the text a link
	Sub    string // second, smaller line
	Hint   string // tooltip
	Labels []label
	Act    *act   // an action on what the row is about
	Share  *share // a bar of shares
	Num    bool
	Low    bool
}

// label is a short mark, whose text says what its colour says.
type label struct {
	Text string
	Href string
	Kind string // "", "good", "warn" or "bad"
	Hint string
}

// share is a bar of three parts, in percent.
type share struct {
	Zone, Region, Global float64
	Text                 string
}

// RegionAt is where the second part begins.
func (s share) RegionAt() float64 { return s.Zone }

// GlobalAt is where the last part begins.
func (s share) GlobalAt() float64 { return s.Zone + s.Region }

// header is the head of a column, with the address that sorts by it.
type header struct {
	Title, Hint, Href string
	Sort              string // aria-sort; empty where it cannot be sorted by
	Num, Low          bool
}

// row is one row; Key is what it is patched by.
type row struct {
	Key   string
	Cells []cell
}

// table is a table ready to be shown.
type table struct {
	ID, Title, Caption string
	Headers            []header
	Rows               []row
	Total              *row
	Empty              string // text instead of a table without rows
	Search             *searchForm
	Pager              *pager
}

// Anchor tells the tables of a page apart.
func (t table) Anchor() string { return cmp.Or(t.ID, "table") }

// searchForm is the form above a table. Hidden keeps the other parameters of the page.
type searchForm struct {
	Action, Name, Value, Label string
	Hidden                     []field
}

type field struct{ Name, Value string }

// pager says which part of the rows is shown, with the addresses of the parts beside it.
type pager struct {
	From, To, Of         string
	Page, Pages          string
	Previous, Next, Many string
}

// spec says how to make a table of rows of T.
type spec[T any] struct {
	id, title string
	caption   string
	empty     string
	columns   []column[T]
	order     string               // the column that it is sorted by at first
	key       func(T) string       // unique; the last word in every order
	matches   func(T, string) bool // nil where it cannot be searched; the text is in lower case
	total     func() []cell        // nil without a row of totals
}

// view is the part of an address that says how a page's tables are shown.
type view struct {
	path  string
	query url.Values
}

// parameter is the name of a table's parameter: the first table of a page has the plain ones.
func parameter(id, name string) string {
	if id == "" {
		return name
	}
	return id + "-" + name
}

// with is the address of the view with some parameters changed.
func (v view) with(pairs ...string) string {
	changed := url.Values{}
	for key, list := range v.query {
		if key != "fragment" {
			changed[key] = list
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		changed.Set(pairs[i], pairs[i+1])
	}
	return withQuery(v.path, changed)
}

// build filters, sorts and pages rows as the view asks, and makes the cells of those shown only.
func build[T any](v view, s spec[T], all []T) table {
	t := table{ID: s.id, Title: s.title, Caption: s.caption, Empty: s.empty}
	rows := all
	if s.matches != nil {
		rows = search(v, s, &t, all)
	}
	rows = order(v, s, &t, rows)
	rows = cut(v, s.id, &t, rows)
	for _, r := range rows {
		cells := make([]cell, len(s.columns))
		for i, c := range s.columns {
			cells[i] = c.cell(r)
			cells[i].Num, cells[i].Low = c.num, c.low
		}
		t.Rows = append(t.Rows, row{Key: s.key(r), Cells: cells})
	}
	if s.total != nil && len(all) > 1 {
		t.Total = &row{Key: "total", Cells: s.total()}
		for i, c := range s.columns {
			t.Total.Cells[i].Num, t.Total.Cells[i].Low = c.num, c.low
		}
	}
	return t
}

func search[T any](v view, s spec[T], t *table, all []T) []T {
	name := parameter(s.id, "q")
	text := v.query.Get(name)
	if len(text) > maxSearch {
		text = strings.ToValidUTF8(text[:maxSearch], "")
	}
	if len(all) > 10 || text != "" {
		t.Search = &searchForm{Action: v.path, Name: name, Value: text, Label: "Search " + strings.ToLower(s.title), Hidden: v.rest(name, parameter(s.id, "page"))}
	}
	if text == "" {
		return all
	}
	wanted := strings.ToLower(text)
	var found []T
	for _, r := range all {
		if s.matches(r, wanted) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		t.Empty = "Nothing here matches “" + text + "”."
	}
	return found
}

// rest lists the parameters of the view besides some, in a fixed order.
func (v view) rest(without ...string) []field {
	var fields []field
	for key, list := range v.query {
		if key != "fragment" && !slices.Contains(without, key) && len(list) > 0 && list[0] != "" {
			fields = append(fields, field{key, list[0]})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	return fields
}

// order sorts a copy of the rows, since they are shared between requests, and makes the headers.
func order[T any](v view, s spec[T], t *table, rows []T) []T {
	wanted := v.query.Get(parameter(s.id, "sort"))
	at := slices.IndexFunc(s.columns, func(c column[T]) bool { return c.key != "" && c.key == wanted })
	if at < 0 {
		at = slices.IndexFunc(s.columns, func(c column[T]) bool { return c.key != "" && c.key == s.order })
	}
	descending := at >= 0 && s.columns[at].num
	switch v.query.Get(parameter(s.id, "dir")) {
	case "asc":
		descending = false
	case "desc":
		descending = true
	}
	for i, c := range s.columns {
		h := header{Title: c.title, Hint: c.hint, Num: c.num, Low: c.low}
		if c.key != "" {
			h.Sort, h.Href = "none", v.with(parameter(s.id, "sort"), c.key, parameter(s.id, "dir"), direction(c.num), parameter(s.id, "page"), "")
			if i == at {
				h.Sort = map[bool]string{false: "ascending", true: "descending"}[descending]
				h.Href = v.with(parameter(s.id, "sort"), c.key, parameter(s.id, "dir"), direction(!descending), parameter(s.id, "page"), "")
			}
		}
		t.Headers = append(t.Headers, h)
	}
	if at < 0 {
		return rows
	}
	sorted := slices.Clone(rows)
	compare := s.columns[at].compare
	slices.SortFunc(sorted, func(a, b T) int {
		c := compare(a, b)
		if descending {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(s.key(a), s.key(b)))
	})
	return sorted
}

func direction(descending bool) string {
	if descending {
		return "desc"
	}
	return "asc"
}

// cut takes the page that the view asks for, or the nearest that exists.
func cut[T any](v view, id string, t *table, rows []T) []T {
	if len(rows) <= pageRows {
		return rows
	}
	name := parameter(id, "page")
	last := (len(rows) + pageRows - 1) / pageRows
	page, err := strconv.Atoi(v.query.Get(name))
	if err != nil {
		page = 1
	}
	page = min(max(page, 1), last)
	from := (page - 1) * pageRows
	to := min(from+pageRows, len(rows))
	t.Pager = &pager{From: count(from + 1), To: count(to), Of: count(len(rows)), Page: count(page), Pages: count(last)}
	if page > 1 {
		t.Pager.Previous = v.with(name, strconv.Itoa(page-1))
	}
	if page < last {
		t.Pager.Next = v.with(name, strconv.Itoa(page+1))
	}
	return rows[from:to]
}
