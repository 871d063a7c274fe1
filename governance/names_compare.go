package governance

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
)

// compare returns whether one of values can be related to one of others. It notes which
// texts can.
func (c *evaluation) compare(name string, a, b values) (t truth) {
	for _, x := range a {
		for _, y := range b {
			if c.left < 0 {
				return truth{true, true}
			}
			u := c.compareTwo(name, x, y)
			t.yes, t.no = t.yes || u.yes, t.no || u.no
		}
	}
	return t
}

func (c *evaluation) compareTwo(name string, x, y value) truth {
	c.left--
	switch {
	case x.is == isAny || y.is == isAny || x.is == isBool && y.is == isBool:
		c.free(values{x, y})
		return truth{true, true}
	case x.is == isText && y.is == isText:
		return c.texts(c.relations[name], x, y)
	case name != equalTo || x.is != y.is:
		return truth{false, true}
	}
	t := truth{true, x.loose || y.loose}
	if !x.loose && !y.loose && len(x.parts) != len(y.parts) {
		t = truth{false, true}
	}
	for i, p := range x.parts { // each has one that it can be
		some := truth{len(y.parts) == 0, false}
		for j, q := range y.parts {
			if x.is == isList && !x.loose && !y.loose && i != j || x.is == isMap && !c.compare(equalTo, p.key, q.key).yes {
				continue
			}
			u := c.compare(equalTo, p.item, q.item)
			some.yes, t.no = some.yes || u.yes, t.no || u.no
		}
		t.yes, t.no = t.yes && (some.yes || x.loose), t.no || !some.yes
	}
	return t
}

// free notes that the texts in values are compared with what can be anything.
func (c *evaluation) free(all values) {
	for _, v := range all {
		if c.left--; c.left < 0 {
			return
		}
		if c.fit != nil && v.literal {
			c.fit[v.at] = true
		}
		for _, p := range v.parts {
			c.free(p.key)
			c.free(p.item)
		}
	}
}

// texts returns whether a text can be related to another, and notes it of those that stand
// there: where one has pieces, of each.
func (c *evaluation) texts(than *relation, x, y value) truth {
	t := truth{yes: c.can(than, x.names, y.names)}
	t.no = !t.yes || c.work < 0 || x.open || y.open || len(x.words) != 1 || len(y.words) != 1
	sides := [2]value{x, y}
	for i, stands := range sides {
		with := sides[1-i]
		if c.fit == nil || !stands.literal || len(stands.words) != 1 || with.at == stands.at {
			continue
		}
		fits, w, told := t.yes, stands.words[0], with.names
		if pieces := than.pieces[i]; pieces != nil && !w.open {
			bare := with.names
			if i == 0 {
				bare = bare.bare()
			}
			fits = t.yes || i == 1
			for _, piece := range pieces(w.text) {
				if bare == nil {
					break // a list of what has separators in it
				}
				of := [2]*names{bare, bare}
				if of[i] = newNames("", wordsOf(piece)); fits && !c.can(than, of[0], of[1]) {
					fits, w, told = false, word{piece, false}, bare
				}
			}
		}
		switch {
		case fits:
			c.fit[stands.at] = true
		case with.named:
			issue := nameIssue{w.text, than, told, i == 0 && than != c.relations[equalTo]}
			if w.open && than == c.relations[equalTo] {
				issue.than = c.relations["startsWith"]
			}
			c.issues[stands.at] = issue
		}
	}
	return t
}

// can reports whether a word of x can be related to one of y.
func (c *evaluation) can(than *relation, x, y *names) bool {
	if than == c.relations[equalTo] && len(x.words) == 1 {
		x, y = y, x
	}
	xs := x.words
	if than.sorted && !x.open && len(y.words) == 1 {
		i, _ := slices.BinarySearchFunc(xs, y.words[0], func(a, b word) int { return strings.Compare(a.text, b.text) })
		xs = xs[i:min(i+1, len(xs))]
	}
	for _, v := range xs {
		for _, w := range y.words {
			if c.work -= 1 + than.costs; c.work < 0 {
				return true
			}
			if w == (word{}) && len(y.words) > 1 && than != c.relations[equalTo] {
				continue // each text begins with it
			}
			if than.holds(v, w) {
				return true
			}
		}
	}
	return false
}

// joined returns the texts of a before those of b, or lists that are both.
func (c *evaluation) joined(e ast.Expr, a, b values) (out values) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case x.is == isList && y.is == isList:
				out = append(out, value{is: isList, at: e.ID(), parts: slices.Concat(x.parts, y.parts), loose: x.loose || y.loose})
			case x.is == isText && (y.is == isText || y.is == isAny):
				for _, at := range c.sides(e, a, b, x, y) {
					out = append(out, c.joinedTexts(at, x, y))
				}
			default:
				out = append(out, unknown(e)...)
			}
			if c.left -= 1 + len(x.parts) + len(y.parts); c.left < 0 {
				return unknown(e)
			}
		}
	}
	return out
}

// sides returns the parts of e that a text which is made of x and y is a slip of: where a side can be several
// texts, as in ["refnd", "mail"].exists(p, intent.kind == p + ".send"), that one of them.
func (c *evaluation) sides(e ast.Expr, a, b values, x, y value) (at []int64) {
	if len(a) > 1 && x.literal {
		at = append(at, x.at)
	}
	if len(b) > 1 && y.literal {
		at = append(at, y.at)
	}
	if at == nil {
		return []int64{e.ID()}
	}
	return at
}

func (c *evaluation) joinedTexts(at int64, x, y value) value {
	after := []word{{"", true}}
	if y.is == isText {
		after = y.words
	}
	if len(x.words)*len(after) > maxMeanings {
		return value{at: at}
	}
	var words []word
	for _, v := range x.words {
		for _, w := range after {
			if v.open {
				w = word{"", true}
			}
			c.left -= len(v.text) + len(w.text)
			words = append(words, word{v.text + w.text, w.open})
		}
	}
	return value{is: isText, at: at, literal: x.literal || y.literal, named: x.named || y.named, names: newNames("", words)}
}
