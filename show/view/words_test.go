package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/show/view"
)

// What somebody sent may be quoted in an error, and be as large as a body may.
func TestWhatAnErrorQuotesIsBounded(t *testing.T) {
	const huge = 1_800_000
	short := `data.customer: "ann" is not "bob"`
	require.Equal(t, short, view.Bounded(short))
	text := view.Bounded(`"` + strings.Repeat(`é"`[:2], huge/2) + `" is no name: want "a" or "b"`)
	require.Less(t, len(text), 300)
	require.True(t, strings.HasSuffix(text, `(1800000 bytes) is no name: want "a" or "b"`), text)
	text = view.Bounded("first\n" + strings.Repeat("x", huge) + " is wrong\nlast " + strings.Repeat(`"`, 3))
	require.Less(t, len(text), 4_100)
	require.True(t, strings.HasPrefix(text, "first\nxx"))
	require.Contains(t, text, " (1800009 bytes) …")
	require.Contains(t, text, " is wrong\nlast ")
	text = view.Bounded(`"` + strings.Repeat(`\\`, huge) + `"`)
	require.Less(t, len(text), 300)
	many := strings.Repeat("a fault of its own\n", 10_000)
	require.Equal(t, many, view.Bounded(many), "all of them stay")
}
