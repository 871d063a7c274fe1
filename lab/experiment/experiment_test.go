package experiment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// document writes an experiment beside the world of the tests, and returns its path.
func document(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata")))
	path := filepath.Join(dir, "experiment.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sir returns the text of the experiment of the tests, with replacements.
func sir(t testing.TB, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sir.yaml")
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(text), replace[i])
		text = bytes.Replace(text, []byte(replace[i]), []byte(replace[i+1]), 1)
	}
	return string(text)
}

func load(t testing.TB, text string) *experiment.Spec {
	t.Helper()
	s, err := experiment.Load(document(t, text), experiment.LoadOptions{})
	require.NoError(t, err)
	return s
}

// run carries out an experiment, none of whose runs fails.
func run(t testing.TB, s *experiment.Spec, o experiment.Options) *experiment.Outcome {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	out, err := experiment.Run(t.Context(), s, o)
	require.NoError(t, err)
	require.Empty(t, out.Failed)
	return out
}

// tables returns the contents of all files of results that have to be equal.
func tables(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, name := range []string{"runs", "ticks"} {
		for _, format := range experiment.Formats() {
			data, err := os.ReadFile(filepath.Join(dir, name+"."+format))
			require.NoError(t, err)
			out[name+"."+format] = string(data)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "dictionary.json"))
	require.NoError(t, err)
	out["dictionary.json"] = string(data)
	return out
}

func TestTablesAreTheSameHoweverManyRunsThereAreAtOnce(t *testing.T) {
	s := load(t, sir(t))
	one, two := t.TempDir(), t.TempDir()
	run(t, s, experiment.Options{Dir: one, Jobs: 1})
	run(t, s, experiment.Options{Dir: two, Jobs: 4})
	require.Equal(t, tables(t, one), tables(t, two))
	files, err := os.ReadDir(one)
	require.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		if f.Name() == "lock" { // which holds nothing
			continue
		}
		require.Equal(t, "-rw-------", info.Mode().String(), f.Name())
	}
	require.Equal(t, 12+1, strings.Count(tables(t, one)["runs.csv"], "\n"))
	require.Equal(t, 12*7+1, strings.Count(tables(t, one)["ticks.csv"], "\n"), "ticks 0, 5, ... 30")
}

func TestWhatIsCutOffOfTheLogIsMadeAgain(t *testing.T) {
	s := load(t, sir(t))
	whole := t.TempDir()
	run(t, s, experiment.Options{Dir: whole})
	log, err := os.ReadFile(filepath.Join(whole, "log"))
	require.NoError(t, err)
	want := tables(t, whole)
	for _, size := range []int{0, 1, len(log) / 3, len(log) - 1} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), log[:size], 0o600))
		out := run(t, s, experiment.Options{Dir: dir, Jobs: 1})
		require.EqualValues(t, bytes.Count(log[:size], []byte("\n")), out.Before)
		require.Equal(t, want, tables(t, dir))
	}
}

func TestResultsOfAnotherExperimentAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	run(t, load(t, sir(t)), experiment.Options{Dir: dir, Runs: 1})
	was := tables(t, dir)
	_, err := experiment.Run(t.Context(), load(t, sir(t, "seeds: 6", "seeds: 7")), experiment.Options{Dir: dir})
	require.ErrorIs(t, err, experiment.ErrOtherSpec)
	require.Equal(t, was, tables(t, dir))
	run(t, load(t, "# a comment, and another bound\nlimits: {runs: 500}\n"+sir(t)), experiment.Options{Dir: dir, Runs: 2})
}

