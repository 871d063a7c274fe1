// Command mutants breaks the product on purpose, one place at a time, and says
// whether a test notices.
//
//	go run -C tools ./mutants [-run REGEXP] [-jobs N] FILE...
//
// It runs at the root of the repository and changes no file of it. The tests of a package
// are built once, with all mutants that they are to notice: go gets each function that is
// changed in all its versions, by -overlay, and a file says which one is called. For each
// mutant it prints one line:
//
//	killed    NAME    2.3s  TestX, after 37 lives
//	SURVIVED  NAME   10.1s
//	BROKEN    NAME    1.2s  why it is no mutant: it does not compile, say
//
// and at the end how many there were, and which survived. It exits with 1 unless all
// were killed. The tests are run without any mutant first: one that fails anyhow, or is
// skipped, kills nothing.
//
// # The list
//
// A list is text. Lines that begin with # are comments, a mutant is
//
//	mutant NAME
//	file world/budget.go
//	test TestX ./world
//	--- old
//	the text to replace, whole lines of one function, found exactly once in file
//	--- new
//	what takes its place; nothing, to delete it
//	--- end
//
// The test is one of the package, or a part of one, TestX/part. What follows the package
// is given to its program, such as -rapid.nofailfile; what comes before the test, as
// NAME=VALUE, to its environment.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	only := flag.String("run", "", "only mutants whose name matches this `regexp`")
	jobs := flag.Int("jobs", runtime.GOMAXPROCS(0), "how many packages to try at once")
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
	var all []*mutant
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
	return tryAll(out, root, all, jobs), nil
}

// read reads a list.
func read(root, list string) ([]*mutant, error) {
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

// tryAll tries mutants, those of some packages at once, the package with the most first,
// and prints a line for each.
func tryAll(out io.Writer, root string, all []*mutant, jobs int) bool {
	var (
		mu        sync.Mutex
		wait      sync.WaitGroup
		counts    = make(map[verdict]int)
		survivors []string
	)
	tell := func(m *mutant, t trial) {
		mu.Lock()
		defer mu.Unlock()
		counts[t.verdict]++
		line := strings.TrimRight(fmt.Sprintf("%-9s %6.1fs  %s  %s", t.verdict, t.took.Seconds(), m.name, t.by), " ")
		fmt.Fprintln(out, line)
		if t.verdict != killed {
			survivors = append(survivors, line)
		}
	}
	groups := make(map[string][]*mutant)
	for _, m := range all {
		groups[m.test.where] = append(groups[m.test.where], m)
	}
	order := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(groups[b]), len(groups[a])), cmp.Compare(a, b))
	})
	slots := make(chan struct{}, max(jobs, 1))
	for _, where := range order {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			try(root, groups[where], tell)
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
