package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// program is the tests of a package, with all mutants of a group in it.
type program struct {
	dir    string // of its own
	binary string
	where  string // the directory of the package
	active string // the file that says which mutant is tried
}

// build builds the program of some mutants, whose tests are in one package, and returns
// those that are in it. The others are given to broken.
func build(root string, mutants []*mutant, broken func(*mutant, string)) (*program, []*mutant, error) {
	files := make(map[string]*composed)
	var good []*mutant
	for _, m := range mutants {
		path := filepath.Join(root, m.file)
		c := files[path]
		if c == nil {
			source, err := os.ReadFile(path)
			if err == nil {
				c, err = newComposed(string(source))
			}
			if err != nil {
				broken(m, err.Error())
				continue
			}
			files[path] = c
		}
		if err := c.add(m); err != nil {
			broken(m, err.Error())
			continue
		}
		good = append(good, m)
	}
	if len(good) == 0 {
		return nil, nil, nil
	}
	p, faults, err := compile(filepath.Join(root, good[0].test.where), files)
	if err != nil || p != nil {
		return p, good, err
	}
	rest := slices.DeleteFunc(good, func(m *mutant) bool {
		why, is := faults[m.name]
		if is {
			broken(m, "it does not compile: "+why)
		}
		return is
	})
	return build(root, rest, broken)
}

// compile builds the tests of a package with composed files, or says which mutants do
// not compile, and why.
func compile(where string, files map[string]*composed) (p *program, faults map[string]string, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, nil, err
	}
	p = &program{dir: dir, binary: filepath.Join(dir, "test"), active: filepath.Join(dir, "active"), where: where}
	overlay, places, err := p.overlay(files)
	if err == nil {
		var out []byte
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", p.binary, ".")
		cmd.Dir = where
		if out, err = cmd.CombinedOutput(); err == nil {
			return p, nil, nil
		}
		faults = make(map[string]string)
		for line := range strings.SplitSeq(string(out), "\n") {
			m := compiled.FindStringSubmatch(line)
			if m == nil || places[m[1]] == nil {
				continue
			}
			at, _ := strconv.Atoi(m[2])
			if mutant, ok := places[m[1]].at(at); ok && faults[mutant] == "" {
				faults[mutant] = m[3]
			}
		}
		if err = nil; len(faults) == 0 {
			err = errors.New("its package does not compile: " + firstLine(string(out)))
		}
	}
	p.remove()
	return nil, faults, err
}

var compiled = regexp.MustCompile(`(\d+\.go):(\d+):\d+: (.*)`)

func (p *program) remove() { _ = os.RemoveAll(p.dir) }

// overlay writes what go needs to see composed files in the place of the product's, and
// in each of their packages the variable that they look at.
func (p *program) overlay(files map[string]*composed) (name string, places map[string]*composed, err error) {
	replace := make(map[string]string)
	places = make(map[string]*composed)
	put := func(path, text string) error {
		if replace[path] != "" {
			return nil // the variable of a package with two such files
		}
		at := filepath.Join(p.dir, fmt.Sprintf("%d.go", len(replace)))
		replace[path] = at
		return os.WriteFile(at, []byte(text), 0o600)
	}
	for path, c := range files {
		if len(c.functions) == 0 {
			continue
		}
		variable := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = func() string { b, _ := os.ReadFile(%q); return string(b) }()\n",
			c.file.Name.Name, active, p.active)
		places[fmt.Sprintf("%d.go", len(replace))] = c
		err := errors.Join(put(path, c.String()), put(filepath.Join(filepath.Dir(path), active+".go"), variable))
		if err != nil {
			return "", nil, err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	name = filepath.Join(p.dir, "overlay.json")
	return name, places, os.WriteFile(name, data, 0o600)
}

// result is how tests ended.
type result struct {
	failed bool
	output string
	took   time.Duration
}

// run runs tests like t, whose names are a pattern, with a mutant or with none, and ends
// them after some time.
func (p *program) run(t test, names, mutant string, limit time.Duration) (result, error) {
	if err := os.WriteFile(p.active, []byte(mutant), 0o600); err != nil {
		return result{}, err
	}
	pattern := strings.Split(names, "/")
	for i := range pattern {
		pattern[i] = "^(" + pattern[i] + ")$"
	}
	args := []string{"-test.timeout=" + limit.String(), "-test.v", "-test.paniconexit0", "-test.run=" + strings.Join(pattern, "/")}
	cmd := exec.Command(p.binary, append(args, strings.Fields(t.args)...)...)
	cmd.Dir = p.where
	if cmd.Env = os.Environ(); t.env != "" {
		cmd.Env = append(cmd.Env, t.env)
	}
	start := time.Now()
	output, err := cmd.CombinedOutput()
	return result{failed: err != nil, output: string(output), took: time.Since(start)}, nil
}

func firstLine(output string) string {
	for line := range strings.SplitSeq(output, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}
