package main

import (
	"fmt"
	"strings"
)

// mutant is one place at which the product is broken.
type mutant struct {
	name     string
	file     string // from the root
	test     string // a command of sh
	old, new string // whole lines
	todo     string // why it has no text yet
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
		switch {
		case line == "--- old":
			into = &m.old
		case line == "--- new":
			into = &m.new
		case line == "--- end":
			into = nil
		case into != nil:
			*into += line + "\n"
		case line == "" || strings.HasPrefix(line, "#"):
		case key == "mutant" && value != "" && !names[value]:
			names[value] = true
			all = append(all, mutant{name: value})
		case key == "file" && len(all) > 0:
			m.file = value
		case key == "test" && len(all) > 0:
			m.test = value
		case key == "todo" && len(all) > 0:
			m.todo = value
		default:
			return nil, fmt.Errorf("line %d: %q is nothing that a list has here", n+1, line)
		}
	}
	if into != nil {
		return nil, fmt.Errorf("%q has no end", all[len(all)-1].name)
	}
	for _, m := range all {
		if m.todo == "" && (m.file == "" || m.test == "" || m.old == "") {
			return nil, fmt.Errorf("mutant %s needs file, test and old text, or todo", m.name)
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
