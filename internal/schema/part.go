package schema

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// part is a schema that another one evaluates.
type part struct {
	of   *jsonschema.Schema
	into into
	name string            // of a member, or the index of an item; "": of any other
	re   jsonschema.Regexp // of names of members
}

// into says which value a part is evaluated on.
type into int

const (
	same   into = iota // that of the schema
	member             // a named member
	match              // members with a matching name
	others             // members that the schema does not name
	item               // an item
	name               // names of members
)

// parts returns what a schema evaluates, in an order that follows from it alone.
func parts(x *jsonschema.Schema) []part {
	var to []part
	add := func(at into, all ...*jsonschema.Schema) {
		for _, of := range all {
			if of != nil {
				to = append(to, part{of: of, into: at})
			}
		}
	}
	add(same, x.Ref, x.Not, x.If, x.Then, x.Else)
	add(same, x.AllOf...)
	add(same, x.AnyOf...)
	add(same, x.OneOf...)
	for _, key := range slices.Sorted(maps.Keys(x.DependentSchemas)) {
		add(same, x.DependentSchemas[key])
	}
	for _, key := range slices.Sorted(maps.Keys(x.Dependencies)) {
		if of, ok := x.Dependencies[key].(*jsonschema.Schema); ok {
			add(same, of)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(x.Properties)) {
		to = append(to, part{of: x.Properties[key], into: member, name: key})
	}
	for _, re := range sortedPatterns(x) {
		to = append(to, part{of: x.PatternProperties[re], into: match, re: re})
	}
	if of, ok := x.AdditionalProperties.(*jsonschema.Schema); ok {
		add(others, of)
	}
	add(others, x.UnevaluatedProperties)
	add(name, x.PropertyNames)
	add(item, x.Contains, x.Items2020, x.UnevaluatedItems)
	begin := x.PrefixItems
	switch of := x.Items.(type) {
	case *jsonschema.Schema:
		add(item, of)
	case []*jsonschema.Schema:
		begin = of
	}
	for i, of := range begin {
		to = append(to, part{of: of, into: item, name: strconv.Itoa(i)})
	}
	if of, ok := x.AdditionalItems.(*jsonschema.Schema); ok {
		add(item, of)
	}
	return to
}

func sortedPatterns(x *jsonschema.Schema) []jsonschema.Regexp {
	return slices.SortedFunc(maps.Keys(x.PatternProperties), func(a, b jsonschema.Regexp) int { return cmp.Compare(a.String(), b.String()) })
}
