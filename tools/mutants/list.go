package main

import (
	"fmt"
	"strings"
)

// mutant is one place at which the product is broken.
type mutant struct {
	name     string
	file     string // from the root
	test     test
	old, new string // whole lines
}

// test is one test of one package.
type test struct {
	name  string // with the names of its parts: TestX/part
	where string // the package, as ./path from the root
	args  string // that its program is given besides
	env   string // NAME=VALUE, or empty
}

// parseTest parses [NAME=VALUE] NAME PACKAGE [ARGUMENT...].
func parseTest(text string) (t test, ok bool) {
	words := strings.Fields(text)
	if len(words) > 0 && strings.Contains(words[0], "=") {
		t.env, words = words[0], words[1:]
	}
	if len(words) < 2 || !strings.HasPrefix(words[1], "./") {
		return t, false
	}
	t.name, t.where, t.args = words[0], words[1], strings.Join(words[2:], " ")
	return t, true
}

// parse parses a list.
func parse(text string) ([]*mutant, error) {
	var all []*mutant
	names := make(map[string]bool)
	m := new(mutant)       // the one that lines belong to
	into := (*string)(nil) // the text of it that they belong to
	for n, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, " ")
		known := true
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
			m = &mutant{name: value}
			all = append(all, m)
		case key == "file" && len(all) > 0:
			m.file = value
		case key == "test" && len(all) > 0:
			m.test, known = parseTest(value)
		default:
			known = false
		}
		if !known {
			return nil, fmt.Errorf("line %d: %q is nothing that a list has here", n+1, line)
		}
	}
	if into != nil {
		return nil, fmt.Errorf("%q has no end", m.name)
	}
	for _, m := range all {
		if m.file == "" || m.old == "" || m.test == (test{}) {
			return nil, fmt.Errorf("mutant %s needs file, test and old text", m.name)
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
