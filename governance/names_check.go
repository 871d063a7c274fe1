package governance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"

	"github.com/worldkernel/worldkernel/manifest"
)

// Bounds of what is looked at for names that there are not. What comes after them is taken
// for right.
const (
	maxNamesWork    = 100_000_000 // comparisons of words, in all expressions
	maxCombinations = 10_000      // of the words of an expression's variables
	costsMost       = 10_000      // parts of an expression, for one combination
)

// nameChecker looks for texts in rules that nothing in a manifest is called.
type nameChecker struct {
	variables map[string]*names
	relations map[string]*relation
	work      int // that is left of maxNamesWork
}

func newNameChecker(vars []variable, m *manifest.Manifest) *nameChecker {
	n := &nameChecker{variables: make(map[string]*names), relations: relations(), work: maxNamesWork}
	for _, v := range vars {
		if v.words != nil {
			n.variables[v.name] = newNames(v.name, v.words(m))
		}
	}
	return n
}

// check returns the texts of an expression, which a tree was made of, that a variable is compared with and can
// never be, in their order; where there is none, what two comparisons together never are.
func (n *nameChecker) check(expr string, tree *ast.AST) []*PolicyError {
	if !strings.ContainsAny(expr, `"'`) {
		return nil // it has no text
	}
	c := n.evaluation(maps.Clone(n.variables))
	c.left, c.fit, c.issues = maxMeanings+16*len(expr), make(map[int64]bool), make(map[int64]nameIssue)
	c.valuesOf(tree.Expr())
	faults := make(map[int64]string)
	for id, x := range c.issues { // order cannot show: sorted below
		if !c.fit[id] {
			faults[id] = x.String()
		}
	}
	if len(faults) == 0 {
		faults = n.contradictions(tree.Expr(), c.pairs)
	}
	if c.left < 0 || n.work < 0 {
		return nil
	}
	return placed(tree, faults)
}

// placed returns what is wrong with parts of an expression in the order of their places.
func placed(tree *ast.AST, faults map[int64]string) []*PolicyError {
	var out []*PolicyError
	for _, id := range slices.Sorted(maps.Keys(faults)) {
		out = append(out, policyError(tree.SourceInfo().GetStartLocation(id), faults[id]))
	}
	slices.SortStableFunc(out, func(a, b *PolicyError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// nameIssue is a text that nothing is called.
type nameIssue struct {
	text string
	than *relation
	with *names
	back bool // it is the text that has the relation to the names
}

// String describes the mistake and the probable intention.
func (x nameIssue) String() string {
	of := cmp.Or(x.with.of, "what it is compared with")
	msg := fmt.Sprintf("%s %s %q", of, x.than.says, x.text)
	if x.back {
		msg = fmt.Sprintf("%q %s %s", x.text, x.than.says, of)
	}
	if x.than.like != nil {
		if like := manifest.Nearest(x.text, x.than.like(x.with)); like != "" {
			return msg + fmt.Sprintf(": did you mean %q?", like)
		}
	}
	return msg + manifest.Instead("", x.with.listed())
}

// contradictions returns the pairs of an expression that can each be true, and never
// together, whichever of its words each variable is. It evaluates the expression for every
// combination of these words, first those that stand in it: they decide nearly all.
func (n *nameChecker) contradictions(e ast.Expr, pairs map[int64]*pair) map[int64]string {
	maps.DeleteFunc(pairs, func(_ int64, p *pair) bool { return !p.left || !p.right })
	of, texts := n.mentions(e)
	c := n.evaluation(make(map[string]*names))
	combinations := 0
	var decided func(i int) bool
	decided = func(i int) bool {
		if i < len(of) {
			all := n.variables[of[i]].words
			try := func(w word) bool {
				c.variables[of[i]] = newNames(of[i], []word{w})
				return decided(i + 1)
			}
			return slices.ContainsFunc(texts, func(s string) bool { return slices.Contains(all, word{text: s}) && try(word{text: s}) }) ||
				slices.ContainsFunc(all, try)
		}
		c.left = costsMost
		c.valuesOf(e)
		n.work -= 10 * (costsMost - c.left)
		combinations++
		for id := range pairs { // order cannot show: all of them
			if p := c.pairs[id]; p != nil && !p.both {
				return c.left < 0 || n.work < 0 || combinations > maxCombinations
			}
		}
		return true
	}
	if len(pairs) == 0 || decided(0) {
		return nil
	}
	out := make(map[int64]string)
	for _, p := range c.pairs { // order cannot show: each by itself
		if p.left && p.right && !p.both {
			out[p.e.ID()] = n.contradiction(p)
		}
	}
	return out
}

// contradiction says that a pair is one, and what was probably meant.
func (n *nameChecker) contradiction(p *pair) string {
	of, texts := n.mentions(p.e)
	msg := fmt.Sprintf("the two sides of %s are never %t together, whatever %s is", p.says, p.is, cmp.Or(strings.Join(of, ", "), "declared"))
	for _, name := range of {
		told := n.variables[name].listed()
		for _, text := range texts {
			if like := manifest.Nearest(text, told); like != "" && like != text {
				return fmt.Sprintf("%s: did you mean %q, not %q?", msg, like, text)
			}
		}
	}
	return msg
}

// mentions returns the variables that have words, and the texts, in an expression.
func (n *nameChecker) mentions(e ast.Expr) (of, texts []string) {
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if name := qualified(e); n.variables[name] != nil && !slices.Contains(of, name) {
			of = append(of, name)
		}
		if e.Kind() == ast.LiteralKind {
			if s, ok := standing(e.AsLiteral()); ok {
				texts = append(texts, s)
			}
		}
	}))
	return of, texts
}
