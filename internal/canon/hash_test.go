package canon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSumsOfPartsAreSumsOfTheWhole hashes short and long data behind a head.
func TestSumsOfPartsAreSumsOfTheWhole(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 1024, 100_000} {
		data := make([]byte, n)
		require.Equal(t, Sum(append([]byte("head"), data...)), SumBehind([]byte("head"), data), n)
	}
}
