package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoDoesThingsSideBySideIsFound, by itself or by a helper, however deep; and nobody else: no test
// that is named by another one, and none of another module. The others are all that do not run with the
// detector, or do less with it, or do not do things side by side in another package.
func TestWhoDoesThingsSideBySideIsFound(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("a/x_test.go", `package a

func TestMain(m *testing.M) { go main() }

func TestItself(t *testing.T) { testrace.Here(t) }

func TestStarts(t *testing.T) { go func() {}() }

func TestGroups(t *testing.T) { wg.Go(nil) }

func helper(t *testing.T) { testrace.Here(t) }

func deeper(t *testing.T) { helper(t) }

func TestByAHelper(t *testing.T) { t.Run("deep", func(t *testing.T) { deeper(t) }) }

func TestScripts(t *testing.T) { testrace.Also(t) }

func TestLives(t *testing.T) { go lives() }

func lives() { fault.Seeds(3) }

func TestElsewhere(t *testing.T) { go f() }

func TestSilent(t *testing.T) {}

func TestOfOthers(t *testing.T) { t.Run("itself", TestItself) }
`)
	write("b/x_test.go", "package b\n\nfunc TestSilent(t *testing.T) {}\n\nfunc TestElsewhere(t *testing.T) {}\n")
	write("c/go.mod", "module c\n")
	write("c/x_test.go", "package c\n\nfunc TestOther(t *testing.T) { go f() }\n")
	all, err := tests(root)
	require.NoError(t, err)
	require.Equal(t, []string{"test", "-race", "-run", "^(TestByAHelper|TestElsewhere|TestGroups|TestItself|TestLives|TestScripts|TestStarts)$", "-v", "./a"}, all.withDetector([]string{"-v"}))
	require.Equal(t, []string{"test", "-skip", "^(TestByAHelper|TestGroups|TestItself|TestStarts)$", "-v", "./..."}, all.others([]string{"-v", "./..."}))
}
