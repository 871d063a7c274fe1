package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// TestKeysAreOfTheJSONAlone holds that keys are those that recorded sessions have: of what Marshal writes.
func TestKeysAreOfTheJSONAlone(t *testing.T) {
	of := []any{"<é>", 1, nil, map[string]any{"b": []any{}, "a": "\n"}}
	text, err := json.Marshal(of)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	require.Equal(t, hex.EncodeToString(sum[:16]), keyOf(of))
}
