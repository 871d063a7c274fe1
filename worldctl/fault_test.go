package worldctl

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/snapshot"
)

// TestNoPackageStandsInAnError that a person reads: what is behind the names of packages
// does.
func TestNoPackageStandsInAnError(t *testing.T) {
	for text, want := range map[error]string{
		fmt.Errorf("world: %w: p1", governance.ErrNoProposal):                        "there is no such proposal: p1",
		fmt.Errorf("town: %w", snapshot.ErrNoSnapshot):                               "town: no such snapshot",
		errors.New("world: store: open a.world: no"):                                 "open a.world: no",
		errors.New("a/world.yaml:3:1: world: the name is missing"):                   "a/world.yaml:3:1: world: the name is missing",
		errors.New(`the key "world: x" is unknown`):                                  `the key "world: x" is unknown`,
		errors.New("record #9: journal: not in the journal"):                         "record #9: not in the journal",
		errors.New("an underworld: none"):                                            "an underworld: none",
		fmt.Errorf("verification failed: x: %w", errors.New("bundle: no gzip file")): "verification failed: x: no gzip file",
	} {
		require.Equal(t, []string{want}, lines(text))
	}
}

// TestPackagesThatSpeakAreAllOfThem finds the errors that begin with their package's name.
func TestPackagesThatSpeakAreAllOfThem(t *testing.T) {
	known := make(map[string]bool)
	for _, name := range packagesThatSpeak() {
		known[name] = true
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../tools/") || strings.HasPrefix(path, "../world/worldtest/") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			made, ok := call.Fun.(*ast.SelectorExpr)
			literal, text := call.Args[0].(*ast.BasicLit)
			if !ok || !text || made.Sel.Name != "New" && made.Sel.Name != "Errorf" {
				return true
			}
			said, _ := strconv.Unquote(literal.Value)
			word, _, found := strings.Cut(said, ": ")
			if found && word == f.Name.Name {
				require.True(t, known[word], "%s says %q: add its package to packagesThatSpeak", path, said)
			}
			return true
		})
		return nil
	}))
}

// TestAnErrorOfManyLinesIsBounded, as that of a file in which all is wrong, of which there are
// hundreds of thousands.
func TestAnErrorOfManyLinesIsBounded(t *testing.T) {
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "a.yaml:%d:1: unknown\na.yaml:%d:1: unknown\n", i, i)
	}
	printed := lines(errors.New(text.String()))
	require.Len(t, printed, maxLines+1)
	require.Equal(t, "and 49800 more lines", printed[maxLines])
}
