package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// drafts are the names in $schema, oldest first, of which the last are read as they are.
func drafts() []string {
	return []string{"draft-03", "draft-04", "draft-06", "draft-07", "2019-09", "2020-12"}
}

// reference is the keyword beside which drafts before 2019-09 have no other.
const reference = "$ref"

// holds says which keywords have schemas in them.
type holds int

const (
	noSchema    holds = iota
	oneSchema         // or anything else where the keyword can have that
	manySchemas       // a list
	named             // a mapping from names
)

func holdsOf(keyword string) holds {
	switch keyword {
	case "additionalProperties", "items", "not", "contains", "propertyNames", "if", "then", "else",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		return oneSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return manySchemas
	case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas":
		return named
	}
	return noSchema
}

// Modernize returns the schema of a stranger as one of draft 2020-12 that means the same, where
// such a one can be written: drafts 03 to 07, the regular expressions of ECMA-262, and the
// nulls and empty lists that some languages write for what is not there. A schema is as
// encoding/json decodes it; what it shares with the one returned nobody may change. It need not be one: Compile says.
func Modernize(schema any) (map[string]any, error) {
	switch s := schema.(type) {
	case bool:
		if s {
			return map[string]any{}, nil
		}
		return nil, errors.New("it is false: nothing is allowed")
	case nil:
		return nil, errors.New("it is no JSON object")
	}
	m := modernizer{}
	if s, ok := schema.(map[string]any); ok {
		text, _ := s["$schema"].(string)
		m.draft = slices.IndexFunc(drafts(), func(draft string) bool {
			return strings.Contains(text, "json-schema.org/"+draft+"/") || strings.Contains(text, "json-schema.org/draft/"+draft+"/")
		})
		m.known = m.draft >= 0
	}
	out, ok := m.schema(schema).(map[string]any)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	delete(out, "required?")
	return out, m.err
}

type modernizer struct {
	draft int  // its place in drafts
	known bool // whether it says
	err   error
}

// before reports whether a schema says that it is of a draft before that.
func (m *modernizer) before(draft string) bool {
	return m.known && m.draft < slices.Index(drafts(), draft)
}

func (m *modernizer) fault(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// schema returns one in the words of 2020-12. Where its property is required, as draft 03 has it, it
// has "required?" for who has it as a property.
func (m *modernizer) schema(v any) any {
	if list, ok := v.([]any); ok && len(list) == 0 {
		v = map[string]any{} // as PHP writes it
	}
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(s))
	for name, x := range s { // order cannot show: a copy
		if x != nil || name == "const" || name == "default" {
			out[name] = x
		}
	}
	if m.before("2019-09") && out[reference] != nil {
		maps.DeleteFunc(out, func(name string, _ any) bool {
			return !slices.Contains([]string{reference, "$schema", "definitions", "description", "title"}, name)
		})
	}
	m.name(out)
	m.bounds(out)
	m.arrays(out)
	m.dependencies(out)
	m.types(out)
	for _, name := range slices.Sorted(maps.Keys(out)) {
		out[name] = m.within(name, out[name])
	}
	m.required(out)
	m.patterns(out)
	return out
}

// within returns what a keyword has.
func (m *modernizer) within(keyword string, v any) any {
	switch holdsOf(keyword) {
	case oneSchema:
		return m.plain(v)
	case manySchemas:
		if list, ok := v.([]any); ok {
			list = slices.Clone(list)
			for i := range list {
				list[i] = m.plain(list[i])
			}
			return list
		}
	case named:
		if list, ok := v.([]any); ok && len(list) == 0 {
			return map[string]any{}
		}
		if of, ok := v.(map[string]any); ok {
			of = maps.Clone(of)
			for _, name := range slices.Sorted(maps.Keys(of)) {
				if keyword == "properties" {
					of[name] = m.schema(of[name])
				} else {
					of[name] = m.plain(of[name])
				}
			}
			return of
		}
	case noSchema:
	}
	return v
}

// plain is schema where no property is.
func (m *modernizer) plain(v any) any {
	v = m.schema(v)
	if s, ok := v.(map[string]any); ok {
		delete(s, "required?")
	}
	return v
}

// also adds a schema that has to hold, too.
func also(s map[string]any, more any) {
	list, ok := s["allOf"].([]any)
	if s["allOf"] != nil && !ok {
		list = []any{s["allOf"]}
	}
	s["allOf"] = append(slices.Clone(list), more)
}

// name brings what a schema says of itself.
func (m *modernizer) name(s map[string]any) {
	if m.known {
		delete(s, "$schema")
	}
	if id, ok := s["id"].(string); ok && m.before("draft-06") {
		delete(s, "id")
		s["$id"] = id
	}
	if id, ok := s["$id"].(string); ok && m.before("2019-09") && strings.HasPrefix(id, "#") {
		delete(s, "$id")
		s["$anchor"] = id[1:]
	}
}

