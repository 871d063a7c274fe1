// Command raced runs each test once: those that do things side by side with the race detector, which makes tests take several
// times as long and finds nothing in the others; with -others first, it runs the others, without it. A test does things side by
// side where it, or a helper that it names, has a go statement or calls a method Go; or where it says testrace.Here. One that
// does less under the detector, such as with random cases, runs without it as well.
//
//	go run -C tools ./raced FLAG...             flags of go test
//	go run -C tools ./raced -others FLAG...     and packages, as go test takes them
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
	all, err := tests("..")
	if err == nil {
		args := all.withDetector(os.Args[1:])
		if len(os.Args) > 1 && os.Args[1] == "-others" {
			args = all.others(os.Args[2:])
		}
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "..", os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "raced:", err)
		os.Exit(1)
	}
}

// module is what the tests of a module are.
type module struct {
	packages []string        // that have raced tests, those with most first
	raced    map[string]bool // the names of tests that run with the detector
	both     map[string]bool // and of those that run without it in some package
}

// tests reads the tests of the module in a directory.
func tests(root string) (*module, error) {
	all, many := &module{raced: make(map[string]bool), both: make(map[string]bool)}, make(map[string]int)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || isModule(path)) {
			return fs.SkipDir
		}
		names, err := readNames(path)
		if err != nil {
			return err
		}
		raced, less := names.reach(names.sideBySide), names.reach(names.less)
		for _, name := range names.tests {
			if slices.Contains(raced, name) {
				all.raced[name] = true
			}
			if len(raced) == 0 || slices.Contains(less, name) {
				all.both[name] = true
			}
		}
		if len(raced) == 0 {
			return nil
		}
		below, err := filepath.Rel(root, path)
		pkg := "./" + filepath.ToSlash(below)
		all.packages, many[pkg] = append(all.packages, pkg), len(raced)
		return err
	})
	slices.SortStableFunc(all.packages, func(a, b string) int { return many[b] - many[a] }) // they take longest, so they begin first
	return all, err
}

// withDetector returns the arguments of go for the tests that run with the race detector. A name is run in all packages that have
// such tests.
func (m *module) withDetector(flags []string) []string {
	return slices.Concat([]string{"test", "-race", "-run", anyOf(slices.Sorted(maps.Keys(m.raced)))}, flags, m.packages)
}

// others returns the arguments of go for the tests that nothing runs with the race detector, or that do less with it.
func (m *module) others(flags []string) []string {
	skip := slices.DeleteFunc(slices.Sorted(maps.Keys(m.raced)), func(name string) bool { return m.both[name] })
	return slices.Concat([]string{"test", "-skip", anyOf(skip)}, flags)
}

func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// names are those that the tests of a package use.
type names struct {
	tests            []string
	by               map[string][]string // by whom a name is used
	sideBySide, less []string            // the functions that do things side by side, or less with the detector, themselves
}

// reach returns which tests are, or name, one of the functions, however deep. A test that another one names does not make it one.
func (n *names) reach(next []string) (tests []string) {
	seen := make(map[string]bool)
	for next = slices.Clone(next); len(next) > 0; next = next[1:] {
		name := next[0]
		switch {
		case seen[name]:
		case slices.Contains(n.tests, name):
			tests = append(tests, name)
		default:
			next = append(next, n.by[name]...)
		}
		seen[name] = true
	}
	return tests
}

// readNames reads the tests in a directory.
func readNames(dir string) (*names, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	all := &names{by: make(map[string][]string)}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all.read(f)
			}
		}
	}
	return all, err
}

func (n *names) read(f *ast.FuncDecl) {
	name := f.Name.Name
	if strings.HasPrefix(name, "Test") && name != "TestMain" {
		n.tests = append(n.tests, name)
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			n.sideBySide = append(n.sideBySide, name)
		case *ast.SelectorExpr:
			switch node.Sel.Name {
			case "Go", "Here", "Also":
				n.sideBySide = append(n.sideBySide, name)
			}
			if of, ok := node.X.(*ast.Ident); ok && (of.Name == "rapid" || of.Name == "fault" && node.Sel.Name == "Seeds" || of.Name == "testrace" && node.Sel.Name != "Here") {
				n.less = append(n.less, name)
			}
		case *ast.Ident:
			if node != f.Name && !slices.Contains(n.by[node.Name], name) {
				n.by[node.Name] = append(n.by[node.Name], name)
			}
		}
		return true
	})
}
