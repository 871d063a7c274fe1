package governance

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/worldkernel/worldkernel/manifest"
)

// Bounds of what is looked at for names that there are not: comparisons of words, and
// alternatives of a regular expression.
const (
	maxNamesWork    = 100_000_000
	maxAlternatives = 100
)

// equalTo is the relation of ==, != and in.
const equalTo = "=="

// nameChecker looks for texts in rules that nothing in a manifest is called.
type nameChecker struct {
	env       *cel.Env
	variables map[string]*names
	relations map[string]relation
	work      int // that is left of maxNamesWork
}

func newNameChecker(c *compiler, m *manifest.Manifest) *nameChecker {
	n := &nameChecker{env: c.env, variables: make(map[string]*names), relations: relations(), work: maxNamesWork}
	for _, v := range c.vars {
		if v.words != nil {
			n.variables[v.name] = newNames(v.name, v.words(m))
		}
	}
	return n
}

// check returns the texts of an expression that a variable is compared with and can
// never be, in their order.
func (n *nameChecker) check(expr string) []*PolicyError {
	if !strings.ContainsAny(expr, `"'`) {
		return nil // it has no text
	}
	parsed, failed := n.env.Parse(expr)
	if failed.Err() != nil {
		return nil // which others report
	}
	c := comparisons{
		nameChecker: n, tree: parsed.NativeRep(), fit: make(map[int64]bool), issues: make(map[int64]nameIssue),
		meanings: meanings{variables: n.variables, scope: make(map[string]meant), left: 1000 + 16*len(expr)},
	}
	c.visit(c.tree.Expr())
	return c.faults()
}

// nameIssue is a text that nothing is called.
type nameIssue struct {
	text string
	than relation
	with *names
}

// comparisons are those of one expression. A text that is compared with several values
// has to fit one of them.
type comparisons struct {
	*nameChecker
	meanings
	tree   *ast.AST
	fit    map[int64]bool
	issues map[int64]nameIssue
}