func TestInterruptedRunsAreMadeAgain(t *testing.T) {
	s := load(t, sir(t))
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	out, err := experiment.Run(ctx, s, experiment.Options{Dir: dir, Jobs: 1, Ended: func(_ *experiment.Result, done, _ uint64) {
		if done == 5 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 5, out.Done)
	require.EqualValues(t, 5, run(t, s, experiment.Options{Dir: dir}).Before)
}

func TestEachRunIsMadeAgainAsAWorld(t *testing.T) {
	s := load(t, sir(t))
	o := experiment.Options{Dir: t.TempDir()}
	run(t, s, o)
	for id := experiment.RunID(1); uint64(id) <= s.Runs(); id++ {
		dir := filepath.Join(t.TempDir(), "kept")
		kept, err := experiment.Keep(t.Context(), s, id, o, dir)
		require.NoError(t, err)
		require.True(t, kept.Recorded)
		require.Contains(t, tables(t, o.Dir)["runs.csv"], kept.ExecutionHash.String()+","+kept.StateRoot.String())
		lw, err := local.Open(dir, local.Options{})
		require.NoError(t, err)
		require.NoError(t, lw.CheckSource(), "its world.yaml says what is in force")
		report, err := lw.Verify(t.Context(), local.Verification{})
		require.NoError(t, err)
		require.True(t, report.OK)
		require.Equal(t, kept.ExecutionHash, report.ExecutionHash)
		require.NoError(t, lw.Close())
	}
}

func TestAMeasureThatFailsNamesItsPlaceAndKeepsTheOtherRuns(t *testing.T) {
	s := load(t, sir(t, "at: [every 5, end]", "at: every 1",
		"  left: {cells: person, value: state.left, take: [mean, p90]}", `  odd: {cells: person, value: 'tick == 9 && cell.key == "7" && state.status == "S" ? state.nothing : state.left', take: mean}`))
	dir := t.TempDir()
	out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: dir})
	require.NoError(t, err)
	require.NotEmpty(t, out.Failed)
	require.Less(t, len(out.Failed), 12)
	require.EqualValues(t, 12, out.Done)
	for _, f := range out.Failed {
		require.Regexp(t, `^run \d+, variant (usual|masks), seed \d, tick 9: measure odd: tick == 9 .*, of cell person/7, at tick 9: `, f.Error)
		kept, err := experiment.Keep(t.Context(), s, f.Run, experiment.Options{Dir: dir}, filepath.Join(t.TempDir(), "kept"))
		require.NoError(t, err)
		require.Equal(t, f.Error, kept.Error)
	}
	again, err := experiment.Run(t.Context(), s, experiment.Options{Dir: dir})
	require.NoError(t, err)
	require.Equal(t, out.Failed, again.Failed)
}

func TestLimitsAreNamed(t *testing.T) {
	for _, x := range []struct{ limits, want string }{
		{"limits: {bytes: 100}\n", "limits.bytes"},
		{"limits: {rows: 2}\n", "limits.rows"},
	} {
		s := load(t, x.limits+sir(t))
		out, err := experiment.Run(t.Context(), s, experiment.Options{Dir: t.TempDir(), Runs: 1})
		if err == nil {
			require.Len(t, out.Failed, 1)
			err = errors.New(out.Failed[0].Error)
		}
		require.Contains(t, err.Error(), x.want)
	}
}

