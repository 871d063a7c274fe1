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
	todo     verdict = "todo"
)

// trial is a mutant that was tried.
type trial struct {
	verdict verdict
	took    time.Duration
	by      string // what killed it, or why it is broken
}

// try has the test of a mutant run with it.
func (m *mutant) try(root string) trial {
	if m.todo != "" {
		return trial{verdict: todo, by: m.todo}
	}
	overlay, done, err := m.overlay(root)
	if err != nil {
		return trial{verdict: broken, by: err.Error()}
	}
	defer done()
	r := command(root, m.test, overlay)
	t := trial{verdict: survived, took: r.took}
	switch {
	case strings.Contains(r.output, "[build failed]"), strings.Contains(r.output, "[setup failed]"):
		t.verdict, t.by = broken, "it does not compile: "+firstLine(r.output)
	case r.failed:
		t.verdict, t.by = killed, killer(r.output)
	}
	return t
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
// whoever calls that.
func command(root, line, overlay string) result {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = root
	cmd.Env = os.Environ()
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
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
	if m := failedTest.FindStringSubmatch(output); m != nil {
		by = m[1]
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
