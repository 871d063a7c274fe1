package main

import (
	"fmt"
	"strings"
)

// mutant is one place at which the product is broken.
type mutant struct {
	name     string
	file     string // from the root
	test     test   // zero where run is not
	run      string // a command of sh
	old, new string // whole lines
}

// test is one test of one package.
type test struct {
	name string // with the names of its parts: TestX/part
	args string // the package from the root, and what go test is told besides
}

// parse parses a list.
func parse(text string) ([]mutant, error) {
	var all []mutant
	names := make(map[string]bool)
	into := (*string)(nil) // the text that lines belong to
	for n, line := range strings.Split(text, "\n") {
		m := new(mutant)
		if len(all) > 0 {
			m = &all[len(all)-1]
		}
		key, value, _ := strings.Cut(line, " ")
		name, args, _ := strings.Cut(value, " ")
		switch {
		case line == "--- old" && into == nil:
			into = &m.old
		case line == "--- new" && into == &m.old:
			into = &m.new
		case line == "--- end" && into == &m.new:
			into = nil
		case into != nil && !strings.HasPrefix(line, "--- "):
			*into += line + "\n"
		case line == "" || strings.HasPrefix(line, "#"):
		case key == "mutant" && value != "" && !names[value]:
			names[value] = true
			all = append(all, mutant{name: value})
		case key == "file" && len(all) > 0:
			m.file = value
		case key == "test" && len(all) > 0 && strings.HasPrefix(args, "./"):
			m.test = test{name, args}
		case key == "run" && len(all) > 0:
			m.run = value
		default:
			return nil, fmt.Errorf("line %d: %q is nothing that a list has here", n+1, line)
		}
	}
	if into != nil {
		return nil, fmt.Errorf("%q has no end", all[len(all)-1].name)
	}
	for _, m := range all {
		if m.file == "" || m.old == "" || (m.test == test{}) == (m.run == "") {
			return nil, fmt.Errorf("mutant %s needs file, old text, and either test or run", m.name)
		}
	}
	return all, nil
}

// apply returns the source with the mutant in it.
func (m *mutant) apply(source string) (string, error) {
	if n := strings.Count(source, m.old); n != 1 {
		return "", fmt.Errorf("its old text is in %s %d times", m.file, n)
	}
	return strings.Replace(source, m.old, m.new, 1), nil
}
