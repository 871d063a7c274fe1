//go:build race

package testrace

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// On reports whether the race detector looks on.
const On = true

// Only has no tests run of the package in the working directory but those that say Here, or call
// what says it, unless -run names others, and holds properties to a tenth of the draws. It is to be
// called before the tests are run.
func Only() error {
	if draws := flag.Lookup("rapid.checks"); draws != nil {
		if err := draws.Value.Set("10"); err != nil {
			return err
		}
	}
	flag.Parse()
	run := flag.Lookup("test.run").Value
	if run.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return nil
	}
	names, err := who("Here")
	if err == nil && len(names) == 0 {
		err = errors.New("no test here says testrace.Here")
	}
	return errors.Join(err, run.Set("^("+strings.Join(names, "|")+")$"))
}

// who returns the tests that name a function, or one that names it, and so on.
func who(function string) (tests []string, err error) {
	namedBy, err := names()
	for next := []string{function}; err == nil && len(next) > 0; next = next[1:] {
		for _, by := range namedBy[next[0]] {
			switch {
			case !strings.HasPrefix(by, "Test"):
				next = append(next, by)
			case by != "TestMain" && !slices.Contains(tests, by):
				tests = append(tests, by)
			}
		}
		delete(namedBy, next[0])
	}
	return tests, err
}

// names returns for each name that functions of the tests in the working directory use who they are.
func names() (map[string][]string, error) {
	files, err := filepath.Glob("*_test.go")
	by := make(map[string][]string)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id != f.Name && !slices.Contains(by[id.Name], f.Name.Name) {
					by[id.Name] = append(by[id.Name], f.Name.Name)
				}
				return true
			})
		}
	}
	return by, err
}
