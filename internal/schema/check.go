package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Fault is a place in a value that breaks a schema, with the rule.
type Fault struct {
	Place     []string // names of members, and indexes of items
	Rule      string
	Exhausted bool // the check had no more steps: there is no verdict
}

// fault is the first that an evaluation found.
type fault struct {
	place []string
	url   string
	kind  jsonschema.ErrorKind
}

// check is one check under way.
type check struct {
	*Schema
	left  uint64
	ended func() error
	place []string
	mute  int // within how many parts nobody asks where a fault is
}

// stopped ends a check without a verdict. Nil: it has no more steps.
type stopped struct{ err error }

// Check holds a value, in JSON, to a schema, in at most so many steps. It returns nil of a
// value that fits. The error is that of text that is no JSON, or what ended returned, which
// is asked now and then, and may be nil.
func (s *Schema) Check(text []byte, most uint64, ended func() error) (found *Fault, err error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &check{Schema: s, left: most, ended: ended}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopped:
			if err = r.err; err == nil {
				found = &Fault{Place: c.place, Rule: fmt.Sprintf("takes more than %d steps to be checked against the schema", most), Exhausted: true}
			}
		default:
			panic(r)
		}
	}()
	f := c.evaluate(s.root, v, nil)
	if f == nil {
		return nil, nil
	}
	return &Fault{Place: f.place, Rule: rule(f.kind)}, nil
}

// Steps returns how many steps the check of a value of so many bytes has.
func Steps(bytes int) uint64 { return BaseSteps + ByteSteps*uint64(bytes) }

