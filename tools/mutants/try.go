package main

import (
	"regexp"
	"slices"
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

// try tries mutants whose tests are in one package, and tells what became of each.
func try(root string, mutants []*mutant, tell func(*mutant, trial)) {
	p, good, err := build(root, mutants, func(m *mutant, why string) { tell(m, trial{verdict: broken, by: why}) })
	if err != nil {
		for _, m := range good {
			tell(m, trial{verdict: broken, by: err.Error()})
		}
		return
	}
	if p == nil {
		return // none is left
	}
	defer p.remove()
	passes := p.sound(good)
	for _, m := range good {
		alone, passed := passes[m.test]
		if !passed {
			tell(m, trial{verdict: broken, by: "without it " + m.test.name + " fails too, or it is skipped, or there is none"})
			continue
		}
		r, err := p.run(m.test, m.test.name, m.name, 30*time.Second+10*alone)
		t := trial{verdict: survived, took: r.took}
		switch {
		case err != nil:
			t.verdict, t.by = broken, err.Error()
		case r.failed:
			t.verdict, t.by = killed, killer(r.output)
		}
		tell(m, t)
	}
}

// sound runs the tests of some mutants without any, as many at once as can be, and
// returns how long those took that passed.
func (p *program) sound(mutants []*mutant) map[test]time.Duration {
	groups := make(map[test][]string) // names, by the test that they are parts of, or by none
	for _, m := range mutants {
		like := m.test
		of, part, parts := strings.Cut(m.test.name, "/")
		if like.name = ""; parts {
			like.name, of = of+"/", part
		}
		if !slices.Contains(groups[like], of) {
			groups[like] = append(groups[like], of)
		}
	}
	passes := make(map[test]time.Duration)
	for like, names := range groups {
		r, err := p.run(like, like.name+strings.Join(names, "|"), "", time.Hour)
		if err != nil {
			continue
		}
		for _, m := range passedTest.FindAllStringSubmatch(r.output, -1) {
			t := like
			t.name = m[1]
			passes[t], _ = time.ParseDuration(m[2])
		}
	}
	return passes
}

var (
	passedTest = regexp.MustCompile(`--- PASS: (\S+) \((\S+)\)`)
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	lives      = regexp.MustCompile(`after \d+ lives`)
)

// killer names the test that failed, and after how many lives where it counts
// them.
func killer(output string) string {
	by := "the program ended: " + firstLine(output)
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
