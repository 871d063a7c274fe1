package experiment_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/world/local"
)

// of returns an experiment of testdata, with replacements.
func of(t *testing.T, file string, replace ...string) *experiment.Spec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(text), replace[i])
	}
	return load(t, strings.NewReplacer(replace...).Replace(string(text)))
}

// TestWhatWentWrongWithinRunsIsCounted holds the counts to the cells of runs made again, and
// that a run and a cell are named.
func TestWhatWentWrongWithinRunsIsCounted(t *testing.T) {
	s := of(t, "fragile.yaml")
	o := experiment.Options{Dir: t.TempDir()}
	out := run(t, s, o)
	require.False(t, out.Clean())
	summary, err := experiment.Summarise(o.Dir)
	require.NoError(t, err)
	require.False(t, summary.Clean())
	strong, weak := summary.ByVariant[0], summary.ByVariant[1]
	require.Equal(t, experiment.Ended{Variant: "strong", Done: 4}, strong)
	require.Equal(t, out.Tally, weak.Tally, "it is all in one variant")
	var halted, failed uint64
	for id := experiment.RunID(2); uint64(id) <= s.Runs(); id += 2 {
		dir := filepath.Join(t.TempDir(), "kept")
		kept, err := experiment.Keep(t.Context(), s, id, o, dir)
		require.NoError(t, err)
		require.True(t, kept.Recorded)
		lw, err := local.Open(dir, local.Options{})
		require.NoError(t, err)
		halted += uint64(lw.Status().Halted)
		for rec, err := range lw.Scan(0) {
			require.NoError(t, err)
			if rec.Record.Kind == journal.KindFailed {
				failed++
			}
		}
		require.NoError(t, lw.Close())
	}
	require.Equal(t, halted, out.Halted.All)
	require.Equal(t, failed-halted, out.Skipped.All)
	require.Positive(t, out.Skipped.All)
	require.Positive(t, out.Halted.All)
	require.Equal(t, out.First, summary.First())
	row := strings.Split(strings.Split(tables(t, o.Dir)["runs.csv"], "\n")[out.First.Run], ",")
	require.Equal(t, strconv.FormatUint(uint64(out.First.Run), 10), row[0])
	require.Contains(t, row[len(row)-2], fmt.Sprintf("%s at tick %d: ", out.First.Cell, out.First.Tick))
	require.Contains(t, out.First.Error, "it breaks at hit")
	var page bytes.Buffer
	require.NoError(t, experiment.WriteReport(&page, o.Dir))
	require.Contains(t, page.String(), "What went wrong")
	require.Contains(t, page.String(), "it breaks at hit")
}

// TestALineOfTheReportIsOfOnePoint: runs under other params are another population.
func TestALineOfTheReportIsOfOnePoint(t *testing.T) {
	lines := func(points string) (out []map[string]any) {
		s := load(t, sir(t, "variants:\n  usual:\n  masks: {params: {person.infect: 10}}", "params: {person.infect: "+points+"}"))
		dir := t.TempDir()
		run(t, s, experiment.Options{Dir: dir})
		var page bytes.Buffer
		require.NoError(t, experiment.WriteReport(&page, dir))
		_, data, _ := strings.Cut(page.String(), `id="data">`)
		data, _, _ = strings.Cut(data, "</script>")
		var report struct{ Lines []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(data), &report))
		return report.Lines
	}
	both, few, many := lines("[5, 90]"), lines("[5]"), lines("[90]")
	require.Len(t, both, len(few)+len(many))
	for i := range many {
		many[i]["p"] = 1.0
	}
	require.Equal(t, append(few, many...), both)
	require.NotEqual(t, few[0]["mean"], many[0]["mean"])
}

// TestWhyRunsHaveFailedIsGathered: alike is what differs in run, cell and tick alone.
func TestWhyRunsHaveFailedIsGathered(t *testing.T) {
	s := of(t, "fragile.yaml", "value: state, take: sum}", `value: 'state > 2 && cell.reducer == "lax" ? state.x : state', take: sum}`, "strict.most: 2, lax.most: 3", "lax.most: 2", "stop:", "at: every 1\nstop:")
	dir := t.TempDir()
	out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: dir})
	require.NoError(t, err)
	require.Greater(t, len(out.Failed), 1)
	summary, err := experiment.Summarise(dir)
	require.NoError(t, err)
	require.Len(t, summary.Failures, 1, "%v", summary.Failures)
	why := summary.Failures[0]
	require.EqualValues(t, len(out.Failed), why.Runs)
	require.Equal(t, out.Failed[0].Run, why.Run)
	require.Regexp(t, `^measure hits: state > 2 .* : state: no such overload`, why.Reason)
	require.Equal(t, why.Runs, summary.ByVariant[0].Failed)
}