// TestBadDocuments has what each bad document is told: line, column and what is wrong.
func TestBadDocuments(t *testing.T) {
	for _, x := range []struct {
		text string
		want string
	}{
		{"", "1:1: is empty"},
		{"experiment: x", "version: want version: 1"},
		{sir(t, "version: 1", "version: 2"), "2:10: version 2 is none that this program reads"},
		{sir(t, "seeds: 6", "sedes: 6"), `7:1: unknown key "sedes": did you mean "seeds"?`},
		{sir(t, "seeds: 6", "seeds: [1, 2, 1]"), "7:15: the seed 1 is there twice"},
		{sir(t, "seeds: 6", "seeds: 100001"), "limits.runs raises that"},
		{sir(t, "seeds: 6", "seeds: 18446744073709551615\nlimits: {runs: 18446744073709551615}"), "limits.runs is 18446744073709551615: an experiment has at most 1000000"},
		{sir(t, "seeds: 6", "seeds: &a 6"), "7:8: anchors are not allowed"},
		{sir(t, "person.infect: 10", "person.infekt: 10"), `6:20: no reducer reads the param "person.infekt": declare it in world.yaml, under reducers.person.params; did you mean "infect"?`},
		{sir(t, "person.infect: 10", "nobody.infect: 10"), `there is no reducer "nobody"`},
		{sir(t, "person.infect: 10", "person.unread: 10"), `6:20: no reducer reads the param "person.unread": the source of person takes no "unread" from ctx.params`},
		{sir(t, "{params: {person.infect: 10}}", "{set: {/limits/mailbox: 99999999999}}"), "the variant masks is not valid"},
		{sir(t, "{params: {person.infect: 10}}", "{world: nowhere}"), `6:18: the variant masks: there is no world file "nowhere"`},
		{sir(t, "{params: {person.infect: 10}}", "{patch: people.star}"), "6:18: the variant masks"},
		{sir(t, "world: sir", "world: sea"), `3:8: there is no world.yaml in "sea"`},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.infect: [1, \"a\"]}"), "person.infect is a number in world.yaml, and not a text"},
		{sir(t, "{params: {person.infect: 10}}", "{params: {person.infect: often}}"), "6:35: person.infect is a number in world.yaml, and not a text"},
		{sir(t, "{params: {person.infect: 10}}", "{params: {person.infect: [10]}}"), "6:35: person.infect is a number in world.yaml, and not a list"},
		{sir(t, "{params: {person.infect: 10}}", "{params: {person.infect: null}}"), "6:35: person.infect is a number in world.yaml, and not nothing"},
		{sir(t, "{params: {person.infect: 10}}", "{set: {/limits/mailbox: 10, /reducers/person/params/infect: often}}"), "6:70: the variant masks: person.infect is a number in world.yaml, and not a text"},
		{sir(t, "{params: {person.infect: 10}}", "{set: {/reducers/person/params: {people: many, infect: 3}}}"), "6:42: the variant masks: person.people is a number in world.yaml, and not a text"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.days: [1, 1]}"), "the value 1 is there twice"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.days: {between: [1, 9]}}"), "an interval needs sample"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.infect: [1, 2]}"), "person.infect is varied under params, too"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.days: {between: [1, 9.5]}}"), "8:23: person.days is an integer in world.yaml: want integers, or write a float there, 3.0"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.days: {from: 1, to: 2, step: 0.5}}"), "person.days is an integer in world.yaml"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.share: {from: 1e16, to: 10000000000000002, step: 0.5}}"), "the step is too small"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.share: {between: [0, .inf]}}"), "8:"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.share: {between: [-1.7e308, 1.7e308]}}"), "further from each other than a float can tell"},
		{sir(t, "seeds: 6", "seeds: 6\nparams: {person.share: {between: [-0.5, x]}}"), "want a number"},
		{sir(t, "inputs: people.star", "inputs: people.txt"), `8:9: "people.txt": want a file of JSON lines`},
		{sir(t, "inputs: people.star", "inputs: nobody.star"), `8:9: there is no file "nobody.star"`},
		{sir(t, "inputs: people.star", "inputs: nobody.jsonl"), `8:9: there is no file "nobody.jsonl"`},
		{"limits: {inputs: 10}\n" + sir(t, "inputs: people.star", "inputs: go.jsonl"), `9:9: "go.jsonl" is larger than 10 bytes: limits.inputs raises that`},
		{sir(t, "{params: {person.infect: 10}}", "{patch: sir}"), `6:18: "sir" is not a regular file`},
		{sir(t, "stop: {ticks: 30}", "stop: {ticks: 30, when: 'status.I =='}"), "9:25"},
		{sir(t, "state.status, count", "state..status, count"), "11:3: measure status"},
		{sir(t, "  status: {cells: person, value: state.status, count: [S, I, R]}", "  seed: {cells: person}"), "the column seed of a measure has the name of another column"},
		{sir(t, "stop: {ticks: 30}", "stop: {ticks: 2000000}"), "limits.ticks raises that"},
		{sir(t, "at: [every 5, end]", "at: [every 5, 31, end]"), "13:15: tick 31 is never reached: a run has the ticks 0 to 30"},
		{sir(t, "inputs: people.star\n", "", "{params: {person.infect: 10}}", "{params: {}}"), "6:3: the variant masks has the rules of usual: its runs would be the same"},
		{
			sir(t, "inputs: people.star\n", "params: {person.infect: [1, 2]}\n", "{params: {person.infect: 10}}", "{set: {/reducers/person/params/infect: 3}}"),
			"6:3: the variant masks has the rules of usual: its runs would be the same",
		},
		{sir(t, "stop: {ticks: 30}\n", ""), "8:9: people.star may have something for any tick, so no run is idle before its last one: want stop.ticks, or stop.when"},
		{sir(t, "stop: {ticks: 30}", "stop: {idle: true}"), "9:7: people.star may have something for any tick"},
		{sir(t, "at: [every 5, end]", "at: every 31"), "13:5: every 31 is never reached: a run has the ticks 0 to 30"},
	} {
		_, err := experiment.Load(document(t, x.text), experiment.LoadOptions{})
		var faults *source.Error
		require.ErrorAs(t, err, &faults, "%s", x.text)
		require.Contains(t, err.Error(), x.want)
	}
}

