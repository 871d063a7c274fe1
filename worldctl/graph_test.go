package worldctl

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// TestLabelsSayWhatTheWorldSays reads escaped text as Mermaid and Graphviz do.
func TestLabelsSayWhatTheWorldSays(t *testing.T) {
	number := regexp.MustCompile(`#(\d+);`)
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.OneOf(rapid.SampledFrom([]string{
			"#35;", "#quot;", "#", "&lt;", "&#34;", "&", `\N`, `\`, `"`, "`", "style:", ";", "agent/", " ", "]",
		}), rapid.String())
		text := strings.Join(rapid.SliceOf(parts).Draw(rt, "text"), "")
		mermaid := escapeMermaid(text)
		require.NotContains(rt, mermaid, `"`)
		require.Equal(rt, text, number.ReplaceAllStringFunc(mermaid, func(s string) string {
			code, err := strconv.Atoi(s[1 : len(s)-1])
			require.NoError(rt, err)
			return string(rune(code))
		}))

		var dot strings.Builder
		escaped := false
		for _, r := range escapeDOT(text) {
			if !escaped && r == '\\' {
				escaped = true
				continue
			}
			require.True(rt, !escaped && r != '"' || escaped && (r == '"' || r == '\\'))
			dot.WriteRune(r)
			escaped = false
		}
		require.False(rt, escaped)
		require.Equal(rt, text, html.UnescapeString(dot.String()))
	})
}

// TestGraphIsBounded draws ever more of a graph: what is nearest comes first, and
// every line is between records that are drawn.
func TestGraphIsBounded(t *testing.T) {
	lw := eventful(t)
	j := recordsOf(lw)
	of, err := j.EntryAt("2")
	require.NoError(t, err)
	all, err := j.Graph(t.Context(), of, 0, 0)
	require.NoError(t, err)
	require.True(t, all.Whole)
	require.Greater(t, len(all.Nodes), 10)
	of, err = j.Entry(all.Nodes[5].ID)
	require.NoError(t, err)
	all, err = j.Graph(t.Context(), of, 0, 0)
	require.NoError(t, err)
	for most := range uint64(len(all.Nodes)) + 2 {
		g, err := j.Graph(t.Context(), of, 0, most)
		require.NoError(t, err)
		require.Equal(t, most == 0 || most >= uint64(len(all.Nodes)), g.Whole)
		drawn := make(map[journal.Seq]bool)
		for i, n := range g.Nodes {
			drawn[n.ID] = true
			require.True(t, i == 0 || g.Nodes[i-1].ID < n.ID)
		}
		require.True(t, drawn[of.ID])
		require.Len(t, g.Edges, len(g.Nodes)-1)
		for _, e := range g.Edges {
			require.True(t, drawn[e.From] && drawn[e.To])
		}
	}
	for links := uint64(1); links < 5; links++ {
		g, err := j.Graph(t.Context(), of, links, 0)
		require.NoError(t, err)
		require.True(t, g.Whole)
		require.Subset(t, all.Edges, g.Edges)
	}
}
