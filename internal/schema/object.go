package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// object holds an object to what goes for objects.
func (c *check) object(x *jsonschema.Schema, obj map[string]any, m *marks) *fault {
	switch {
	case x.MinProperties != nil && len(obj) < *x.MinProperties:
		return c.fault(x, &kind.MinProperties{Got: len(obj), Want: *x.MinProperties})
	case x.MaxProperties != nil && len(obj) > *x.MaxProperties:
		return c.fault(x, &kind.MaxProperties{Got: len(obj), Want: *x.MaxProperties})
	}
	if missing := c.missing(obj, x.Required); missing != nil {
		return c.fault(x, &kind.Required{Missing: missing})
	}
	if f := c.dependencies(x, obj); f != nil {
		return f
	}
	if len(x.Properties) == 0 && len(x.PatternProperties) == 0 && x.AdditionalProperties == nil && x.PropertyNames == nil {
		return nil
	}
	return c.members(x, obj, m)
}

// members holds members to their parts, in the order of their names.
func (c *check) members(x *jsonschema.Schema, obj map[string]any, m *marks) *fault {
	var more []string
	var found *fault
	all := c.patterns[x]
	names := c.names(obj)
	for _, key := range names {
		f, evaluated := c.member(x, all, obj, key)
		if evaluated {
			m.member(key)
		} else if allowed, ok := x.AdditionalProperties.(bool); ok && !allowed {
			more = append(more, key)
		}
		if found = first(found, f); found != nil && c.mute > 0 {
			return found
		}
	}
	if len(more) > 0 {
		return c.fault(x, &kind.AdditionalProperties{Properties: more})
	}
	if x.PropertyNames != nil {
		for _, key := range names {
			c.mute++
			bad := c.evaluate(x.PropertyNames, key, nil)
			c.mute--
			if bad != nil {
				return c.fault(x, &kind.PropertyNames{Property: key})
			}
		}
	}
	return found
}

// member holds one member to the parts for it, and reports whether there are any.
func (c *check) member(x *jsonschema.Schema, all []jsonschema.Regexp, obj map[string]any, key string) (f *fault, evaluated bool) {
	c.spend(1)
	if of, ok := x.Properties[key]; ok {
		evaluated = true
		f = c.within(of, obj[key], key)
	}
	for _, re := range all {
		if c.matches(re, key) {
			evaluated = true
			f = first(f, c.within(x.PatternProperties[re], obj[key], key))
		}
	}
	if evaluated {
		return f, true
	}
	switch of := x.AdditionalProperties.(type) {
	case bool:
		return nil, of
	case *jsonschema.Schema:
		return c.within(of, obj[key], key), true
	}
	return nil, false
}

func (c *check) missing(obj map[string]any, want []string) []string {
	var missing []string
	c.spend(uint64(len(want)))
	for _, key := range want {
		if _, ok := obj[key]; !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

// dependencies holds an object to what must be there beside some members.
func (c *check) dependencies(x *jsonschema.Schema, obj map[string]any) *fault {
	c.spend(uint64(len(x.Dependencies) + len(x.DependentRequired)))
	for _, key := range slices.Sorted(maps.Keys(x.Dependencies)) {
		if want, ok := x.Dependencies[key].([]string); ok && has(obj, key) {
			if missing := c.missing(obj, want); missing != nil {
				return c.fault(x, &kind.Dependency{Prop: key, Missing: missing})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(x.DependentRequired)) {
		if has(obj, key) {
			if missing := c.missing(obj, x.DependentRequired[key]); missing != nil {
				return c.fault(x, &kind.DependentRequired{Prop: key, Missing: missing})
			}
		}
	}
	return nil
}

// dependent holds an object to the parts that go for it where some members are there.
func (c *check) dependent(x *jsonschema.Schema, obj map[string]any, m *marks) *fault {
	var f *fault
	c.spend(uint64(len(x.Dependencies) + len(x.DependentSchemas)))
	for _, key := range slices.Sorted(maps.Keys(x.Dependencies)) {
		if of, ok := x.Dependencies[key].(*jsonschema.Schema); ok && has(obj, key) {
			f = first(f, c.apply(of, obj, m))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(x.DependentSchemas)) {
		if has(obj, key) {
			f = first(f, c.apply(x.DependentSchemas[key], obj, m))
		}
	}
	return f
}

func has(obj map[string]any, key string) bool {
	_, ok := obj[key]
	return ok
}
