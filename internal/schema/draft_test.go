package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/schema"
)

func modern(t *testing.T, text string) (string, error) {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	before := fmt.Sprint(v)
	got, err := schema.Modernize(v)
	require.Equal(t, before, fmt.Sprint(v), "it is the caller's")
	if err != nil {
		return "", err
	}
	out, err := json.Marshal(got)
	require.NoError(t, err)
	return string(out), nil
}

func TestSchemasOfOldDraftsMeanTheSame(t *testing.T) {
	const d3, d4, d7 = `"$schema":"http://json-schema.org/draft-03/schema#",`, `"$schema":"http://json-schema.org/draft-04/schema#",`, `"$schema":"http://json-schema.org/draft-07/schema",`
	for _, of := range []struct{ old, want, takes, refuses string }{
		{`{"properties":{"a":{"type":"string","required":true},"b":{"required":false}}}`, `{"properties":{"a":{"type":"string"},"b":{}},"required":["a"]}`, `{"a":"x"}`, `{}`},
		{`{"minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, `{"exclusiveMinimum":0,"maximum":9}`, `9`, `0`},
		{
			`{` + d4 + `"id":"q","properties":{"id":{"type":"string"},"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`,
			`{"$id":"q","properties":{"id":{"type":"string"},"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`, `{"a":1}`, `{"a":"1"}`,
		},
		{`{` + d3 + `"divisibleBy":3,"type":"any"}`, `{"multipleOf":3}`, `9`, `4`},
		{`{` + d3 + `"type":["string",{"minimum":5}]}`, `{"allOf":[{"anyOf":[{"minimum":5},{"type":["string"]}]}]}`, `5`, `4`},
		{`{` + d3 + `"disallow":"string","extends":{"minimum":5}}`, `{"allOf":[{"not":{"type":"string"}},{"minimum":5}]}`, `5`, `"x"`},
		{`{"type":"any"}`, `{}`, `1`, ``},
		{`{"items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`, `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `["a",1]`, `["a","b"]`},
		{`{"dependencies":{"a":["b"],"c":{"required":["d"]},"e":"f"}}`, `{"dependentRequired":{"a":["b"],"e":["f"]},"dependentSchemas":{"c":{"required":["d"]}}}`, `{"a":1,"b":2}`, `{"c":1}`},
		{`{` + d7 + `"$ref":"#/definitions/a","type":"string","definitions":{"a":{"type":"integer"}}}`, `{"$ref":"#/definitions/a","definitions":{"a":{"type":"integer"}}}`, `1`, `"x"`},
		{`{"$ref":"#/$defs/a","minimum":5,"$defs":{"a":{"type":"integer"}}}`, `{"$ref":"#/$defs/a","minimum":5,"$defs":{"a":{"type":"integer"}}}`, `5`, `1`},
		{`{` + d7 + `"definitions":{"a":{"$id":"#a","type":"integer"}},"properties":{"x":{"$ref":"#a"}}}`, `{"definitions":{"a":{"$anchor":"a","type":"integer"}},"properties":{"x":{"$ref":"#a"}}}`, `{"x":1}`, `{"x":"1"}`},
		{`{"properties":[],"required":null,"additionalProperties":[]}`, `{"properties":{},"additionalProperties":{}}`, `{"a":1}`, `` /* as PHP and Go write it */},
		{`{"properties":{"pattern":{"enum":["(?!a)",{"required":true}]},"const":{"const":null}}}`, `{"properties":{"pattern":{"enum":["(?!a)",{"required":true}]},"const":{"const":null}}}`, `{"const":null}`, `{"const":1}`},
		{`{"allOf":[{"minLength":3}],"pattern":"^(?!a)(?=.*b).+$"}`, "{\"allOf\":[{\"minLength\":3},{\"not\":{\"type\":\"string\",\"pattern\":\"^(?:a)\"}},{\"pattern\":\"^(?:[^\\\\n\\\\r\u2028\u2029]*b)\"}],\"pattern\":\"^[^\\\\n\\\\r\u2028\u2029]+$\"}", `"cab"`, `"abc"`},
		{`{"pattern":"^a+(?<!aa)$"}`, `{"allOf":[{"not":{"type":"string","pattern":"(?:aa)$"}}],"pattern":"^a+$"}`, `"a"`, `"aa"`},
		{`{"patternProperties":{"^\\d{2}$":{"type":"integer"}},"additionalProperties":false}`, `{"patternProperties":{"^\\d{2}$":{"type":"integer"}},"additionalProperties":false}`, `{"12":1}`, `{"1":1}`},
		{`true`, `{}`, `1`, ``},
	} {
		got, err := modern(t, of.old)
		require.NoError(t, err, of.old)
		require.JSONEq(t, of.want, got)
		require.Nil(t, check(t, got, of.takes), got)
		if of.refuses != "" {
			require.NotNil(t, check(t, got, of.refuses), got)
		}
	}
}

func TestSchemasThatCannotBeWrittenAnewAreRefused(t *testing.T) {
	for text, why := range map[string]string{
		`false`: "nothing is allowed", `null`: "no JSON object", `"x"`: "no JSON object", `[1]`: "no JSON object",
		`{"pattern":"a(?=b)"}`: "looks ahead", `{"pattern":"^(?!a)b|c"}`: "looks ahead", `{"pattern":"(?<=a)b"}`: "looks ahead",
		`{"properties":{"p":{"pattern":"(a)\\1"}}}`: "refers back", `{"patternProperties":{"^(?!a)":{}}}`: "looks ahead",
		`{"properties":{"a":{"required":true}},"required":"b"}`: "required is no list", `{"pattern":"(?R)"}`: "a group",
	} {
		_, err := modern(t, text)
		require.ErrorContains(t, err, why, text)
	}
}

// Each is told to match and not to match, as node does with the flag u, or without it what that refuses.
func TestPatternsOfECMAMeanTheSame(t *testing.T) {
	for pattern, of := range map[string][2]string{
		`^\s$`: {"\u00a0", "x"}, `^[\s-]$`: {"\ufeff", "x"}, `^\S$`: {"x", "\u3000"}, `^[\S]$`: {"x", "\u2028"}, `^[^\S]$`: {"\u2029", "x"},
		`^.$`: {"x", "\u2028"}, `^\u0041\x42\cJ\0$`: {"AB\n\x00", "AB"}, `^\u{1F600}\ud83d\ude01$`: {"😀😁", "😀"}, `^\/\-\.$`: {"/-.", "/-x"},
		`^[[]$`: {"[", "]"}, `^[^]$`: {"\n", ""}, `^x[]$|^y$`: {"y", "x"}, `^[\b]$`: {"\b", "b"}, `^é\b`: {"éa", "é"}, `^(?<year>\d{4})$`: {"2026", "x"},
		`^[\w-.]+$`: {"a-.", "é"}, `^[+--]$`: {",", "."}, `^\p{Lu}\P{L}$`: {"A1", "aA"}, `^\p{Script=Greek}+$`: {"αβ", "a"}, `^a{2}\{$`: {"aa{", "aa"},
		`^a{,2}$`: {"a{,2}", "a"}, `^}]$`: {"}]", "]"}, `^(?:a|b)*?$`: {"ab", "c"}, `^[a-z&&b]$`: {"&", "|"},
		`^[^\n\r]+$`: {"x", "\n"}, `^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`: {"a.b@c.de", "a..b@c.de"},
	} {
		source, err := json.Marshal(map[string]string{"pattern": pattern})
		require.NoError(t, err)
		got, err := modern(t, string(source))
		require.NoError(t, err, pattern)
		for i, text := range of {
			value, err := json.Marshal(text)
			require.NoError(t, err)
			require.Equal(t, i == 0, check(t, got, string(value)) == nil, "%s is %s, and %q", pattern, got, text)
		}
	}
}

func FuzzModernize(f *testing.F) {
	for _, text := range []string{`{"pattern":"^(?!a)[\\s-z]\\u{41}{2}$"}`, `{"type":["any",{}],"extends":[{}],"items":[],"required":true}`, `{"dependencies":{"a":"b"},"dependentRequired":{}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil || strings.Contains(fmt.Sprint(v), "required?") {
			t.Skip()
		}
		got, err := schema.Modernize(v)
		if err != nil {
			return
		}
		source, err := json.Marshal(got)
		require.NoError(t, err)
		require.NotContains(t, string(source), "required?", "it is of this package alone")
		_, _ = schema.Compile(source)
	})
}