func TestAPatchThatSetsAParamToAnotherKindIsRefused(t *testing.T) {
	path := document(t, sir(t, "{params: {person.infect: 10}}", "{patch: often.json}"))
	loaded, err := local.Load(filepath.Join(filepath.Dir(path), "sir", local.ManifestFile), local.Options{})
	require.NoError(t, err)
	encoded, err := loaded.Manifest.Encode()
	require.NoError(t, err)
	for value, want := range map[string]string{"5": "", `"often"`: "experiment.yaml:6:18: the variant masks: person.infect is a number in world.yaml, and not a text"} {
		text := fmt.Sprintf(`{"base_manifest_hash": %q, "ops": [{"op": "set", "path": "/reducers/person/params/infect", "value": %s}]}`, canon.Sum(encoded), value)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "often.json"), []byte(text), 0o600))
		_, err := experiment.Load(path, experiment.LoadOptions{})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestPointsOfParams(t *testing.T) {
	s := load(t, sir(t, "seeds: 6", "seeds: [7]\nparams: {person.contacts: [1, 2], person.days: {from: 2, to: 6, step: 2}}"))
	require.Equal(t, [][]any{{int64(1), int64(2)}, {int64(1), int64(4)}, {int64(1), int64(6)}, {int64(2), int64(2)}, {int64(2), int64(4)}, {int64(2), int64(6)}}, s.Points)
	require.EqualValues(t, 12, s.Runs())
	require.Equal(t, experiment.Planned{ID: 8, Variant: 1, Point: 1, Seed: 7}, s.Planned(8))
	for values, want := range map[string][][]any{
		"{from: 0, to: 0.3, step: 0.1}":          {{0.0}, {0.1}, {0.2}, {0.3}},
		"{from: -0.1, to: 0.19, step: 1e-1}":     {{-0.1}, {0.0}, {0.1}},
		"{from: 0, to: 2, step: 1}":              {{0.0}, {1.0}, {2.0}},
		"{from: 1, to: 1, step: 0.3333}":         {{1.0}},
		"[0, 1]":                                 {{int64(0)}, {int64(1)}},
		"{from: 1e300, to: 3e300, step: 1e+300}": {{1e300}, {2e300}, {3e300}},
	} {
		s := load(t, sir(t, "seeds: 6", "seeds: [7]\nparams: {person.share: "+values+"}"))
		require.Equal(t, want, s.Points, values)
	}
}

func TestALatinHypercubeHasAPointInEachPart(t *testing.T) {
	text := sir(t, "seeds: 6", "seeds: [7]\nparams: {person.contacts: {between: [1, 10]}, person.share: {between: [0, 1]}}\nsample: {latin: 10, seed: 3}")
	s := load(t, text)
	require.Len(t, s.Points, 10)
	contacts, parts := make(map[int64]bool), make(map[int]bool)
	for _, p := range s.Points {
		contacts[p[0].(int64)] = true
		parts[int(p[1].(float64)*10)] = true // world.yaml has a float
	}
	require.Len(t, contacts, 10)
	require.Len(t, parts, 10)
	require.Equal(t, s.Points, load(t, text).Points, "they are those of the seed")
}

func FuzzLoad(f *testing.F) {
	f.Add(sir(f))
	f.Add("experiment: x\nversion: 1\nworld: sir\nseeds: {first: 1, count: 2}\nparams: {person.share: {between: [1, 2.5]}}\nsample: {latin: 3, seed: 1}\nmeasures: {n: {cells: person}}\n")
	dir := f.TempDir()
	require.NoError(f, os.CopyFS(dir, os.DirFS("testdata")))
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "experiment.yaml")
		require.NoError(t, os.WriteFile(path, []byte("limits: {runs: 50}\n"+text), 0o600))
		s, err := experiment.Load(path, experiment.LoadOptions{})
		if err != nil {
			return
		}
		require.LessOrEqual(t, s.Runs(), uint64(50))
	})
}
