//go:build race

package testrace

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoSaysHereIsFound, by itself or by a helper, however deep; and nobody else: neither a test that
// names another one, nor what is no test.
func TestWhoSaysHereIsFound(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("x_test.go", []byte(`package x

func TestMain(m *testing.M) { testrace.Here(nil) }

func TestItself(t *testing.T) { testrace.Here(t) }

func helper(t *testing.T) { testrace.Here(t) }

func deeper(t *testing.T) { helper(t) }

func TestByAHelper(t *testing.T) { t.Run("deep", func(t *testing.T) { deeper(t) }) }

func TestSilent(t *testing.T) {}

func TestOfOthers(t *testing.T) { t.Run("itself", TestItself) }
`), 0o600))
	tests, err := who("Here")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"TestItself", "TestByAHelper"}, tests)
}
