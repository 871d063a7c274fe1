package relay

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzMembers holds what is found in JSON against what encoding/json decodes.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{"a":"b","c":[1,{"d":"\"}"}],"e":null , "f" : -1.5e3}`, `[ "a\\" ,true,[],{}]`, `"\u00e9\n"`, `{"\"":{"a":[[]]}}`, ` {} `, `{`, `{"a"`, `{"a":`, `["`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var names []string
		var values []json.RawMessage
		for name, value := range members(raw) {
			names, values = append(names, name), append(values, value)
		}
		if !json.Valid(raw) || !utf8.Valid(raw) {
			return
		}
		object, list := make(map[string]json.RawMessage), []json.RawMessage(nil)
		switch {
		case json.Unmarshal(raw, &object) == nil && len(object) > 0:
			found := make(map[string]json.RawMessage)
			for i, name := range names {
				found[name] = values[i]
			}
			require.Equal(t, object, found)
		case json.Unmarshal(raw, &list) == nil && len(list) > 0:
			require.Equal(t, list, values)
		default:
			require.Empty(t, values)
		}
		var text string
		if json.Unmarshal(raw, &text) == nil && raw[0] == '"' && raw[len(raw)-1] == '"' {
			got, ok := textIn(raw)
			require.True(t, ok)
			require.Equal(t, text, got)
		}
	})
}

// FuzzValid holds what Read takes as JSON against what encoding/json does, which decodes it afterwards.
func FuzzValid(f *testing.F) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, text := range []string{
		`{"a":"\ud800"}`, "{\"a\":\"\x01\"}", `{"a":01}`, `{"a":1,}`, `[1 2]`, `"\u12g4"`, `-`, `1e5`, "\"\xff\"", nested(maxDepth), nested(maxDepth + 1), `]]` + nested(maxDepth),
		`{"` + nested(maxDepth) + `\"":` + nested(maxDepth-1) + `}`, "", " ", "\xef\xbb\xbf{}", "{} {}", "{}\x00", "\v{}", `{,}`, `"\`, "\"\x7f\u2028\"", `{"a":1,"a":"\u0000"}`, `[1e+,1.,.5,+1]`, `-0.0E-9`, `nulll`, "\"long and then\ta tab\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		require.Equal(t, json.Valid(raw), valid(raw), "%q", raw)
	})
}

// TestKeysTellValuesApart holds that no two values have one key, whatever lies where in them, and that members have no order.
func TestKeysTellValuesApart(t *testing.T) {
	long := strings.Repeat("x", 600)
	values := []any{
		nil, "", "null", "a", "1", json.Number("1"), true, "true",
		[]any{},
		[]any{"a"},
		[]any{"a", "b"},
		[]any{"ab"},
		[]any{[]any{"a"}, "b"},
		[]any{"a", []any{"b"}},
		[]any{[]any{"a", "b"}},
		map[string]any{},
		map[string]any{"a": "b"},
		map[string]any{"a": nil},
		map[string]any{"ab": ""},
		[]string{"s1:a"},
		long, long + "x", long + "y",
	}
	known := make(map[string]any)
	for _, v := range values {
		key := keyOf([]any{v})
		require.NotContains(t, known, key, "%v has the key of %v", v, known[key])
		known[key] = v
	}
	require.Equal(t, keyOf([]any{canonical([]byte(`{"a":1,"b":[2]}`))}), keyOf([]any{canonical([]byte(` {"b" : [2], "a":1}`))}))
}
