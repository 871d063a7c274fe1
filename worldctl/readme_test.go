package worldctl

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeShowsWhatTheTownPrints types the README's first commands, and compares
// what anybody must get: ids, keys and the chain root are a world's own.
func TestReadmeShowsWhatTheTownPrints(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run")
	var got struct {
		facts
		Records int `json:"records"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "verify", "-o", "json"), &got))
	shown := func(what string) string {
		m := regexp.MustCompile(`(?m)^    ` + what + ` +([0-9a-f]+)`).FindSubmatch(readme)
		require.NotNil(t, m, what)
		return string(m[1])
	}
	require.Equal(t, strconv.Itoa(got.Records), shown("records"))
	require.Equal(t, got.ExecutionHash[:8], shown("execution hash"))
	require.Equal(t, got.StateRoot[:8], shown("state root"))
}
