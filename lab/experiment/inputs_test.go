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

// inputsOf loads the experiment of the tests with inputs that a program says.
func inputsOf(t testing.TB, limits, program string) (*experiment.Spec, error) {
	t.Helper()
	path := document(t, limits+sir(t))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "people.star"), []byte(program), 0o600))
	return experiment.Load(path, experiment.LoadOptions{})
}

func TestFaultsOfInputsHaveTheirPlaceInTheFile(t *testing.T) {
	for program, want := range map[string]string{
		"":                                     "people.star:1:1: the program does not define inputs(run, tick)",
		"x = 1\ndef inputs(run): return []":    "people.star:2:5: inputs takes the parameters (run, tick)",
		"def inputs(run, tick):\n    return [": "people.star:2:13: ",
		"x = 1 // 0\ndef inputs(run, tick): return []":             "people.star:1:7: floored division by zero",
		"load('more.star', 'x')\ndef inputs(run, tick): return []": `people.star:1:6: there is no file "more.star"`,
	} {
		_, err := inputsOf(t, "", program)
		var faults *source.Error
		require.ErrorAs(t, err, &faults, program)
		require.Len(t, faults.Faults, 1)
		require.Equal(t, 8, faults.Faults[0].Line)
		require.Contains(t, err.Error(), want)
	}
	for program, want := range map[string]string{
		"x = 1\ndef inputs(run, tick):\n    return f(tick)\ndef f(tick):\n    return 1 // (tick - 1)\n": "tick 0: people.star:5:14: floored division by zero (in f, called by inputs at people.star:3)",
		"def inputs(run, tick):\n    return 7\n":                                                        "tick 0: people.star: inputs(run, 1) returns no list of events",
		"def inputs(run, tick):\n    return [inputs]\n":                                                 "tick 0: people.star:1:1: what it returns[0]: ",
		"def inputs(run, tick):\n    return [{}]\n":                                                     "tick 0: people.star: inputs(run, 1), event 0: ",
		"def inputs(run, tick):\n    return ['x' * 900]\n":                                              "limit exceeded: 901 bytes or more, limits.inputs is 500",
		"def inputs(run, tick):\n    return [i for i in range(100000)]\n":                               "limits.gas is 5000 steps",
	} {
		s, err := inputsOf(t, "limits: {inputs: 500, gas: 5000}\n", program)
		require.NoError(t, err, program)
		out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: t.TempDir(), Runs: 1})
		require.NoError(t, err)
		require.Len(t, out.Failed, 1)
		require.Contains(t, out.Failed[0].Error, want)
		require.NotContains(t, out.Failed[0].Error, "reduce")
	}
}

// A module that a program of inputs loads is part of the experiment.
func TestInputsLoadModules(t *testing.T) {
	path := document(t, sir(t))
	dir := filepath.Dir(path)
	text, err := os.ReadFile(filepath.Join(dir, "people.star"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "people.star"), []byte(strings.Replace("load('born.star', 'ILL')\n"+string(text), "i < 3", "i < ILL", 1)), 0o600))
	born := func(text string) *experiment.Spec {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "born.star"), []byte(text), 0o600))
		s, err := experiment.Load(path, experiment.LoadOptions{})
		require.NoError(t, err)
		return s
	}
	plain, loaded := t.TempDir(), t.TempDir()
	run(t, load(t, sir(t)), experiment.Options{Dir: plain})
	s := born("ILL = 3\n")
	run(t, s, experiment.Options{Dir: loaded})
	require.Equal(t, tables(t, plain)["runs.csv"], tables(t, loaded)["runs.csv"])
	require.NotEqual(t, s.Hash, born("ILL = 4\n").Hash)
}
