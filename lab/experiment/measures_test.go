package experiment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/world/source"
)

// programmed is the experiment of the tests with a measure that a program makes.
func programmed(t *testing.T) string {
	return sir(t, "  left:", "  p: {star: ill.star, cells: person, gives: {ill: int, first: string, tick: int}}\n  same: p.ill - status.I\n  left:")
}

func TestProgramsMeasureRuns(t *testing.T) {
	dir := t.TempDir()
	s := load(t, programmed(t))
	run(t, s, experiment.Options{Dir: dir})
	rows, err := experiment.Summarise(dir)
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	csv := strings.Split(tables(t, dir)["ticks.csv"], "\n")
	head := strings.Split(csv[0], ",")
	at := make(map[string]int)
	for i, name := range head {
		at[name] = i
	}
	for _, line := range csv[1 : len(csv)-1] {
		values := strings.Split(line, ",")
		require.Equal(t, values[at["status.I"]], values[at["p.ill"]])
		require.Equal(t, values[at["tick"]], values[at["p.tick"]])
		require.Equal(t, "0", values[at["same"]])
	}
	again := t.TempDir()
	run(t, s, experiment.Options{Dir: again, Jobs: 1})
	require.Equal(t, tables(t, dir), tables(t, again))
}

func TestAProgramOfAMeasureIsPartOfTheExperiment(t *testing.T) {
	path := document(t, programmed(t))
	hash := func() string {
		s, err := experiment.Load(path, experiment.LoadOptions{})
		require.NoError(t, err)
		return s.Hash.String()
	}
	was := hash()
	require.Equal(t, was, hash())
	for _, file := range []string{"ill.star", "people_of.star"} {
		name := filepath.Join(filepath.Dir(path), file)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, append(text, "\n# other\n"...), 0o600))
		require.NotEqual(t, was, hash(), file)
		was = hash()
	}
}

func TestProgramsOfMeasuresAreRefusedBeforeTheFirstRun(t *testing.T) {
	for program, want := range map[string]string{
		"def measure(cells): return 1\n":                                  "measure p: ill.star:1:5: measure takes the parameters (cells, tick)",
		"def measure(cells, tick):\n    return 1 +\n":                     "ill.star:2:",
		"load('nowhere.star', 'x')\ndef measure(cells, tick): return x\n": "nowhere.star",
		"": "measure",
	} {
		path := document(t, programmed(t))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "ill.star"), []byte(program), 0o600))
		_, err := experiment.Load(path, experiment.LoadOptions{})
		var faults *source.Error
		require.ErrorAs(t, err, &faults, program)
		require.ErrorContains(t, err, "experiment.yaml:12:13: measure p: ")
		require.ErrorContains(t, err, want)
	}
	_, err := experiment.Load(document(t, sir(t, "  left:", "  p: {star: nowhere.star}\n  left:")), experiment.LoadOptions{})
	require.ErrorContains(t, err, `experiment.yaml:12:13: measure p: there is no file "nowhere.star"`)
}

func TestAProgramOfAMeasureIsBounded(t *testing.T) {
	path := document(t, "limits: {gas: 9000}\n"+programmed(t))
	long := "def measure(cells, tick):\n    for _ in range(tick * 5000): pass\n    return {'ill': 0}\n"
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "ill.star"), []byte(long), 0o600))
	s, err := experiment.Load(path, experiment.LoadOptions{})
	require.NoError(t, err)
	out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: t.TempDir(), Runs: 1})
	require.NoError(t, err)
	require.Len(t, out.Failed, 1)
	require.Contains(t, out.Failed[0].Error, "measure p, at tick 5: ")
	require.Contains(t, out.Failed[0].Error, "limits.gas is 9000 steps")
}

func TestAMeasureThatFailsInOneRunAtTick900(t *testing.T) {
	const expr = "tick == 900 && state.run == 40 ? state.nothing : state.n"
	s := load(t, `
experiment: count
version: 1
world: count
seeds: 50
inputs: number.star
stop: {ticks: 1000}
measures:
  n: {cells: count, value: '`+expr+`', take: sum}
at: every 100
`)
	dir := t.TempDir()
	out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: dir})
	require.NoError(t, err)
	require.EqualValues(t, 50, out.Done)
	require.Len(t, out.Failed, 1)
	require.EqualValues(t, 40, out.Failed[0].Run)
	require.True(t, strings.HasPrefix(out.Failed[0].Error,
		"run 40, variant world, seed 40, tick 900: measure n: "+expr+", of cell count/a, at tick 900: "), out.Failed[0].Error)
	csv := tables(t, dir)["runs.csv"]
	require.Equal(t, 49, strings.Count(csv, ",1000,ticks,"), "the others have ended:\n%s", csv)
}
