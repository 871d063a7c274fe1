// Command mutants breaks the product on purpose, one place at a time, and says
// whether a test notices.
//
//	go run -C tools ./mutants [-run REGEXP] [-jobs N] FILE...
//
// It runs at the root of the repository and changes no file of it: go gets the
// broken source by -overlay. For each mutant it prints one line:
//
//	killed    NAME   12.3s  TestX, after 37 lives
//	SURVIVED  NAME   80.1s
//	BROKEN    NAME    1.2s  why it is no mutant: it does not compile, say
//
// and at the end how many there were, and which survived. It exits with 1 unless all
// were killed. First it runs every test as the product is, those of a package at once: a
// test that fails anyhow, or is skipped, kills nothing.
//
// # The list
//
// A list is text. Lines that begin with # are comments, a mutant is
//
//	mutant NAME
//	file world/budget.go
//	test TestX ./world
//	--- old
//	the text to replace, whole lines, found exactly once in file
//	--- new
//	what takes its place; nothing, to delete it
//	--- end
//
// The test is one of the package, or a part of one, TestX/part; what follows the package
// is for go test, too. Where one test does not do, the line is instead a command of sh:
//
//	run LIVES=2000 go test -count=1 -run '^TestX' ./world/worldtest/twice
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

func main() {
	only := flag.String("run", "", "only mutants whose name matches this `regexp`")
	jobs := flag.Int("jobs", runtime.GOMAXPROCS(0), "how many to try at once")
	root := flag.String("root", "..", "the root of the repository")
	flag.Parse()
	ok, err := run(os.Stdout, *root, *only, *jobs, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run tries the mutants of some lists and reports whether all were killed.
func run(out io.Writer, root, only string, jobs int, lists []string) (bool, error) {
	name, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return false, err
	}
	var all []mutant
	for _, list := range lists {
		more, err := read(root, list)
		if err != nil {
			return false, err
		}
		for _, m := range more {
			if name.MatchString(m.name) {
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 {
		return false, errors.New("no mutant has such a name")
	}
	if err := sound(out, root, all); err != nil {
		return false, err
	}
	return try(out, root, all, jobs), nil
}

// read reads a list.
func read(root, list string) ([]mutant, error) {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return nil, err
	}
	all, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	return all, nil
}

// sound runs every command, and every test, without a mutant: the tests of a package
// together, the parts of a test, too.
func sound(out io.Writer, root string, all []mutant) error {
	seen := make(map[string]bool)
	groups := make(map[test][]string) // by the test with its parts, or without a name; to names
	var order []test
	for _, m := range all {
		if m.run != "" && !seen[m.run] {
			seen[m.run] = true
			if err := passes(out, root, m.run, nil, m.argv()); err != nil {
				return err
			}
		}
		if m.run != "" || seen[m.test.name+" "+m.test.args] {
			continue
		}
		seen[m.test.name+" "+m.test.args] = true
		name, part, parts := strings.Cut(m.test.name, "/")
		group := test{args: m.test.args}
		if parts {
			group.name = name + "/"
			name = part
		}
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], name)
	}
	for _, g := range order {
		names := groups[g]
		what := g.name + strings.Join(names, "|")
		for i := range names {
			names[i] = g.name + names[i]
		}
		if err := passes(out, root, what+" "+g.args, names, g.argv(what)); err != nil {
			return err
		}
	}
	return nil
}

// passes runs what has to pass, with some tests in it.
func passes(out io.Writer, root, what string, names, argv []string) error {
	r := command(root, "", argv...)
	if r.failed {
		return fmt.Errorf("it fails without any mutant: %s\n%s", what, tail(r.output))
	}
	for _, name := range names {
		if !strings.Contains(r.output, "--- PASS: "+name+" (") {
			return fmt.Errorf("there is no test %s, or it was skipped: %s", name, what)
		}
	}
	fmt.Fprintf(out, "passes    %6.1fs  %s\n", r.took.Seconds(), what)
	return nil
}

// try tries mutants, jobs of them at once, and prints a line for each.
func try(out io.Writer, root string, all []mutant, jobs int) bool {
	var (
		mu        sync.Mutex
		wait      sync.WaitGroup
		counts    = make(map[verdict]int)
		survivors []string
	)
	slots := make(chan struct{}, max(jobs, 1))
	for _, m := range all {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			t := m.try(root)
			mu.Lock()
			defer mu.Unlock()
			counts[t.verdict]++
			if t.verdict != killed {
				survivors = append(survivors, fmt.Sprintf("%-9s %s, %s", t.verdict, m.name, m.file))
			}
			line := fmt.Sprintf("%-9s %6.1fs  %s  %s", t.verdict, t.took.Seconds(), m.name, t.by)
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		})
	}
	wait.Wait()
	fmt.Fprintf(out, "%d mutants: %d killed, %d survived, %d broken\n",
		len(all), counts[killed], counts[survived], counts[broken])
	for _, line := range survivors {
		fmt.Fprintln(out, line)
	}
	return len(survivors) == 0
}
