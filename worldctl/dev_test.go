package worldctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/show/view"
)

// devTest is a `worldctl dev` under test.
type devTest struct {
	t        *testing.T
	out, err <-chan string // lines
	end      func() int    // interrupts it and returns its exit code
}

func startDev(t *testing.T, args ...string) *devTest {
	t.Helper()
	stdout, stderr, interrupt := startVerb(t, append([]string{"dev"}, args...)...)
	d := &devTest{t: t, out: linesFrom(stdout), err: linesFrom(stderr), end: interrupt}
	t.Cleanup(func() { d.end() })
	return d
}

// await reads lines up to one that has a text.
func (d *devTest) await(lines <-chan string, text string) {
	d.t.Helper()
	for line := range lines {
		if strings.Contains(line, text) {
			return
		}
	}
	require.Fail(d.t, "it has ended without "+text)
}

// TestDevShowsWhatAnEditMakesDifferent and does nothing to the world, whose owner goes on.
func TestDevShowsWhatAnEditMakesDifferent(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := newCounter(t, "a")
	code, _, said := inProcess(t.Context(), "-w", dir, "send", "counter.added", `{"name": "tea", "by": 1}`)
	require.Equal(t, exitOK, code, said)
	code, _, said = inProcess(t.Context(), "-w", dir, "run")
	require.Equal(t, exitOK, code, said)
	_, before, _ := inProcess(t.Context(), "-w", dir, "status", "-o", "json")
	reducer := filepath.Join(dir, "reducers", "counter.star")
	good, err := os.ReadFile(reducer)
	require.NoError(t, err)
	write := func(text string) { require.NoError(t, os.WriteFile(reducer, []byte(text), 0o600)) }

	d := startDev(t, "-w", dir)
	d.await(d.out, "round 1: ")
	d.await(d.out, "the same: ")
	d.await(d.out, "events sent again: 1;")
	write(strings.Replace(string(good), "def reduce(ctx, state, event):", "def reduce(ctx, state, event):\n    fail('no')", 1))
	d.await(d.out, "counter.star")
	d.await(d.out, "cells: 0 added, 0 gone, 1 changed;")
	d.await(d.out, "a step of counter/tea fails: reducers/counter.star:")
	write(strings.Replace(string(good), "def reduce(ctx, state, event):", "def reduce(ctx, state, event):\n    print('seen\\x1b')\n    return 7", 1))
	d.await(d.out, "counter/tea prints:")
	d.await(d.out, "counter.star:")
	d.await(d.err, "world.yaml, where that is as it should be")
	write(strings.Replace(string(good), "def reduce(ctx, state, event):", "def reduce(ctx, state, event):\n    print('seen\\x1b')\n    return 8", 1))
	d.await(d.out, "printed as in the round before: 1")
	d.await(d.err, "world.yaml, where that is as it should be")
	write("def reduce(")
	d.await(d.err, "counter.star:1:")
	d.await(d.err, "save it: the next round begins then")
	s := startServe(t, dir) // it owns the world from here on
	write(string(good))
	d.await(d.out, "round 6: ")
	d.await(d.out, "the same: ")
	require.Equal(t, exitOK, d.end())
	s.end()

	_, after, _ := inProcess(t.Context(), "-w", dir, "status", "-o", "json")
	require.Equal(t, before, after)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestTheSameIsNotSaidOfWhatIsUnknown under either rules.
func TestTheSameIsNotSaidOfWhatIsUnknown(t *testing.T) {
	for unknown, want := range map[int]string{
		0: "the same: cells, intents, timers and scheduled events", 1: "what is known is the same, and 1 cell is unknown", 5: "what is known is the same, and 5 cells are unknown",
	} {
		same := &view.Comparison{Same: true}
		require.Equal(t, want, (&dev{}).same(&view.DryRun{WhatIf: &view.WhatIf{Difference: same}, UnknownInForce: unknown}))
		require.Equal(t, want, (&dev{}).same(&view.DryRun{WhatIf: &view.WhatIf{Difference: same, UnknownMore: unknown}}))
	}
}

// TestDevNeedsAWorldAndAFile and says what to do without.
func TestDevNeedsAWorldAndAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, said := inProcess(t.Context(), "dev")
	require.Equal(t, exitUsage, code)
	require.Contains(t, said, "hint: worldctl init DIR")
	dir := newCounter(t, "a")
	code, _, said = inProcess(t.Context(), "-w", dir, "dev", "none.yaml")
	require.Equal(t, exitUsage, code)
	require.Contains(t, said, "hint: name the file")
}
