package experiment_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

const futures = `experiment: futures
version: 1
from: sir@t6
variants:
  usual:
  masks: {params: {person.infect: 5}}
  small: {set: {/limits/mailbox: 1000}}
seeds: 4
stop: {ticks: 20}
measures:
  status: {cells: person, value: state.status, count: [S, I, R]}
at: [every 1, end]
`

// town makes the world of the tests and runs it for some ticks; it returns the directory
// of the experiment.
func town(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(document(t, futures))
	world := filepath.Join(dir, "sir")
	require.NoError(t, local.Create(world, local.CreateOptions{ID: "town"}, local.Options{}))
	lw, err := local.Open(world, local.Options{})
	require.NoError(t, err)
	for i := range 30 {
		_, err := lw.Submit(t.Context(), "born", map[string]any{"id": strconv.Itoa(i), "ill": i < 3})
		require.NoError(t, err)
	}
	_, err = lw.Drive(t.Context(), local.Course{Ticks: 9})
	require.NoError(t, err)
	require.NoError(t, lw.Close())
	return dir
}

func TestRunsBranchOffFromAMoment(t *testing.T) {
	dir := town(t)
	s, err := experiment.Load(filepath.Join(dir, "experiment.yaml"), experiment.LoadOptions{})
	require.NoError(t, err)
	o := experiment.Options{Dir: t.TempDir()}
	run(t, s, o)
	rows := tables(t, o.Dir)
	require.Contains(t, rows["ticks.csv"], "\n1,usual,1,6,", "the first row is the moment")
	for _, id := range []experiment.RunID{1, 2, 3, 8} {
		kept := filepath.Join(t.TempDir(), "kept")
		k, err := experiment.Keep(t.Context(), s, id, o, kept)
		require.NoError(t, err)
		require.True(t, k.Recorded)
		lw, err := local.Open(kept, local.Options{})
		require.NoError(t, err)
		report, err := lw.Verify(t.Context(), local.Verification{})
		require.NoError(t, err)
		require.True(t, report.OK)
		require.Equal(t, k.ExecutionHash, report.ExecutionHash)
		require.NoError(t, lw.Close())
	}
	lw, err := local.Open(filepath.Join(dir, "sir"), local.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 9, lw.Status().Time, "the world has not changed")
	require.NoError(t, lw.Close())
}

func TestBadMoments(t *testing.T) {
	dir := town(t)
	for at, want := range map[string]string{"5": "tick 5 is never", "27": "tick 27 is never", "every 100": "every 100 is never", "[every 26, 6, 26]": ""} {
		path := filepath.Join(dir, "at.yaml")
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(futures, "at: [every 1, end]", "at: "+at, 1)), 0o600))
		_, err := experiment.Load(path, experiment.LoadOptions{})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want+" reached: a run has the ticks 6 to 26")
		}
	}
	for from, want := range map[string]string{
		"sir": "want DIR@MOMENT", "sir@t99": `the world has no moment "t99"`, "sea@t1": `there is no world in "sea"`, "sir@": "want DIR@MOMENT",
	} {
		path := filepath.Join(dir, "bad.yaml")
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(futures, "sir@t6", from, 1)), 0o600))
		_, err := experiment.Load(path, experiment.LoadOptions{})
		require.ErrorAs(t, err, new(*source.Error))
		require.Contains(t, err.Error(), "bad.yaml:3:7: ")
		require.Contains(t, err.Error(), want)
	}
}
