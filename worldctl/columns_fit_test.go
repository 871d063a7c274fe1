package worldctl

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/serve/owner"
)

// printed is what is printed on a terminal so wide; 0: it is none.
func printed(t *testing.T, width int, show func(*cli)) string {
	t.Helper()
	var out bytes.Buffer
	c := &cli{stdout: bufio.NewWriter(&out), origin: owner.Origin{Width: width, Plain: true}}
	show(c)
	require.NoError(t, c.stdout.Flush())
	return out.String()
}

// TestListsFitTheTerminal: in a box where there is room, below each line where there is none, and
// unbounded where there is no terminal. The reason is last, and all of it is there.
func TestListsFitTheTerminal(t *testing.T) {
	key, reason := strings.Repeat("9f", 6), strings.Repeat("nobody can tell what it had done; ", 10)
	show := func(c *cli) {
		c.rows([]table.Row{{"key", "cell", "kind", "why"}, {key, "desk/A-1", "refund.pay", reason}, {key, "desk/" + strings.Repeat("語", 12), "x", ""}})
	}
	for _, width := range []int{20, 40, 60, 80, 120, 200} {
		shown := printed(t, width, show)
		for line := range strings.Lines(shown) {
			require.LessOrEqual(t, text.StringWidth(strings.TrimRight(line, "\n")), width, "%s", shown)
		}
		told := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "\n", " ").Replace(shown)), " ")
		require.Equal(t, 10, strings.Count(strings.ReplaceAll(told, " ", ""), "nobodycantellwhatithaddone;"), "%s", shown)
		require.Contains(t, told, key)
		require.Greater(t, strings.Index(told, "nobody"), strings.Index(told, "refund.pay"))
	}
	require.Contains(t, printed(t, 0, show), strings.TrimSpace(reason))
}

// TestFactsFitTheTerminal, and what is copied as a word stays one.
func TestFactsFitTheTerminal(t *testing.T) {
	hash, reason := strings.Repeat("9f", 32), strings.Repeat("nobody can tell; ", 10)
	out := printed(t, 80, func(c *cli) {
		c.facts([2]any{"key", hash}, [2]any{"external key", "x:" + hash + hash}, [2]any{"why", reason})
	})
	require.Contains(t, out, hash+"\n")
	require.Contains(t, out, "x:"+hash+hash+"\n")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "nobody") {
			require.LessOrEqual(t, len(line), 81)
		}
	}
	require.Contains(t, printed(t, 80, func(c *cli) { c.facts([2]any{"why", reason}) }), "│")
}

func TestWhatIsWrappedIsAllThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab  語é\n"))).Draw(t, "text")
		most := rapid.IntRange(2, 12).Draw(t, "width")
		got := wrapped(s, most)
		for line := range strings.SplitSeq(got, "\n") {
			require.LessOrEqual(t, text.StringWidth(line), most)
		}
		bare := strings.NewReplacer(" ", "", "\n", "")
		require.Equal(t, bare.Replace(s), bare.Replace(got))
	})
}
