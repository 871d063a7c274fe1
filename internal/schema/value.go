package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func (c *check) hasType(types jsonschema.Types, v any) bool {
	has := func(name string) bool {
		var t jsonschema.Types
		t.Add(name)
		return types&t != 0
	}
	if has(typeOf(v)) {
		return true
	}
	n, ok := v.(json.Number)
	return ok && has("integer") && c.rat(n).IsInt()
}

// rat returns a number as it is, and spends what arithmetic with it costs.
func (c *check) rat(n json.Number) *big.Rat {
	long := uint64(len(n)) / 64
	c.spend(1 + long*long)
	r, _ := new(big.Rat).SetString(string(n)) // values from outside have no great exponents
	return r
}

func (c *check) number(x *jsonschema.Schema, n json.Number) *fault {
	if x.Minimum == nil && x.Maximum == nil && x.ExclusiveMinimum == nil && x.ExclusiveMaximum == nil && x.MultipleOf == nil {
		return nil
	}
	r := c.rat(n)
	switch {
	case x.Minimum != nil && r.Cmp(x.Minimum) < 0:
		return c.fault(x, &kind.Minimum{Got: r, Want: x.Minimum})
	case x.Maximum != nil && r.Cmp(x.Maximum) > 0:
		return c.fault(x, &kind.Maximum{Got: r, Want: x.Maximum})
	case x.ExclusiveMinimum != nil && r.Cmp(x.ExclusiveMinimum) <= 0:
		return c.fault(x, &kind.ExclusiveMinimum{Got: r, Want: x.ExclusiveMinimum})
	case x.ExclusiveMaximum != nil && r.Cmp(x.ExclusiveMaximum) >= 0:
		return c.fault(x, &kind.ExclusiveMaximum{Got: r, Want: x.ExclusiveMaximum})
	case x.MultipleOf == nil:
		return nil
	}
	long := uint64(r.Num().BitLen()+r.Denom().BitLen()+x.MultipleOf.Num().BitLen()+x.MultipleOf.Denom().BitLen()) / 256
	c.spend(long * long)
	if !new(big.Rat).Quo(r, x.MultipleOf).IsInt() {
		return c.fault(x, &kind.MultipleOf{Got: r, Want: x.MultipleOf})
	}
	return nil
}

func (c *check) text(x *jsonschema.Schema, s string) *fault {
	if x.MinLength != nil || x.MaxLength != nil {
		c.spend(uint64(len(s)) / 64)
		n := utf8.RuneCountInString(s)
		if x.MinLength != nil && n < *x.MinLength {
			return c.fault(x, &kind.MinLength{Got: n, Want: *x.MinLength})
		}
		if x.MaxLength != nil && n > *x.MaxLength {
			return c.fault(x, &kind.MaxLength{Got: n, Want: *x.MaxLength})
		}
	}
	if x.Pattern != nil && !c.matches(x.Pattern, s) {
		return c.fault(x, &kind.Pattern{Got: s, Want: x.Pattern.String()})
	}
	return nil
}

// matches spends what the work of a regular expression is in the worst case.
func (c *check) matches(re jsonschema.Regexp, s string) bool {
	c.spend(1 + uint64(len(s))*c.programs[re]/8)
	return re.MatchString(s)
}

func (c *check) array(x *jsonschema.Schema, all []any, m *marks) *fault {
	switch {
	case x.MinItems != nil && len(all) < *x.MinItems:
		return c.fault(x, &kind.MinItems{Got: len(all), Want: *x.MinItems})
	case x.MaxItems != nil && len(all) > *x.MaxItems:
		return c.fault(x, &kind.MaxItems{Got: len(all), Want: *x.MaxItems})
	}
	if x.UniqueItems {
		if i, j := c.duplicates(all); j > 0 {
			return c.fault(x, &kind.UniqueItems{Duplicates: [2]int{i, j}})
		}
	}
	begin, rest := x.PrefixItems, x.Items2020
	switch items := x.Items.(type) {
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		begin = items
		switch more := x.AdditionalItems.(type) {
		case *jsonschema.Schema:
			rest = more
		case bool:
			if !more && len(all) > len(begin) {
				return c.fault(x, &kind.AdditionalItems{Count: len(all) - len(begin)})
			}
			m.items(len(all))
		}
	}
	for i, v := range all {
		of := rest
		if i < len(begin) {
			of = begin[i]
		}
		if of == nil {
			break
		}
		m.item(i)
		if f := c.within(of, v, strconv.Itoa(i)); f != nil {
			return f
		}
	}
	return c.contains(x, all, m)
}

func (c *check) contains(x *jsonschema.Schema, all []any, m *marks) *fault {
	if x.Contains == nil {
		return nil
	}
	var found []int
	c.mute++
	for i, v := range all {
		if c.within(x.Contains, v, strconv.Itoa(i)) == nil {
			found = append(found, i)
			if x.DraftVersion >= 2020 {
				m.item(i)
			}
		}
	}
	c.mute--
	switch {
	case x.MinContains != nil && len(found) < *x.MinContains:
		return c.fault(x, &kind.MinContains{Got: found, Want: *x.MinContains})
	case x.MinContains == nil && len(found) == 0:
		return c.fault(x, &kind.Contains{})
	case x.MaxContains != nil && len(found) > *x.MaxContains:
		return c.fault(x, &kind.MaxContains{Got: found, Want: *x.MaxContains})
	}
	return nil
}

// duplicates returns the first item that is equal to an earlier one, and that; 0 and 0: none is.
func (c *check) duplicates(all []any) (int, int) {
	seen := make(map[string]int, len(all))
	for j, v := range all {
		name := string(c.name(nil, v))
		if i, ok := seen[name]; ok {
			return i, j
		}
		seen[name] = j
	}
	return 0, 0
}

// name appends what equal values have in common, and no others.
func (c *check) name(to []byte, v any) []byte {
	c.spend(1)
	switch v := v.(type) {
	case nil:
		return append(to, 'z')
	case bool:
		return strconv.AppendBool(to, v)
	case string:
		c.spend(uint64(len(v)) / 64)
		return strconv.AppendQuote(to, v)
	case json.Number:
		text := c.rat(v).RatString()
		c.spend(uint64(len(text)) / 64)
		return append(to, text...)
	case []any:
		to = append(to, '[')
		for _, of := range v {
			to = append(c.name(to, of), ',')
		}
		return append(to, ']')
	case map[string]any:
		to = append(to, '{')
		for _, key := range c.names(v) {
			to = append(c.name(c.name(to, key), v[key]), ',')
		}
		return append(to, '}')
	}
	return to
}

// equal reports whether two values are, numbers by what they are worth.
func (c *check) equal(a, b any) bool {
	c.spend(1)
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		c.spend(uint64(min(len(a), len(b))) / 64)
		return ok && a == b
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || c.rat(a).Cmp(c.rat(b)) == 0)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, c.equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for _, key := range c.names(a) {
			if of, there := b[key]; !there || !c.equal(a[key], of) {
				return false
			}
		}
		return true
	}
	return a == b // null, and truth values
}

// names returns the names of members in order.
func (c *check) names(obj map[string]any) []string {
	c.spend(uint64(len(obj)))
	return slices.Sorted(maps.Keys(obj))
}
