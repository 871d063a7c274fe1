package governance

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// reach is an evaluation for intents of a kind: it notes which parts of an expression matter
// for them, not the other side of an && that is false for them, say.
type reach struct {
	kind  *paramsKind
	notes []reachedPart
}

// reachedPart is a part that matters.
type reachedPart struct {
	id    int64
	lacks string // that the part asks for a field that there cannot be; empty: it does not
}

// reachOf evaluates an expression for intents of a kind. It returns nil where that takes too long.
func (n *nameChecker) reachOf(e ast.Expr, k *paramsKind, length int) []reachedPart {
	c := n.evaluation(k.known)
	c.reach, c.left = &reach{kind: k}, maxMeanings+16*length
	if c.valuesOf(e); c.left < 0 {
		return nil
	}
	return c.reach.notes
}

// variable returns what is known of a variable; nil: nothing.
func (r *reach) variable(e ast.Expr, name string) values {
	if t, ok := r.kind.flags[name]; ok {
		return boolean(t)
	}
	if name == paramsName && r.kind.schema != nil {
		return values{{at: e.ID(), shape: r.kind.schema.root()}}
	}
	return nil
}

// field returns what e, which asks something in params for a key, stands for; the zero value: anything.
// It notes that there cannot be such a field.
func (c *evaluation) field(e ast.Expr, of shape, keys values) shape {
	name, known := keys.onlyText()
	if of.node == nil || !known {
		return of.item()
	}
	field, possible := of.property(name)
	if !possible {
		c.reach.notes = append(c.reach.notes, reachedPart{e.ID(), of.lacks(c.reach.kind.kind, name)})
	}
	return field
}

// onlyText returns the text that the values are.
func (all values) onlyText() (string, bool) {
	if len(all) != 1 || all[0].is != isText || len(all[0].words) != 1 || all[0].open {
		return "", false
	}
	return all[0].words[0].text, true
}

// lack reports that the values are something in params that cannot have a field.
func (all values) lack(name string) bool {
	if len(all) != 1 || all[0].shape.node == nil {
		return false
	}
	_, possible := all[0].shape.property(name)
	return !possible
}

// deciding returns the value of an operand that decides about && and ||, whatever the others are.
func deciding(operator string) (decides, ok bool) {
	return operator == operators.LogicalOr, operator == operators.LogicalAnd || operator == operators.LogicalOr
}

// decided returns the value of && or ||. Where one operand decides, no other one matters.
func (c *evaluation) decided(operands []ast.Expr, decides bool) values {
	begin := len(c.reach.notes)
	t := truth{!decides, decides} // of no operands
	for _, e := range operands {
		before := len(c.reach.notes)
		u := c.valuesOf(e).truth()
		if u == (truth{decides, !decides}) {
			c.reach.notes = append(c.reach.notes[:begin], c.reach.notes[before:]...)
			return boolean(u)
		}
		if decides {
			t = truth{t.yes || u.yes, t.no && u.no}
		} else {
			t = truth{t.yes && u.yes, t.no || u.no}
		}
	}
	return boolean(t)
}

// branch returns the values of the branches of a condition that can be taken.
func (c *evaluation) branch(when, then, otherwise ast.Expr) (out values) {
	t := c.valuesOf(when).truth()
	if t.yes {
		out = c.valuesOf(then)
	}
	if t.no {
		out = slices.Concat(out, c.valuesOf(otherwise))
	}
	return out
}

// qualified returns the name that e is, with what it is a field of; "": it is none.
func qualified(e ast.Expr) string {
	switch e.Kind() { //nolint:exhaustive // the rest is no name
	case ast.IdentKind:
		return strings.TrimPrefix(e.AsIdent(), ".") // which says that it is no local variable
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			if of := qualified(s.Operand()); of != "" {
				return of + "." + s.FieldName()
			}
		}
	}
	return ""
}
