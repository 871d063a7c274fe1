package source

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatWasProbablyTypedIsSaid of YAML that does not read, and a key that is a slip is the one
// fault, not also that the key which was meant is missing.
func TestWhatWasProbablyTypedIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"world: w\nreducers:\n\ta: 1\n": "3:1: is not YAML: a tab: YAML is indented with spaces",
		"world: @w\n":                   "1:8: is not YAML: a text that begins with @, ` or % has to be in quotes",
		"world: a: b\n":                 "has to be in quotes",
		"world: w\nreducer: {a: {engine: starlark, source: a}}\n": "world.yaml:2:1: unknown key \"reducer\": did you mean \"reducers\"?",
	} {
		_, err := load(loadingFiles(map[string]string{"world.yaml": text}), "world.yaml")
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "at least one reducer")
	}
}
