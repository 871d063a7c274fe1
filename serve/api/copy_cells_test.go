package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAMomentOfACellHoldsWhatIsNew: a long state that grows, with counters around it, is not in a copy
// again with each step.
func TestAMomentOfACellHoldsWhatIsNew(t *testing.T) {
	stood := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"state":{"asked":%d,"messages":["%s"],"tokens":%d},"at":0}`, n, n*n, strings.Repeat("many words, ", 10*n), n*1000)
	}
	last := ""
	for n := 1; n < 300; n++ {
		text, size := stood(n), 0
		rest, next := last, ""
		for _, e := range edits(last, text) {
			next += rest[:e.keep] + e.text
			rest = rest[e.keep+e.drop:]
			size += len(e.text)
		}
		require.Equal(t, text, next+rest)
		if n > 1 {
			require.Less(t, size, 200)
		}
		last = text
	}
}
