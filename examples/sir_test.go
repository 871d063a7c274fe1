package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/lab/experiment"
)

// masks asks what masks do in the town of 1,000. What is measured of who was infected first, and
// of who lives where, is alike in both variants.
const masks = `
experiment: masks
version: 1
world: .
inputs: events.jsonl
seeds: %d
variants:
  open:
  masks: {params: {person.transmits: 0.06}}
stop: {ticks: 400, idle: true}
measures:
  infected: {cells: person}
  first: {cells: person, where: 'state.status == "R" && state.since == 2'}
  day: {cells: person, value: state.since, take: [mean, max]}
  low: {cells: person, where: int(cell.key) < 500}
  share: low / infected
`

// apart runs the experiment with so many seeds, and returns of which measures the interval of
// the paired differences is without 0.
func apart(t *testing.T, seeds int) map[string]bool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sir")
	require.NoError(t, examples.Copy("sir", dir))
	file := filepath.Join(dir, "masks.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, masks, seeds), 0o600))
	s, err := experiment.Load(file, experiment.LoadOptions{})
	require.NoError(t, err)
	results := filepath.Join(dir, "results")
	out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: results, Formats: []string{experiment.FormatCSV}})
	require.NoError(t, err)
	require.Empty(t, out.Failed)
	summary, err := experiment.Summarise(results)
	require.NoError(t, err)
	without := make(map[string]bool)
	for _, p := range summary.Pairs {
		require.Equal(t, seeds, p.N)
		without[p.Measure] = p.Apart()
		t.Logf("%d runs: %s: %.4g in %.4g ... %.4g", 2*seeds, p.Measure, *p.Mean, *p.Low, *p.High)
	}
	return without
}

// TestPairsOfFiftySeedsSayWhatAThousandRunsSay: the interval of 50 pairs is without 0 exactly
// where that of a thousand runs is. WORLDKERNEL_RUNS=1000 makes those; without it stands what
// they have said, and what the model says: masks change how many are infected and for how
// long, not who recovers on the first day, nor where the infected live.
func TestPairsOfFiftySeedsSayWhatAThousandRunsSay(t *testing.T) {
	want := map[string]bool{"infected": true, "day.mean": true, "day.max": true, "low": true, "first": false, "share": false}
	require.Equal(t, want, apart(t, 50))
	if text := os.Getenv("WORLDKERNEL_RUNS"); text != "" {
		runs, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.Equal(t, want, apart(t, runs/2))
	}
}
