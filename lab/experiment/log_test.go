package experiment_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
)

// rewrite changes a file of results.
func rewrite(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(text), 0o600))
}

// swapped returns a change of one text for another, which is there.
func swapped(t *testing.T, was, is string) func([]byte) []byte {
	return func(text []byte) []byte {
		t.Helper()
		require.Contains(t, string(text), was)
		return bytes.Replace(text, []byte(was), []byte(is), 1)
	}
}

// forged returns a change of the log by who knows how its lines are summed.
func forged(s *experiment.Spec, change func([]byte) []byte) func([]byte) []byte {
	return func(text []byte) (out []byte) {
		for line := range bytes.Lines(text) {
			open, _, _ := bytes.Cut(line, []byte(`,"sum":"`))
			open = change(open)
			sum := sha256.Sum256([]byte("worldkernel/experiment/result/v1" + string(s.Hash[:]) + string(open)))
			out = fmt.Appendf(out, "%s,\"sum\":\"%x\"}\n", open, sum)
		}
		return out
	}
}

func TestAChangedLineOfTheLogIsRefused(t *testing.T) {
	s := load(t, sir(t))
	whole := t.TempDir()
	run(t, s, experiment.Options{Dir: whole, Runs: 3, Jobs: 1})
	log, err := os.ReadFile(filepath.Join(whole, "log"))
	require.NoError(t, err)
	lines := bytes.SplitAfter(log, []byte("\n"))
	for n, line := range lines[:3] {
		var x struct{ Last []json.RawMessage }
		require.NoError(t, json.Unmarshal(line, &x))
		var changed [][]byte
		for _, was := range []string{`"tick":30`, `"halted":0`, `"last":[` + string(x.Last[0]), `"sum":"`} {
			other := bytes.Replace(line, []byte(was), []byte(was+"1"), 1)
			require.NotEqual(t, line, other)
			changed = append(changed, other)
		}
		if n > 0 {
			changed = append(changed, lines[n-1])
		}
		for _, other := range changed {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			text := bytes.Join([][]byte{bytes.Join(lines[:n], nil), other, bytes.Join(lines[n+1:], nil)}, nil)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), text, 0o600))
			_, runs := experiment.Run(t.Context(), s, experiment.Options{Dir: dir, Runs: 3})
			_, summed := experiment.Summarise(dir)
			_, kept := experiment.Keep(t.Context(), s, 1, experiment.Options{Dir: dir}, filepath.Join(t.TempDir(), "kept"))
			for _, err := range []error{runs, summed, kept} {
				var damage *experiment.DamageError
				require.ErrorAs(t, err, &damage, "%s", other)
				require.Equal(t, n+1, damage.Line)
				require.Contains(t, err.Error(), fmt.Sprintf("log:%d: the line is not what was written: ", n+1))
			}
			left, err := os.ReadFile(filepath.Join(dir, "log"))
			require.NoError(t, err)
			require.Equal(t, text, left, "it is left as it is")
		}
	}
}

// TestALineThatAPowerFailureHasLeftUnwrittenIsMadeAgain: a part of it is zero.
func TestALineThatAPowerFailureHasLeftUnwrittenIsMadeAgain(t *testing.T) {
	s := load(t, sir(t))
	dir := t.TempDir()
	run(t, s, experiment.Options{Dir: dir, Runs: 2, Jobs: 1})
	want := tables(t, dir)
	rewrite(t, dir, "log", func(text []byte) []byte {
		clear(text[len(text)-200 : len(text)-100])
		return text
	})
	require.EqualValues(t, 1, run(t, s, experiment.Options{Dir: dir, Runs: 2}).Before)
	require.Equal(t, want, tables(t, dir))
}

func TestALineOfAnotherExperimentIsRefused(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	run(t, load(t, sir(t)), experiment.Options{Dir: one, Runs: 1})
	run(t, load(t, sir(t, "person.infect: 10", "person.infect: 11")), experiment.Options{Dir: other, Runs: 1})
	text, err := os.ReadFile(filepath.Join(other, "log"))
	require.NoError(t, err)
	rewrite(t, one, "log", func([]byte) []byte { return text })
	_, err = experiment.Summarise(one)
	require.ErrorAs(t, err, new(*experiment.DamageError))
}

func TestAChangedPlanIsRefused(t *testing.T) {
	s := load(t, sir(t))
	dir := t.TempDir()
	run(t, s, experiment.Options{Dir: dir, Runs: 1})
	rewrite(t, dir, "experiment.json", swapped(t, `"file": "`, `"file": "/elsewhere`))
	_, err := experiment.Summarise(dir)
	require.NoError(t, err, "an experiment may move")
	rewrite(t, dir, "experiment.json", swapped(t, `"masks"`, `"tasks"`))
	_, err = experiment.Summarise(dir)
	require.ErrorIs(t, err, experiment.ErrPlanDamaged)
	_, err = experiment.Run(t.Context(), s, experiment.Options{Dir: dir})
	require.ErrorIs(t, err, experiment.ErrPlanDamaged)
	rewrite(t, dir, "experiment.json", swapped(t, "worldkernel.experiment.v1", "worldkernel.experiment.v2"))
	_, err = experiment.Summarise(dir)
	require.ErrorIs(t, err, experiment.ErrPlanFormat)
}

// TestARunThatCameToSomethingElseIsNotKept: whoever changes what is kept of a run, and the sum
// too, is told of by the run itself.
func TestARunThatCameToSomethingElseIsNotKept(t *testing.T) {
	s := load(t, sir(t))
	whole := t.TempDir()
	run(t, s, experiment.Options{Dir: whole, Runs: 1})
	csv := strings.Split(tables(t, whole)["ticks.csv"], "\n")
	at5 := strings.Split(csv[2], ",")
	require.Equal(t, "5", at5[3])
	was := "[5," + at5[4]
	o := experiment.Options{Dir: whole}
	rewrite(t, whole, "log", forged(s, swapped(t, was, "[5,77")))
	dir := filepath.Join(t.TempDir(), "kept")
	_, err := experiment.Keep(t.Context(), s, 1, o, dir)
	require.ErrorIs(t, err, experiment.ErrOtherRun)
	require.EqualError(t, err, "run 1: the run is not what it was: status.S at tick 5 was 77, and is "+at5[4])
	require.NoDirExists(t, dir)
}