func (c *comparisons) faults() (out []*PolicyError) {
	for _, id := range slices.Sorted(maps.Keys(c.issues)) {
		if x := c.issues[id]; !c.fit[id] {
			out = append(out, policyError(c.tree.SourceInfo().GetStartLocation(id), x.String()))
		}
	}
	slices.SortStableFunc(out, func(a, b *PolicyError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// String says what is wrong, and what was probably meant.
func (x nameIssue) String() string {
	of := cmp.Or(x.with.of, "what it is compared with")
	msg := fmt.Sprintf("%s %s %q", of, x.than.says, x.text)
	if x.than.back {
		msg = fmt.Sprintf("%q %s %s", x.text, x.than.says, of)
	}
	if x.than.parts != nil {
		if like := manifest.Nearest(x.text, x.than.parts(x.with)); like != "" {
			return msg + fmt.Sprintf(": did you mean %q?", like)
		}
	}
	return msg + manifest.Instead("", x.with.told())
}

// visit looks at all comparisons in e.
func (c *comparisons) visit(e ast.Expr) {
	switch e.Kind() { //nolint:exhaustive // the rest has no parts
	case ast.CallKind:
		call := e.AsCall()
		c.compare(call)
		if call.IsMemberFunction() {
			c.visit(call.Target())
		}
		for _, arg := range call.Args() {
			c.visit(arg)
		}
	case ast.SelectKind:
		c.visit(e.AsSelect().Operand())
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			c.visit(item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.visit(entry.AsMapEntry().Key())
			c.visit(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		x := e.AsComprehension()
		c.visit(x.IterRange())
		c.visit(x.AccuInit())
		c.within(x, func() {
			c.visit(x.LoopCondition())
			c.visit(x.LoopStep())
			c.visit(x.Result())
		})
	}
}

// compare looks at a call that compares texts.
func (c *comparisons) compare(call ast.CallExpr) {
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	if len(args) != 2 {
		return
	}
	switch name := call.FunctionName(); name {
	case operators.Equals, operators.NotEquals:
		c.equal(args[0], args[1])
	case operators.In:
		c.hold(equalTo, c.of(args[0]), c.items(args[1]))
	case operators.Index: // a key of a map; an index of a list is no text
		c.hold(equalTo, c.of(args[1]), c.items(args[0]))
	case "startsWith", "endsWith", "contains":
		c.hold(name, c.of(args[0]), c.of(args[1]))
	case matchesFunction:
		c.matches(c.of(args[0]), c.of(args[1]))
	}
}

// equal looks at two values that are compared: texts, or lists of as many.
func (c *comparisons) equal(a, b ast.Expr) {
	if a.Kind() != ast.ListKind || b.Kind() != ast.ListKind {
		c.hold(equalTo, c.of(a), c.of(b))
		return
	}
	x, y := a.AsList().Elements(), b.AsList().Elements()
	for i := range min(len(x), len(y)) {
		c.equal(x[i], y[i])
	}
}

// hold looks at two values of which one has the relation of a function to the other.
func (c *comparisons) hold(function string, a, b []meaning) {
	than := c.relations[function]
	c.note(b, a, than, function)
	if function != equalTo {
		than.back = true
	}
	c.note(a, b, than, function)
}

// note notes which texts can be so related to values that have names.
func (c *comparisons) note(texts, values []meaning, than relation, function string) {
	for _, text := range texts {
		if text.literal && len(text.words) == 1 {
			c.verdict(text, text.words[0], values, than, function)
		}
	}
}

// verdict notes whether a text can be so related to one of values, if these have names.
func (c *comparisons) verdict(text meaning, w word, values []meaning, than relation, function string) (fits bool) {
	var with *names
	for _, v := range values {
		if v.named && with == nil {
			with = v.names
		}
		fits = fits || v.at != text.at && c.related(v, w, than, function)
	}
	switch {
	case fits:
		c.fit[text.at] = true
	case with != nil:
		if w.open && function == equalTo {
			than = c.relations["startsWith"]
		}
		c.issues[text.at] = nameIssue{w.text, than, with}
	}
	return fits || with == nil
}

// related reports whether a value can be so related to a text. Where that is not known,
// it can.
func (c *comparisons) related(v meaning, w word, than relation, function string) bool {
	if function == equalTo && !w.open && !v.open {
		return v.closed[w.text]
	}
	words := v.words
	if function == "startsWith" && !than.back && !v.open { // they are sorted: the first that could
		i, _ := slices.BinarySearchFunc(words, w, func(a, b word) int { return strings.Compare(a.text, b.text) })
		words = words[i:min(i+1, len(words))]
	}
	for _, x := range words {
		if c.work--; c.work < 0 {
			return true
		}
		if than.back && x == (word{}) {
			continue // each text begins with it
		}
		if canHold(x, w, than, function) {
			return true
		}
	}
	return false
}

func canHold(x, w word, than relation, function string) bool {
	switch {
	case !x.open && !w.open && than.back:
		return than.holds(w.text, x.text)
	case !x.open && !w.open:
		return than.holds(x.text, w.text)
	case function != equalTo && function != "startsWith":
		return true
	case x.open && w.open:
		return strings.HasPrefix(x.text, w.text) || strings.HasPrefix(w.text, x.text)
	case function == equalTo && x.open:
		return len(w.text) > len(x.text) && strings.HasPrefix(w.text, x.text) || x.text == ""
	case function == equalTo:
		return strings.HasPrefix(x.text, w.text)
	}
	return strings.HasPrefix(x.text, w.text) || strings.HasPrefix(w.text, x.text)
}

// matches looks at regular expressions: each alternative of one has to match something.
func (c *comparisons) matches(values, patterns []meaning) {
	for _, p := range patterns {
		if !p.literal || len(p.words) != 1 || p.words[0].open {
			continue
		}
		for _, alternative := range alternatives(p.words[0].text) {
			re, err := regexp.Compile(alternative)
			if err != nil {
				return // which others report
			}
			than := relation{says: "never matches", holds: func(s, _ string) bool {
				c.work -= 10 + len(s)
				return re.MatchString(s)
			}}
			if !c.verdict(p, word{alternative, false}, values, than, matchesFunction) {
				delete(c.fit, p.at)
				break
			}
		}
	}
}

// alternatives returns the regular expressions that each have one alternative of each
// choice that another one has.
func alternatives(pattern string) []string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	var out []string
	var walk func(at *syntax.Regexp)
	walk = func(at *syntax.Regexp) {
		if at.Op == syntax.OpAlternate {
			whole := *at
			for _, sub := range whole.Sub {
				*at = *sub
				if len(out) < maxAlternatives {
					walk(at)
					out = append(out, tree.String())
				}
			}
			*at = whole
			return
		}
		for _, sub := range at.Sub {
			walk(sub)
		}
	}
	walk(tree)
	if out == nil {
		return []string{pattern}
	}
	return out
}