func rule(k jsonschema.ErrorKind) string {
	if r, ok := k.(*kind.Required); ok {
		return "missing " + strings.Join(r.Missing, ", ")
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

// endedEvery is how many steps are between two looks at whether somebody still waits.
const endedEvery = 1 << 14

// spend takes steps, before the work is done.
func (c *check) spend(n uint64) {
	if n > c.left {
		panic(stopped{})
	}
	before := c.left / endedEvery
	if c.left -= n; c.left/endedEvery == before || c.ended == nil {
		return
	}
	if err := c.ended(); err != nil {
		panic(stopped{err})
	}
}

// fault is one of the value that is looked at.
func (c *check) fault(x *jsonschema.Schema, k jsonschema.ErrorKind) *fault {
	if c.mute > 0 {
		return &fault{}
	}
	c.spend(uint64(len(c.place)))
	return &fault{place: slices.Clone(c.place), url: x.Location, kind: k}
}

// first is the fault that comes first by its place.
func first(a, b *fault) *fault {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case cmp.Or(slices.Compare(a.place, b.place), cmp.Compare(a.url, b.url)) <= 0:
		return a
	}
	return b
}

// evaluate holds a value to a schema, and notes in m what of it was evaluated; m is nil
// where nobody asks.
func (c *check) evaluate(x *jsonschema.Schema, v any, m *marks) *fault {
	c.spend(1)
	if x.Bool != nil {
		if *x.Bool {
			return nil
		}
		return c.fault(x, &kind.FalseSchema{})
	}
	if f := c.general(x, v); f != nil {
		return f
	}
	if c.noting && m == nil {
		m = new(marks)
	}
	var f *fault
	if x.Ref != nil {
		if f = c.apply(x.Ref, v, m); x.DraftVersion < 2019 {
			return f
		}
	}
	if !c.settled(f) {
		f = first(f, c.special(x, v, m))
	}
	if !c.settled(f) {
		f = first(f, c.combined(x, v, m))
	}
	if f != nil || !c.noting {
		return f
	}
	return c.unevaluated(x, v, m)
}

// settled reports whether no fault comes before the one that was found.
func (c *check) settled(f *fault) bool { return f != nil && len(f.place) <= len(c.place) }

// general holds a value to what goes for values of all types.
func (c *check) general(x *jsonschema.Schema, v any) *fault {
	if x.Types != nil && !x.Types.IsEmpty() && !c.hasType(*x.Types, v) {
		return c.fault(x, &kind.Type{Got: typeOf(v), Want: x.Types.ToStrings()})
	}
	if x.Const != nil && !c.equal(v, *x.Const) {
		return c.fault(x, &kind.Const{Got: v, Want: *x.Const})
	}
	if x.Enum != nil && !slices.ContainsFunc(x.Enum.Values, func(want any) bool { return c.equal(v, want) }) {
		return c.fault(x, &kind.Enum{Got: v, Want: x.Enum.Values})
	}
	if x.Format == nil {
		return nil
	}
	if text, ok := v.(string); ok {
		n := uint64(len(text))
		if x.Format.Name == "regex" { // which is compiled
			n *= 256
		}
		c.spend(1 + n/8)
	}
	if err := x.Format.Validate(v); err != nil {
		return c.fault(x, &kind.Format{Got: v, Want: x.Format.Name, Err: err})
	}
	return nil
}

// special holds a value to what goes for its type.
func (c *check) special(x *jsonschema.Schema, v any, m *marks) *fault {
	switch v := v.(type) {
	case map[string]any:
		return c.object(x, v, m)
	case []any:
		return c.array(x, v, m)
	case string:
		return c.text(x, v)
	case json.Number:
		return c.number(x, v)
	}
	return nil
}

// apply holds the same value to a part, and notes what that evaluated if it fits.
func (c *check) apply(x *jsonschema.Schema, v any, m *marks) *fault {
	if !c.noting {
		return c.evaluate(x, v, nil)
	}
	own := new(marks)
	f := c.evaluate(x, v, own)
	if f == nil {
		c.spend(own.len())
		m.add(own)
	}
	return f
}

// fits reports whether the same value fits a part.
func (c *check) fits(x *jsonschema.Schema, v any, m *marks) bool {
	c.mute++
	f := c.apply(x, v, m)
	c.mute--
	return f == nil
}

// within holds a member or an item to a part.
func (c *check) within(x *jsonschema.Schema, v any, at string) *fault {
	c.place = append(c.place, at)
	f := c.evaluate(x, v, nil)
	c.place = c.place[:len(c.place)-1]
	return f
}

// combined holds a value to the parts that are combined.
func (c *check) combined(x *jsonschema.Schema, v any, m *marks) *fault {
	var f *fault
	if x.Not != nil && c.fits(x.Not, v, new(marks)) {
		return c.fault(x, &kind.Not{})
	}
	for _, p := range x.AllOf {
		f = first(f, c.apply(p, v, m))
	}
	f = first(f, c.oneOrMore(x, v, m))
	f = first(f, c.exactlyOne(x, v, m))
	if x.If != nil {
		then := x.Else
		if c.fits(x.If, v, m) {
			then = x.Then
		}
		if then != nil {
			f = first(f, c.apply(then, v, m))
		}
	}
	if obj, ok := v.(map[string]any); ok {
		f = first(f, c.dependent(x, obj, m))
	}
	return f
}

func (c *check) oneOrMore(x *jsonschema.Schema, v any, m *marks) *fault {
	if len(x.AnyOf) == 0 {
		return nil
	}
	var f *fault
	fits := false
	for _, p := range x.AnyOf {
		if bad := c.apply(p, v, m); bad != nil {
			f = first(f, bad)
			continue
		}
		if fits = true; !c.noting { // else all are asked what they evaluate
			break
		}
	}
	if fits {
		return nil
	}
	return f
}

func (c *check) exactlyOne(x *jsonschema.Schema, v any, m *marks) *fault {
	if len(x.OneOf) == 0 {
		return nil
	}
	var f *fault
	fits := -1
	for i, p := range x.OneOf {
		if fits >= 0 {
			if c.fits(p, v, m) {
				return c.fault(x, &kind.OneOf{Subschemas: []int{fits, i}})
			}
		} else if bad := c.apply(p, v, m); bad != nil {
			f = first(f, bad)
		} else {
			fits = i
		}
	}
	if fits >= 0 {
		return nil
	}
	return f
}

// unevaluated holds members and items that nothing has evaluated to their parts.
func (c *check) unevaluated(x *jsonschema.Schema, v any, m *marks) *fault {
	switch v := v.(type) {
	case map[string]any:
		if x.UnevaluatedProperties == nil {
			return nil
		}
		for _, key := range c.names(v) {
			if !m.hasMember(key) {
				if f := c.within(x.UnevaluatedProperties, v[key], key); f != nil {
					return f
				}
			}
		}
		m.allMembers = true
	case []any:
		if x.UnevaluatedItems == nil {
			return nil
		}
		for i := range v {
			if !m.hasItem(i) {
				if f := c.within(x.UnevaluatedItems, v[i], strconv.Itoa(i)); f != nil {
					return f
				}
			}
		}
		m.allItems = true
	}
	return nil
}
