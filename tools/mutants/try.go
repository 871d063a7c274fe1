package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	broken   verdict = "BROKEN"
)

// trial is a mutant that was tried.
type trial struct {
	verdict verdict
	took    time.Duration
	by      string // what killed it, or why it is broken
}

// try has the test of a mutant run with it.
func (m *mutant) try(root string) trial {
	overlay, done, err := m.overlay(root)
	if err != nil {
		return trial{verdict: broken, by: err.Error()}
	}
	defer done()
	r := command(root, overlay, m.argv()...)
	t := trial{verdict: survived, took: r.took}
	switch {
	case strings.Contains(r.output, "[build failed]"), strings.Contains(r.output, "[setup failed]"):
		t.verdict, t.by = broken, "it does not compile: "+firstLine(r.output)
	case r.failed:
		t.verdict, t.by = killed, killer(r.output)
	case strings.Contains(r.output, "[no tests to run]"):
		t.verdict, t.by = broken, "there is no such test"
	}
	return t
}

// argv is what has to fail.
func (m *mutant) argv() []string {
	if m.run != "" {
		return []string{"sh", "-c", m.run}
	}
	return m.test.argv(m.test.name)
}

// argv runs tests of a package; those beside t are given as t.name is, or as a
// pattern of it.
func (t test) argv(names string) []string {
	pattern := strings.Split(names, "/")
	for i := range pattern {
		pattern[i] = "^(" + pattern[i] + ")$"
	}
	return append([]string{"go", "test", "-count=1", "-timeout=5m", "-v", "-run", strings.Join(pattern, "/")},
		strings.Fields(t.args)...)
}

// overlay writes what go needs to see the mutant, in a directory that done
// removes.
func (m *mutant) overlay(root string) (name string, done func(), err error) {
	file := filepath.Join(root, m.file)
	source, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	name = filepath.Join(dir, "overlay.json")
	replaced := filepath.Join(dir, filepath.Base(file))
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{file: replaced}})
	err = errors.Join(err, os.WriteFile(name, data, 0o600), os.WriteFile(replaced, []byte(mutated), 0o600))
	if err != nil {
		done()
	}
	return name, done, err
}

// result is how a command ended.
type result struct {
	failed bool
	output string
	took   time.Duration
}

// command runs a command at the root. GOFLAGS hands the overlay to every go in it,
// whoever calls that. What is built is for one run: nobody vets or debugs it.
func command(root, overlay string, argv ...string) result {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = root
	flags := os.Getenv("GOFLAGS") + " -vet=off '-ldflags=-s -w'"
	if overlay != "" {
		flags += " -overlay=" + overlay
	}
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(flags))
	start := time.Now()
	output, err := cmd.CombinedOutput()
	return result{failed: err != nil, output: string(output), took: time.Since(start)}
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	lives      = regexp.MustCompile(`after \d+ lives`)
)

// killer names the test that failed, and after how many lives where it counts
// them.
func killer(output string) string {
	by := "the command failed: " + firstLine(output)
	switch m := failedTest.FindAllStringSubmatch(output, -1); {
	case m != nil: // a test comes before its parts
		by = m[min(1, len(m)-1)][1]
	case strings.Contains(output, "panic: test timed out"):
		by = "it hangs"
	}
	if after := lives.FindString(output); after != "" {
		by += ", " + after
	}
	return by
}

func firstLine(output string) string {
	for line := range strings.SplitSeq(output, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

func tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