// bounds brings those of numbers.
func (m *modernizer) bounds(s map[string]any) {
	for of, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} { // order cannot show: each is of its own
		if is, ok := s[exclusive].(bool); ok {
			delete(s, exclusive)
			if n, has := s[of]; is && has {
				delete(s, of)
				s[exclusive] = n
			}
		}
	}
	if n, ok := s["divisibleBy"]; ok && (m.before("draft-04") || !m.known) {
		delete(s, "divisibleBy")
		if s["multipleOf"] == nil {
			s["multipleOf"] = n
		} else {
			also(s, map[string]any{"multipleOf": n})
		}
	}
}

// arrays brings lists of items.
func (m *modernizer) arrays(s map[string]any) {
	rest, hasRest := s["additionalItems"]
	list, isList := s["items"].([]any)
	if !m.known || m.before("2020-12") {
		delete(s, "additionalItems")
	}
	if !isList {
		return
	}
	delete(s, "items")
	if len(list) > 0 {
		s["prefixItems"] = list
	}
	if hasRest {
		s["items"] = rest
	}
}

// dependencies brings what a property needs beside it.
func (m *modernizer) dependencies(s map[string]any) {
	all, ok := s["dependencies"].(map[string]any)
	if !ok || m.known && !m.before("2020-12") {
		return
	}
	delete(s, "dependencies")
	properties, schemas := map[string]any{}, map[string]any{}
	for name, needs := range all { // order cannot show: each is of its own
		switch needs := needs.(type) {
		case string:
			properties[name] = []any{needs}
		case []any:
			properties[name] = needs
		default:
			schemas[name] = needs
		}
	}
	for keyword, of := range map[string]map[string]any{"dependentRequired": properties, "dependentSchemas": schemas} { // order cannot show: each is of its own
		switch {
		case len(of) == 0:
		case s[keyword] == nil:
			s[keyword] = of
		default:
			m.fault("it has both dependencies and %s", keyword)
		}
	}
}

// types brings the types of draft 03.
func (m *modernizer) types(s map[string]any) {
	if choice, plain := oldType(s["type"]); !plain {
		delete(s, "type")
		if choice != nil {
			also(s, choice)
		}
	}
	if m.known && !m.before("draft-04") {
		return
	}
	if not, ok := s["disallow"]; ok {
		delete(s, "disallow")
		also(s, map[string]any{"not": map[string]any{"type": not}}) // which comes here again
	}
	switch extends := s["extends"].(type) {
	case map[string]any:
		delete(s, "extends")
		also(s, extends)
	case []any:
		delete(s, "extends")
		for _, more := range extends {
			also(s, more)
		}
	}
}

// oldType returns what is in the place of a type of draft 03; nil: any type. plain: it is as it was.
func oldType(t any) (choice any, plain bool) {
	const anyType = "any"
	list, ok := t.([]any)
	if !ok {
		return nil, t != anyType
	}
	var choices, types []any
	for _, x := range list {
		switch {
		case x == anyType:
			return nil, false
		case isSchema(x):
			choices = append(choices, x)
		default:
			types = append(types, x)
		}
	}
	if len(choices) == 0 {
		return nil, true
	}
	if len(types) > 0 {
		choices = append(choices, map[string]any{"type": types})
	}
	return map[string]any{"anyOf": choices}, false
}

func isSchema(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// required brings properties that say themselves that they are required.
func (m *modernizer) required(s map[string]any) {
	if is, ok := s["required"].(bool); ok {
		delete(s, "required")
		if is {
			s["required?"] = true
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, ok := properties[name].(map[string]any)
		if !ok || p["required?"] != true {
			continue
		}
		delete(p, "required?")
		list, ok := s["required"].([]any)
		if s["required"] != nil && !ok {
			m.fault("required is no list")
		} else if !slices.Contains(list, any(name)) {
			s["required"] = append(slices.Clone(list), name)
		}
	}
}

// patterns brings regular expressions.
func (m *modernizer) patterns(s map[string]any) {
	if pattern, ok := s["pattern"].(string); ok {
		re, beside, err := fromECMA(pattern)
		if err != nil {
			m.fault("the pattern %.200q: %w", pattern, err)
		}
		s["pattern"] = re
		for _, c := range beside {
			if c.not {
				also(s, map[string]any{"not": map[string]any{"type": "string", "pattern": c.pattern}})
			} else {
				also(s, map[string]any{"pattern": c.pattern})
			}
		}
	}
	of, ok := s["patternProperties"].(map[string]any)
	if !ok {
		return
	}
	out := make(map[string]any, len(of))
	for _, pattern := range slices.Sorted(maps.Keys(of)) {
		re, beside, err := fromECMA(pattern)
		if _, taken := out[re]; err == nil && (len(beside) > 0 || taken) {
			err = errAround
		}
		if err != nil {
			m.fault("the pattern %.200q: %w", pattern, err)
		}
		out[re] = of[pattern]
	}
	s["patternProperties"] = out
}
