package host

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCutLeavesNoPartOfASecret cuts what a program writes at every byte of a secret,
// however it is written and in whatever pieces.
func TestCutLeavesNoPartOfASecret(t *testing.T) {
	const value = "canary-0123/456789"
	s := secretsOf(map[string]string{"a": value, "huge": strings.Repeat("Z", maxSecretBytes)})
	for _, name := range []string{"a", "huge"} {
		_, err := s.resolve("secret://" + name)
		require.NoError(t, err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, written := range []string{value, strings.ReplaceAll(value, "/", `\/`), strings.ReplaceAll(value, "c", `\\u0063`)} {
		for after := range 64 + 2*len(written) {
			tail := Setup{secrets: s}.Tail(64)
			all := strings.Repeat("x", 100) + written + written + strings.Repeat("y", after)
			for len(all) > 0 {
				n := 1 + random.IntN(len(all))
				_, err := fmt.Fprint(tail, all[:n])
				require.NoError(t, err)
				all = all[n:]
			}
			for _, part := range []string{"cana", "nary", "0123", "4567", "6789", `u0063`} {
				require.NotContains(t, tail.String(), part, "%s and %d", written, after)
			}
			require.True(t, strings.HasSuffix(tail.String(), strings.Repeat("y", min(after, 64))))
		}
	}

	for _, written := range []string{value, strings.ReplaceAll(value, "/", `\/`), strings.ReplaceAll(value, "c", `\\u0063`)} {
		for before := range 70 {
			head := Setup{secrets: s}.Head([]byte(strings.Repeat("y", before)+written+strings.Repeat("z", 100)), 64)
			require.LessOrEqual(t, len(head), 64)
			if !strings.Contains(head, written) { // as a whole it is found later
				require.Equal(t, strings.Repeat("y", min(before, 64)), head)
			}
		}
	}
	require.Equal(t, "é", Setup{}.Head([]byte("éé"), 3))

	tail := Setup{secrets: s}.Tail(64)
	for range 3 * maxFormBytes / maxSecretBytes { // more than is kept, so that it begins within one
		fmt.Fprint(tail, "-"+strings.Repeat("Z", maxSecretBytes-7))
		fmt.Fprint(tail, strings.Repeat("Z", 7))
	}
	require.NotContains(t, tail.String(), "ZZZZ")
	require.LessOrEqual(t, cap(tail.kept), 4*(maxFormBytes+64))
}
