// Command raced runs the tests that do things side by side, with the race detector, which makes
// tests take several times as long and finds nothing in the others. A test does so where it, or a helper that
// it names, has a go statement or calls a method Go; or where it says testrace.Here.
//
//	go run -C tools ./raced FLAG...     flags of go test
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	args, err := arguments("..", os.Args[1:])
	if err == nil {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "..", os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "raced:", err)
		os.Exit(1)
	}
}

// arguments returns those of go for the tests of the module in a directory.
func arguments(root string, flags []string) ([]string, error) {
	tests, packages, many := make(map[string]bool), []string(nil), make(map[string]int)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || isModule(path)) {
			return fs.SkipDir
		}
		of, err := sideBySide(path)
		if err != nil || len(of) == 0 {
			return err
		}
		for _, name := range of {
			tests[name] = true
		}
		below, err := filepath.Rel(root, path)
		pkg := "./" + filepath.ToSlash(below)
		packages, many[pkg] = append(packages, pkg), len(of)
		return err
	})
	slices.SortStableFunc(packages, func(a, b string) int { return many[b] - many[a] }) // they take longest, so they begin first
	run := "^(" + strings.Join(slices.Sorted(maps.Keys(tests)), "|") + ")$"
	return slices.Concat([]string{"test", "-race", "-run", run}, flags, packages), err
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// sideBySide returns the tests in a directory that do things side by side.
func sideBySide(dir string) (tests []string, err error) {
	namedBy, next, err := names(dir)
	for ; err == nil && len(next) > 0; next = next[1:] {
		name := next[0]
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			if !slices.Contains(tests, name) {
				tests = append(tests, name)
			}
			continue
		}
		next = append(next, namedBy[name]...)
		delete(namedBy, name)
	}
	return tests, err
}

// names returns, for each name that functions of the tests in a directory use, who they are; and the functions that do
// things side by side themselves.
func names(dir string) (by map[string][]string, begin []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	by = make(map[string][]string)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					begin = append(begin, f.Name.Name)
				case *ast.SelectorExpr:
					if n.Sel.Name == "Go" || n.Sel.Name == "Here" {
						begin = append(begin, f.Name.Name)
					}
				case *ast.Ident:
					if n != f.Name && !slices.Contains(by[n.Name], f.Name.Name) {
						by[n.Name] = append(by[n.Name], f.Name.Name)
					}
				}
				return true
			})
		}
	}
	return by, begin, err
}
