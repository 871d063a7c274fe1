package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheDocumentListsEveryProblem: those of the table of faults, and those that the
// API itself finds. Every answer of the tests is held to the document besides.
func TestTheDocumentListsEveryProblem(t *testing.T) {
	doc, _ := document(t)
	var listed []string
	for _, name := range doc.Components.Schemas["Problem"].Value.Properties["type"].Value.Enum {
		listed = append(listed, name.(string))
	}
	require.True(t, slices.IsSorted(listed))
	require.Equal(t, append(problemsIn(t, "."), problemsIn(t, "../../show/view")...).sorted(), listed)
}

type problems []string

func (p problems) sorted() []string {
	slices.Sort(p)
	return slices.Compact(p)
}

// problemsIn returns what a package names as a problem: what its rows of faults hold,
// and what it fails with.
func problemsIn(t *testing.T, dir string) (names problems) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	add := func(e ast.Expr) {
		if s, ok := e.(*ast.BasicLit); ok && s.Kind == token.STRING && s.Value != `""` {
			name, err := strconv.Unquote(s.Value)
			require.NoError(t, err)
			names = append(names, "urn:worldkernel:problem:"+name)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				switch name, _ := n.Fun.(*ast.Ident); {
				case name == nil:
				case name.Name == "failed":
					add(n.Args[1])
				case name.Name == "busy":
					add(n.Args[0])
				}
			case *ast.FuncDecl:
				if !strings.HasPrefix(n.Name.Name, "faultsOf") {
					return true
				}
				ast.Inspect(n, func(n ast.Node) bool {
					if row, ok := n.(*ast.CompositeLit); ok && row.Type == nil {
						add(row.Elts[1])
					}
					return true
				})
			}
			return true
		})
	}
	require.NotEmpty(t, names, dir)
	return names
}
