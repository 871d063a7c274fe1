package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/schema"
)

func compile(t require.TestingT, source string) *schema.Schema {
	s, err := schema.Compile([]byte(source))
	require.NoError(t, err, source)
	return s
}

func check(t require.TestingT, source, value string) *schema.Fault {
	f, err := compile(t, source).Check([]byte(value), 100_000, nil)
	require.NoError(t, err)
	return f
}

// doubling returns a schema of 40 definitions, each of which evaluates the next one twice.
func doubling(twice string) string {
	const n = 40
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(twice, "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)))
	}
	fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, n)
	return b.String()
}

// deep returns n objects, each within the one before.
func deep(n int) string { return strings.Repeat(`{"a":`, n) + `{}` + strings.Repeat("}", n) }

func hostile() map[string][2]string {
	all := map[string][2]string{
		"allOf":      {doubling(`{"allOf":[NEXT,NEXT]}`), `{}`},
		"anyOf":      {doubling(`{"anyOf":[{"allOf":[NEXT,false]},{"allOf":[NEXT,true]}]}`), `{}`},
		"oneOf":      {doubling(`{"oneOf":[{"allOf":[NEXT,false]},NEXT]}`), `{}`},
		"not":        {doubling(`{"not":{"allOf":[NEXT,{"not":NEXT}]}}`), `{}`},
		"if":         {doubling(`{"if":NEXT,"then":NEXT,"else":NEXT}`), `{}`},
		"dependent":  {doubling(`{"dependentSchemas":{"a":NEXT,"b":NEXT}}`), `{"a":1,"b":1}`},
		"recursion":  {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, deep(60)},
		"additional": {`{"patternProperties":{"a":{"$ref":"#"},".":{"$ref":"#"}}}`, deep(60)},
		"items":      {`{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, strings.Repeat("[", 60) + strings.Repeat("]", 60)},
		"contains":   {`{"contains":{"$ref":"#"},"minContains":0,"items":{"$ref":"#"}}`, strings.Repeat("[", 60) + strings.Repeat("]", 60)},
		"names":      {`{"additionalProperties":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"},"allOf":[{"additionalProperties":{"$ref":"#"}}]}`, deep(60)},
		"pattern":    {`{"items":{"pattern":"(a{500}|b{400}|.{30,90})+$"}}`, `[` + strings.Repeat(`"`+strings.Repeat("a", 1000)+`x",`, 100) + `""]`},
		"regex":      {`{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"` + strings.Repeat("a{999}", 20_000) + `"`},
		"multiple":   {`{"items":{"multipleOf":1e-4000}}`, `[` + strings.Repeat(strings.Repeat("7", 4000)+`,`, 200) + `1]`},
		"enum":       {`{"items":{"enum":[` + strings.Repeat(`{"a":1},`, 2000) + `{"b":1}]}}`, `[` + strings.Repeat(`{"b":1},`, 2000) + `1]`},
	}
	return all
}

func TestHostileSchemasStayWithinTheirSteps(t *testing.T) {
	for name, x := range hostile() {
		t.Run(name, func(t *testing.T) {
			f := check(t, x[0], x[1])
			require.NotNil(t, f)
			require.True(t, f.Exhausted, f.Rule)
			again := check(t, x[0], x[1])
			require.Equal(t, f, again, "the same place and words")
		})
	}
}

func TestSchemasThatGrowAreNamed(t *testing.T) {
	for _, name := range []string{"allOf", "anyOf", "oneOf", "not", "if", "dependent", "recursion", "additional", "items", "contains", "names"} {
		require.NotZero(t, compile(t, hostile()[name][0]).Grows(64), name)
	}
	for _, honest := range []string{
		`true`,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
		`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`,
		`{"anyOf":[{"properties":{"left":{"$ref":"#"}}},{"properties":{"right":{"$ref":"#"}}}]}`,
		`{"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"}}`,
		`{"prefixItems":[{"$ref":"#"},{"$ref":"#"}],"items":{"$ref":"#"}}`,
	} {
		require.Zero(t, compile(t, honest).Grows(64), honest)
	}
}

func TestSchemasThatNothingCanBeHeldToAreRefused(t *testing.T) {
	for _, source := range []string{
		`{"$ref":"#"}`,
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`,
		`{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`,
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		`{"$ref":"other.json"}`,
		`{"minimum":1e999999}`,
		`{"multipleOf":1e-999999999999999999999}`,
		`{"const":` + strings.Repeat("7", 6000) + `}`,
		`{"type":"nothing"}`,
		`{"pattern":"("}`,
		`{"pattern":"` + strings.Repeat("a{1000}", 1000) + `"}`,
		`{"pattern":"` + strings.Repeat("a", 1<<15) + `"}`,
		`{"allOf":[` + strings.Repeat("{},", 5000) + `{}]}`,
		`{"$ref":"#/enum/0","enum":[{"allOf":[` + strings.Repeat("true,", 5000) + `true]}]}`,
		`{"items":{"properties":{"a":{"anyOf":[` + strings.Repeat("true,", 5000) + `true]}}}}`,
		`{`,
		`"` + strings.Repeat("x", 5<<20) + `"`,
	} {
		_, err := schema.Compile([]byte(source))
		require.Error(t, err, "%.100s", source)
	}
	compile(t, `{"allOf":[`+strings.Repeat("{},", 4998)+`{}]}`)
	compile(t, `{"properties":{"a":{"const":true},"b":{"enum":[`+strings.Repeat("true,", 20000)+`[false]]}}}`) // which are no schemas
	compile(t, `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"items":{"$ref":"#"},"allOf":[{"$ref":"#/$defs/b"}]},"b":{}}}`)
}

func TestCheckEndsWithWhoeverWaits(t *testing.T) {
	errEnded := errors.New("nobody waits")
	x := hostile()["allOf"]
	f, err := compile(t, x[0]).Check([]byte(x[1]), 1<<62, func() error { return errEnded })
	require.ErrorIs(t, err, errEnded)
	require.Nil(t, f)
}

func TestFaultIsTheFirstByItsPlace(t *testing.T) {
	for _, x := range []struct{ source, value, place, rule string }{
		{`{"properties":{"b":{"type":"string"},"a":{"minimum":3}}}`, `{"b":1,"a":2}`, "a", "minimum: got 2, want 3"},
		{`{"required":["x"],"properties":{"a":{"minimum":3}}}`, `{"a":2}`, "", "missing x"},
		{`{"dependentRequired":{"b":["y"],"a":["x"]}}`, `{"a":1,"b":1}`, "", "properties 'x' required, if 'a' exists"},
		{`{"additionalProperties":false}`, `{"b":1,"a":1}`, "", "additional properties 'a', 'b' not allowed"},
		{`{"anyOf":[{"items":{"type":"string"}},{"items":{"type":"null"}}]}`, `["x",1]`, "0", "got string, want null"},
	} {
		f := check(t, x.source, x.value)
		require.NotNil(t, f)
		require.Equal(t, x.place, strings.Join(f.Place, "/"))
		require.Equal(t, x.rule, f.Rule)
	}
}

// values draws small values, whose members and items schemas speak of.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 7
		if depth == 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.IntRange(-3, 3).Draw(t, "int")
		case 3:
			return rapid.SampledFrom([]float64{0.5, 1, 2.5, -1}).Draw(t, "float")
		case 4:
			return rapid.SampledFrom([]string{"", "a", "ab", "b", "aaa", "é"}).Draw(t, "text")
		case 5:
			return rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "items")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "ab", "c"}), values(depth-1), 0, 3).Draw(t, "members")
	})
}

// schemas draws schemas of a draft.
func schemas(depth int, draft int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 {
			if draft == 4 {
				return map[string]any{"type": rapid.SampledFrom([]string{"integer", "string"}).Draw(t, "type")}
			}
			return rapid.SampledFrom([]any{true, false, map[string]any{"type": "integer"}, map[string]any{"type": "string"}}).Draw(t, "leaf")
		}
		sub := schemas(depth-1, draft)
		one := func(name string) any { return sub.Draw(t, name) }
		some := func(name string) any { return rapid.SliceOfN(sub, 1, 3).Draw(t, name) }
		named := func(name string, keys ...string) any {
			return rapid.MapOfN(rapid.SampledFrom(keys), sub, 1, 2).Draw(t, name)
		}
		texts := func(name string) any {
			return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID[string]).Draw(t, name)
		}
		number := func(name string) any { return rapid.IntRange(0, 3).Draw(t, name) }
		of := map[string]func(string) any{
			"type": func(n string) any {
				return rapid.SampledFrom([]string{"integer", "number", "string", "array", "object", "null", "boolean"}).Draw(t, n)
			},
			"enum":  func(n string) any { return rapid.SliceOfN(values(1), 1, 3).Draw(t, n) },
			"allOf": some, "anyOf": some, "oneOf": some, "not": one,
			"properties":           func(n string) any { return named(n, "a", "b", "ab") },
			"patternProperties":    func(n string) any { return named(n, "a", "^b", "b$") },
			"additionalProperties": one, "required": texts, "minProperties": number, "maxProperties": number,
			"minItems": number, "maxItems": number, "uniqueItems": func(string) any { return true },
			"minLength": number, "maxLength": number, "pattern": func(n string) any { return rapid.SampledFrom([]string{"a", "^b", "a+$"}).Draw(t, n) },
			"minimum": number, "maximum": number, "multipleOf": func(n string) any { return rapid.SampledFrom([]float64{0.5, 2, 3}).Draw(t, n) },
		}
		if draft >= 6 {
			of["const"], of["contains"], of["propertyNames"] = func(n string) any { return values(1).Draw(t, n) }, one, one
			of["exclusiveMinimum"], of["exclusiveMaximum"] = number, number
		}
		if draft >= 7 {
			of["if"], of["then"], of["else"] = one, one, one
		}
		if draft >= 2019 {
			of["minContains"], of["maxContains"] = number, number
			of["dependentSchemas"] = func(n string) any { return named(n, "a", "b") }
			of["dependentRequired"] = func(n string) any { return map[string]any{"a": texts(n)} }
			of["unevaluatedProperties"], of["unevaluatedItems"] = one, one
		} else {
			of["dependencies"] = func(n string) any { return map[string]any{"a": texts(n), "b": one(n)} }
		}
		if draft >= 2020 {
			of["prefixItems"], of["items"] = some, one
		} else {
			of["items"] = rapid.SampledFrom([]func(string) any{one, some}).Draw(t, "items")
			of["additionalItems"] = one
		}
		out := make(map[string]any)
		keys := make([]string, 0, len(of))
		for key := range of {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 1, 5).Draw(t, "keys") {
			out[key] = of[key](key)
		}
		return out
	})
}

// TestVerdictIsThatOfTheLibrary holds the evaluation here to the one of the library that
// reads the schemas.
func TestVerdictIsThatOfTheLibrary(t *testing.T) {
	drafts := map[int]string{
		4: "http://json-schema.org/draft-04/schema#", 6: "http://json-schema.org/draft-06/schema#", 7: "http://json-schema.org/draft-07/schema#",
		2019: "https://json-schema.org/draft/2019-09/schema", 2020: "https://json-schema.org/draft/2020-12/schema",
	}
	rapid.Check(t, func(t *rapid.T) {
		draft := rapid.SampledFrom([]int{4, 6, 7, 2019, 2020}).Draw(t, "draft")
		doc, ok := schemas(3, draft).Draw(t, "schema").(map[string]any)
		if !ok {
			return
		}
		doc["$schema"] = drafts[draft]
		source, err := json.Marshal(doc)
		require.NoError(t, err)
		parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(source)))
		require.NoError(t, err)
		c := jsonschema.NewCompiler()
		require.NoError(t, c.AddResource("world:///x", parsed))
		library, err := c.Compile("world:///x")
		ours, refused := schema.Compile(source)
		require.Equal(t, err == nil, refused == nil, "%s: the library says %v, we %v", source, err, refused)
		if err != nil {
			return
		}
		for range 5 {
			value, err := json.Marshal(values(3).Draw(t, "value"))
			require.NoError(t, err)
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
			require.NoError(t, err)
			want := library.Validate(v)
			got, err := ours.Check(value, schema.Steps(len(value)), nil)
			require.NoError(t, err)
			require.Equal(t, want == nil, got == nil, "%s against %s: the library says %v, we %v", value, source, want, got)
		}
	})
}

func FuzzCompile(f *testing.F) {
	for _, x := range hostile() {
		f.Add([]byte(x[0]), []byte(x[1]))
	}
	f.Fuzz(func(t *testing.T, source, value []byte) {
		s, err := schema.Compile(source)
		if err != nil || !json.Valid(value) {
			return
		}
		first, err := s.Check(value, 10_000, nil)
		if err != nil {
			return
		}
		again, err := s.Check(value, 10_000, nil)
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}
