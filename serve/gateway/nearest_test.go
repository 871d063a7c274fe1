package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/gateway"
)

// TestDifferencesAreNamed in order, and no more of them than are asked for.
func TestDifferencesAreNamed(t *testing.T) {
	a, b := []byte(`{"a":1,"b":[1,{"x":1,"y":2},3],"e":{}}`), []byte(`{"a":1,"b":[2,{"x":1,"y":3}],"d":4,"e":[]}`)
	all := []string{"/b/0", "/b/1/y", "/b/2", "/d", "/e"}
	require.Equal(t, all, gateway.Differences(a, b, 9))
	for n := 1; n < len(all); n++ {
		require.Equal(t, all[:n], gateway.Differences(a, b, n))
	}
	require.Empty(t, gateway.Differences(a, a, 1))
}
