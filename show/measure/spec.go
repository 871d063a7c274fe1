package measure

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/governance"
)

// Type is the type of a column.
type Type string

// The types.
const (
	Int    Type = "int"
	Float  Type = "float"
	Bool   Type = "bool"
	String Type = "string"
)

// Limits of documents. Those of evaluating are in [Limits].
const (
	MaxMeasures  = 256     // of a document
	MaxColumns   = 4096    // of a row
	MaxBins      = 1000    // of a histogram
	MaxCounts    = 256     // values that one measure counts
	MaxNameBytes = 64      // of a measure, and of a value that it counts
	MaxTextBytes = 1024    // of a text in a row
	MaxTicks     = 1 << 16 // at which is measured, besides every so many
)

// Spec is a measure: Expr, Star, or a statistic over cells.
type Spec struct {
	Name string

	Cells []string // reducers; none: all
	Cell  string   // reducer/key: this one alone, whose Value is the measure
	Where string   // CEL over one cell; empty: each counts
	Value string   // CEL over one cell; empty: the cells are counted
	Take  []string // statistics of Value
	One   bool     // there is one in Take, and the column has the name of the measure
	Count []any    // values of Value that are counted, each in a column: string, int64, bool
	Hist  *Hist    // of Value; nil: none

	Expr string // CEL over the measures before this one

	Star   string  // the file of a program that defines measure(cells, tick); it sees the Cells
	StarAt Place   // where Star stands
	Gives  []Field // that its result has; none: the result is one value

	Type Type // of Value of Cell, of what Star gives, or of Expr where the checker cannot tell; empty: Float

	At Place // where it stands
}

// Field is a field of a program's result.
type Field struct {
	Name string
	Type Type
}

// Hist are bins of equal width: the first has its lower bound, none its upper one.
type Hist struct {
	From, To float64
	Bins     int
}

// Place is where something stands in a document, from 1.
type Place struct{ Line, Column int }

// Fault is a mistake in a document, with its place.
type Fault struct {
	Place
	Measure string // empty: it is of none
	Msg     string
}

// String returns "line:column: measure NAME: msg".
func (f Fault) String() string {
	if f.Measure == "" {
		return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Msg)
	}
	return fmt.Sprintf("%d:%d: measure %s: %s", f.Line, f.Column, f.Measure, f.Msg)
}

// statistics are the words of take besides p0 to p100.
func statistics() []string {
	return []string{"count", "gini", "max", "mean", "median", "min", "sd", "sum", "variance"}
}

var percentile = regexp.MustCompile(`^p(0|[1-9][0-9]?|100)$`)

// percent returns the number of p0 to p100 and of the median.
func percent(word string) (int, bool) {
	if word == "median" {
		return 50, true
	}
	if !percentile.MatchString(word) {
		return 0, false
	}
	n, err := strconv.Atoi(word[1:])
	return n, err == nil
}

func isStatistic(word string) bool {
	_, ok := percent(word)
	return ok || slices.Contains(statistics(), word)
}

// ranks reports whether a statistic needs all values in their order.
func ranks(word string) bool {
	_, ok := percent(word)
	return ok || word == "gini"
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	label      = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// reserved are words that no measure has for a name: CEL has them, or the variables of
// expressions.
func reserved() []string {
	return []string{
		"as", "break", "cell", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
		"namespace", "null", "package", "record", "return", "state", "tick", "true", "var", "void", "while",
	}
}

// Column is one of a row.
type Column struct {
	Name string
	Type Type
	Doc  string // what it is, in words
}

// columns returns those of a measure; that of an expression is of the given type.
func (s *Spec) columns(of governance.Type) (out []Column) {
	add := func(name string, t Type, format string, args ...any) {
		out = append(out, Column{name, t, fmt.Sprintf(format, args...)})
	}
	switch {
	case s.Expr != "":
		add(s.Name, typeOf(of, s.Type), "%s", s.Expr)
		return out
	case s.Star != "":
		for _, f := range s.Gives {
			add(s.Name+"."+f.Name, f.Type, "%s of what %s measures%s", f.Name, s.Star, s.which())
		}
		if len(s.Gives) == 0 {
			add(s.Name, typeOf(governance.TypeAny, s.Type), "what %s measures%s", s.Star, s.which())
		}
		return out
	case s.Cell != "":
		add(s.Name, typeOf(governance.TypeAny, s.Type), "%s of the cell %s", s.Value, s.Cell)
		return out
	case s.Value == "":
		add(s.Name, Int, "how many cells%s", s.which())
		return out
	}
	for _, word := range s.Take {
		name, t := s.Name+"."+word, Float
		if s.One {
			name = s.Name
		}
		if word == "count" {
			t = Int
		}
		add(name, t, "%s of %s%s", word, s.Value, s.which())
	}
	for _, v := range s.Count {
		add(s.Name+"."+fmt.Sprint(v), Int, "how many times %s is %v%s", s.Value, v, s.which())
	}
	if s.Hist != nil {
		edges := s.Hist.edges()
		add(s.Name+".below", Int, "how many times %s < %v%s", s.Value, edges[0], s.which())
		for i := range s.Hist.Bins {
			add(fmt.Sprintf("%s.b%d", s.Name, i), Int, "how many times %v <= %s < %v%s", edges[i], s.Value, edges[i+1], s.which())
		}
		add(s.Name+".above", Int, "how many times %s >= %v%s", s.Value, edges[s.Hist.Bins], s.which())
	}
	return out
}

func typeOf(of governance.Type, declared Type) Type {
	switch of {
	case governance.TypeInt:
		return Int
	case governance.TypeBool:
		return Bool
	case governance.TypeText:
		return String
	case governance.TypeAny:
		if declared != "" {
			return declared
		}
	default:
	}
	return Float
}

// which says which cells a measure is about.
func (s *Spec) which() (text string) {
	for i, r := range s.Cells {
		if text += ", "; i == 0 {
			text = ", of "
		}
		text += r
	}
	if s.Where != "" {
		text += ", where " + s.Where
	}
	return text
}
