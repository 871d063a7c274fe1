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
// and at the end how many there were. It exits with 1 unless all were killed, or
// were left out by a "todo". First it runs every test command as the product is:
// a test that fails anyhow kills nothing.
//
// # The list
//
// A list is text. Lines that begin with # are comments, a mutant is
//
//	mutant NAME
//	file world/budget.go
//	test go test -count=1 -run '^TestX$' ./world
//	--- old
//	the text to replace, whole lines, found exactly once in file
//	--- new
//	what takes its place; nothing, to delete it
//	--- end
//
// The test is a command of sh. A mutant with the line "todo WHY" instead of one
// with "file" has no text yet, and is printed as such.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

func main() {
	only := flag.String("run", "", "only mutants whose name matches this `regexp`")
	jobs := flag.Int("jobs", 1, "how many to try at once")
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
		text, err := os.ReadFile(filepath.Join(root, list))
		if err != nil {
			return false, err
		}
		more, err := parse(string(text))
		if err != nil {
			return false, fmt.Errorf("%s: %w", list, err)
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

// sound runs every test command without a mutant.
func sound(out io.Writer, root string, all []mutant) error {
	seen := make(map[string]bool)
	for _, m := range all {
		if m.todo != "" || seen[m.test] {
			continue
		}
		seen[m.test] = true
		r := command(root, m.test, "")
		if r.failed {
			return fmt.Errorf("it fails without any mutant: %s\n%s", m.test, tail(r.output))
		}
		fmt.Fprintf(out, "passes    %6.1fs  %s\n", r.took.Seconds(), m.test)
	}
	return nil
}

// try tries mutants, jobs of them at once, and prints a line for each.
func try(out io.Writer, root string, all []mutant, jobs int) bool {
	var (
		mu     sync.Mutex
		wait   sync.WaitGroup
		counts = make(map[verdict]int)
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
			line := fmt.Sprintf("%-9s %6.1fs  %s  %s", t.verdict, t.took.Seconds(), m.name, t.by)
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		})
	}
	wait.Wait()
	fmt.Fprintf(out, "%d mutants: %d killed, %d survived, %d broken, %d to do\n",
		len(all), counts[killed], counts[survived], counts[broken], counts[todo])
	return counts[survived]+counts[broken] == 0
}
