package worldctl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongFactsHaveNoBox: a state may have a text of megabytes, and each line of a box would be
// as long as that.
func TestLongFactsHaveNoBox(t *testing.T) {
	shown := func(value string) string {
		return shownBy(func(c *cli) {
			c.facts([2]any{"cell", "agent/ada"}, [2]any{"at", 7}, [2]any{"state", value})
		})
	}
	require.Contains(t, shown(strings.Repeat("x", boxColumns)), "│ at    │ 7 ")
	long := `  "text": "` + strings.Repeat("x", boxColumns)
	require.Equal(t, "cell   agent/ada\nat     7\nstate  {\n       "+long+"\n\n       }\n", shown("{\n"+long+"\n\n}"))
}
