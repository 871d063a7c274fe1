package governance

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"cel.dev/cel-go/common/operators"
)

// maxAlternatives bounds the alternatives of a regular expression that are looked at.
const maxAlternatives = 100

// relation is how a rule compares two texts.
type relation struct {
	says   string                     // of the left one, with the right one after it
	holds  func(x, y word) bool       // whether it can
	like   func(n *names) []string    // texts that the other one may be a slip of
	pieces [2]func(s string) []string // parts of the left and the right one that each have to be related; nil: the whole
	sorted bool                       // among sorted texts that are not open, the first not less than the right one has it if any has
	costs  int                        // to look at two texts, beyond a comparison
}

// equalTo is the relation of ==, != and in.
const equalTo = operators.Equals

// relations returns the relations, by the functions of expressions.
func relations() map[string]*relation {
	begins := func(n *names) []string { return n.parts(false) }
	ends := func(n *names) []string { return n.parts(true) }
	all := func(n *names) []string {
		return slices.Compact(slices.Sorted(slices.Values(append(begins(n), ends(n)...))))
	}
	order := func(says string, holds func(x, y string) bool) *relation {
		return &relation{says: says, like: (*names).listed, holds: func(x, y word) bool { return x.open || y.open || holds(x.text, y.text) }}
	}
	listed := [2]func(string) []string{items}
	return map[string]*relation{
		equalTo:                 {says: "is never", like: (*names).listed, holds: equalWords, sorted: true},
		"startsWith":            {says: "never starts with", like: begins, holds: beginsWith, sorted: true},
		"endsWith":              {says: "never ends with", like: ends, holds: ifClosed(strings.HasSuffix)},
		"contains":              {says: "never contains", like: all, holds: ifClosed(strings.Contains), pieces: listed},
		matchesFunction:         {says: "never matches", holds: matcher(), pieces: [2]func(string) []string{items, alternatives}, costs: 20},
		operators.Less:          order("is never less than", func(x, y string) bool { return x < y }),
		operators.LessEquals:    order("is never at most", func(x, y string) bool { return x <= y }),
		operators.Greater:       order("is never greater than", func(x, y string) bool { return x > y }),
		operators.GreaterEquals: order("is never at least", func(x, y string) bool { return x >= y }),
	}
}

func ifClosed(holds func(x, y string) bool) func(x, y word) bool {
	return func(x, y word) bool { return x.open || y.open || holds(x.text, y.text) }
}

func equalWords(x, y word) bool {
	return x.text == y.text || x.open && strings.HasPrefix(y.text, x.text) || y.open && strings.HasPrefix(x.text, y.text)
}

func beginsWith(x, y word) bool {
	return strings.HasPrefix(x.text, y.text) || x.open && strings.HasPrefix(y.text, x.text)
}

// separators are between the texts that a text lists.
const separators = ",;| \t\n"

// items returns the texts that a text lists.
func items(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) })
}

// bare returns the names without separators around them, as of ",a,b,".contains("," + x + ",").
// nil: a list of them cannot be told from one of their parts.
func (n *names) bare() *names {
	out := slices.Clone(n.words)
	for i, w := range out {
		out[i].text = strings.TrimLeft(w.text, separators)
		if !w.open {
			out[i].text = strings.TrimRight(out[i].text, separators)
		}
		if strings.ContainsAny(out[i].text, separators) {
			return nil
		}
	}
	return newNames(n.of, out)
}

// matcher returns whether a text can match a regular expression. It keeps what it compiled.
func matcher() func(x, y word) bool {
	type compiled struct {
		closed *regexp.Regexp
		open   *syntax.Prog
	}
	all := make(map[string]compiled)
	return func(x, y word) bool {
		c, known := all[y.text]
		if !known {
			if tree, err := syntax.Parse(y.text, syntax.Perl); err == nil {
				c.closed, _ = regexp.Compile(y.text)
				c.open, _ = syntax.Compile(tree.Simplify())
			}
			all[y.text] = c
		}
		switch {
		case y.open || c.closed == nil: // others report what is not one
			return true
		case x.open:
			return canGoOn(c.open, []rune(x.text))
		default:
			return c.closed.MatchString(x.text)
		}
	}
}

// canGoOn reports whether a program can match a text that begins with s: what comes after
// s is whatever it waits for.
func canGoOn(p *syntax.Prog, s []rune) bool {
	type place struct {
		pc uint32
		at int
	}
	seen := make(map[place]bool)
	var walk func(pc uint32, at int) bool
	walk = func(pc uint32, at int) bool {
		i := &p.Inst[pc]
		if seen[place{pc, at}] {
			return false
		}
		seen[place{pc, at}] = true
		switch i.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
			return false
		case syntax.InstAlt, syntax.InstAltMatch:
			return walk(i.Out, at) || walk(i.Arg, at)
		case syntax.InstCapture, syntax.InstNop:
			return walk(i.Out, at)
		case syntax.InstEmptyWidth: // others than the beginning can be anywhere
			return (at == 0 || syntax.EmptyOp(i.Arg)&syntax.EmptyBeginText == 0) && walk(i.Out, at)
		default:
			return at == len(s) || i.MatchRune(s[at]) && walk(i.Out, at+1)
		}
	}
	for at := range len(s) + 1 {
		if walk(uint32(p.Start), at) {
			return true
		}
	}
	return false
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
