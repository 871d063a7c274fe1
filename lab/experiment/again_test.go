package experiment_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
)

// TestRunsThatALimitHasEndedAreMadeAgain: limits are no part of an experiment, so what came of
// an earlier one does not show in its tables.
func TestRunsThatALimitHasEndedAreMadeAgain(t *testing.T) {
	const spread = "  spread: {cells: person, value: state.left, take: median}\n"
	document := func(limits string) string { return "limits: {" + limits + "}\n" + sir(t, "at: ", spread+"at: ") }
	enough := t.TempDir()
	run(t, load(t, document("rows: 100")), experiment.Options{Dir: enough})
	for _, limits := range []string{"rows: 2", "values: 1", "gas: 10"} {
		dir := t.TempDir()
		scarce := load(t, document(limits))
		out, err := experiment.Run(t.Context(), scarce, experiment.Options{Dir: dir, Runs: 3})
		require.NoError(t, err)
		require.Len(t, out.Failed, 3, limits)
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		again, err := experiment.Run(t.Context(), scarce, experiment.Options{Dir: dir, Runs: 3})
		require.NoError(t, err)
		require.Equal(t, out, again)
		same, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		require.Equal(t, log, same, "what comes to the same is not written again")

		s := load(t, document("rows: 100"))
		out, err = experiment.Run(t.Context(), s, experiment.Options{Dir: dir, Runs: 2})
		require.NoError(t, err)
		require.Zero(t, out.Before)
		require.EqualValues(t, 3, out.Done)
		require.Len(t, out.Failed, 1)
		out = run(t, s, experiment.Options{Dir: dir})
		require.EqualValues(t, 2, out.Before)
		require.Equal(t, tables(t, enough), tables(t, dir))
	}
}

func TestRunsThatLackARecordingAreMadeAgain(t *testing.T) {
	var o oracle
	path := asking(t)
	alone, dir := t.TempDir(), t.TempDir()
	out, err := experiment.Run(t.Context(), o.load(t, path, experiment.EffectsRecorded), experiment.Options{Dir: dir, Worlds: o.options()})
	require.NoError(t, err)
	require.Len(t, out.Failed, 5)
	run(t, o.load(t, path, ""), experiment.Options{Dir: dir, Worlds: o.options(), Jobs: 1})
	run(t, o.load(t, path, ""), experiment.Options{Dir: alone, Worlds: o.options(), Jobs: 1})
	require.EqualValues(t, 10, o.asked.Load())
	require.Equal(t, tables(t, alone), tables(t, dir))
}

// TestWhereRunsEndThatGoOnIsPartOfTheExperiment: two runs of one experiment do not end in other
// ticks because limits.ticks was raised between them.
func TestWhereRunsEndThatGoOnIsPartOfTheExperiment(t *testing.T) {
	hash := func(limits string) any {
		return load(t, limits+sir(t, "stop: {ticks: 30}", "stop: {when: 'status.I < 0'}")).Hash
	}
	require.NotEqual(t, hash(""), hash("limits: {ticks: 20}\n"))
	require.NotEqual(t, hash("limits: {ticks: 21}\n"), hash("limits: {ticks: 20}\n"))
	require.Equal(t, hash(""), hash("limits: {rows: 20}\n"))
	require.Equal(t, load(t, sir(t)).Hash, load(t, "limits: {ticks: 40}\n"+sir(t)).Hash, "it says ticks")
}
