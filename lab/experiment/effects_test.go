package experiment_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// oracle answers each question with another number, and counts them.
type oracle struct {
	asked atomic.Int64
	cost  receipt.Cost
}

func (o *oracle) Perform(context.Context, host.Call) (host.Result, error) {
	payload, err := canon.Marshal(o.asked.Add(1))
	return host.Result{Status: receipt.StatusOK, Payload: payload, Cost: o.cost}, err
}

func (o *oracle) options() local.Options {
	return local.Options{Adapters: map[string]host.Factory{"oracle": func(host.Setup) (host.Adapter, error) { return o, nil }}}
}

// asking writes the experiment that asks, with replacements, and returns its path.
func asking(t *testing.T, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/asks.yaml")
	require.NoError(t, err)
	return document(t, strings.NewReplacer(replace...).Replace(string(text)))
}

func (o *oracle) load(t *testing.T, path, mode string) *experiment.Spec {
	t.Helper()
	var live manifest.Live
	if mode == "" {
		live = manifest.Live{"model.ask"}
	}
	s, err := experiment.Load(path, experiment.LoadOptions{Worlds: o.options(), Effects: mode, Live: live})
	require.NoError(t, err)
	return s
}

func TestLiveEffectsOfRunsAreAskedForOnce(t *testing.T) {
	var o oracle
	path := asking(t)
	live := experiment.Options{Dir: t.TempDir(), Worlds: o.options()}
	out := run(t, o.load(t, path, ""), live)
	require.EqualValues(t, 10, o.asked.Load())
	require.EqualValues(t, 10, out.Spent.Calls)
	again := experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Jobs: 1}
	run(t, o.load(t, path, ""), again)
	recorded := experiment.Options{Dir: t.TempDir(), Worlds: o.options()}
	run(t, o.load(t, path, experiment.EffectsRecorded), recorded)
	require.Equal(t, tables(t, live.Dir), tables(t, again.Dir))
	require.Equal(t, tables(t, live.Dir), tables(t, recorded.Dir))
	kept, err := experiment.Keep(t.Context(), o.load(t, path, ""), 3, live, filepath.Join(t.TempDir(), "kept"))
	require.NoError(t, err)
	require.True(t, kept.Recorded)
	require.EqualValues(t, 10, o.asked.Load(), "a repetition costs nothing")
}

func TestRunsShareTheBudget(t *testing.T) {
	var o oracle
	path := asking(t, "calls: 10", "calls: 7")
	dir := t.TempDir()
	_, err := experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: dir, Worlds: o.options()})
	var budget *experiment.BudgetError
	require.ErrorAs(t, err, &budget)
	require.Equal(t, "calls", budget.Unit)
	require.EqualValues(t, 7, o.asked.Load())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte("calls: 7"), []byte("calls: 10"), 1), 0o600))
	run(t, o.load(t, path, ""), experiment.Options{Dir: dir, Worlds: o.options()})
	require.EqualValues(t, 10, o.asked.Load(), "it goes on with what was recorded")
}

// One answer that says that it used everything uses up no other run's budget; and where no
// max_cost says what it can have used, the sum is no credit.
func TestOneAnswerUsesUpNoOtherRunsBudget(t *testing.T) {
	for name, x := range map[string]struct {
		maxCost string
		asked   int64
	}{
		"with a max_cost": {"max_cost: {tokens: 10, micros: 10}, ", 10}, "without": {"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := oracle{cost: receipt.Cost{Tokens: math.MaxUint64, Micros: math.MaxUint64}}
			path := asking(t, "calls: 10", "calls: 10, tokens: 100, micros: 100")
			file := filepath.Join(filepath.Dir(path), "asks", "world.yaml")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("on_in_doubt"), []byte(x.maxCost+"on_in_doubt"), 1), 0o600))
			_, err = experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Jobs: 1})
			require.Equal(t, x.asked == 1, err != nil, "%v", err)
			require.Equal(t, x.asked, o.asked.Load())
		})
	}
}

func TestAnAttemptThatWasUnderWayIsInDoubtAndNotMadeAgain(t *testing.T) {
	var o oracle
	path := asking(t)
	run(t, o.load(t, path, ""), experiment.Options{Worlds: o.options(), Jobs: 1})
	answers := filepath.Join(filepath.Dir(path), "answers")
	text, err := os.ReadFile(answers)
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, cut := range [][]byte{{}, lines[19][:len(lines[19])/2]} {
		require.NoError(t, os.WriteFile(answers, append(bytes.Join(lines[:19], nil), cut...), 0o600))
		for range 2 {
			dir := t.TempDir()
			out, err := experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: dir, Worlds: o.options()})
			require.NoError(t, err)
			require.Empty(t, out.Failed)
			require.EqualValues(t, 10, o.asked.Load())
			require.Contains(t, tables(t, dir)["runs.csv"], ",-1,", "on_in_doubt: fail")
			require.Equal(t, experiment.Count{Runs: 1, All: 1}, out.InDoubt, "whatever the cell has heard")
			kept, err := experiment.Keep(t.Context(), o.load(t, path, ""), 5, experiment.Options{Dir: dir, Worlds: o.options()}, filepath.Join(t.TempDir(), "kept"))
			require.NoError(t, err)
			require.True(t, kept.Recorded)
		}
	}
}

func TestNothingIsPerformedUnlessItIsSaid(t *testing.T) {
	var o oracle
	for mode, want := range map[string]string{experiment.EffectsStub: "--live model.ask performs it, within effects: {budget: {calls: N}}", experiment.EffectsRecorded: "--live model.ask performs and records it"} {
		out, err := experiment.Run(t.Context(), o.load(t, asking(t), mode), experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
		require.NoError(t, err)
		require.Len(t, out.Failed, 5)
		require.Contains(t, out.Failed[0].Error, "nothing answers model.ask of asker/a")
		require.Contains(t, out.Failed[0].Error, want)
	}
	require.Zero(t, o.asked.Load())
}

// TestADocumentAlonePerformsNothing: what is live is said where it is run, by kind.
func TestADocumentAlonePerformsNothing(t *testing.T) {
	var o oracle
	for want, load := range map[string]experiment.LoadOptions{
		"type --live KIND for each kind":                                {},
		"which performs nothing, and model.ask is to be live":           {Effects: experiment.EffectsRecorded, Live: manifest.Live{"model.ask"}},
		"the rules declare no such effect; they have model.ask":         {Live: manifest.Live{"model.asks"}},
		"an experiment alone performs nothing: type --live KIND for ea": {Effects: experiment.EffectsLive},
	} {
		load.Worlds = o.options()
		_, err := experiment.Load(asking(t), load)
		require.ErrorContains(t, err, want)
	}
	_, err := experiment.Load(asking(t, "calls: 10", "tokens: 10"), experiment.LoadOptions{Worlds: o.options(), Live: manifest.Live{"model.ask"}})
	require.ErrorContains(t, err, "10:10: effects: without budget.calls nothing is performed: want effects: {budget: {calls: N}}")
	s, err := experiment.Load(asking(t, "mode: live", "mode: stub"), experiment.LoadOptions{Worlds: o.options(), Live: manifest.Live{"model.*"}})
	require.NoError(t, err)
	require.Empty(t, run(t, s, experiment.Options{Dir: t.TempDir(), Worlds: o.options()}).Failed)
	require.EqualValues(t, 10, o.asked.Load())
}

// TestADocumentWritesBesideItselfOnly: its answers go nowhere else, by no name and no link.
func TestADocumentWritesBesideItselfOnly(t *testing.T) {
	var o oracle
	outside := t.TempDir()
	for _, name := range []string{outside + "/answers", "../answers", "a/../../answers"} {
		_, err := experiment.Load(asking(t, "record: answers", "record: "+name), experiment.LoadOptions{Worlds: o.options(), Live: manifest.Live{"model.ask"}})
		require.ErrorContains(t, err, "is not beside the experiment")
	}
	for _, to := range []string{filepath.Join(outside, "file"), filepath.Join("..", "file")} {
		path := asking(t)
		require.NoError(t, os.Symlink(to, filepath.Join(filepath.Dir(path), "answers")))
		_, err := experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
		require.ErrorContains(t, err, "escapes")
		require.NoFileExists(t, filepath.Join(filepath.Dir(path), to))
	}
	for _, name := range []string{"log", "effects"} { // of results
		dir := t.TempDir()
		require.NoError(t, os.Symlink(filepath.Join(outside, name), filepath.Join(dir, name)))
		_, err := experiment.Run(t.Context(), o.load(t, asking(t, "record: answers, ", ""), ""), experiment.Options{Dir: dir, Worlds: o.options()})
		require.Error(t, err)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
	victim := filepath.Join(outside, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for _, name := range []string{"log", "lock", "results.csv"} {
		dir := t.TempDir()
		require.NoError(t, os.Link(victim, filepath.Join(dir, name)))
		_, err := experiment.Run(t.Context(), o.load(t, asking(t, "record: answers, ", ""), ""), experiment.Options{Dir: dir, Worlds: o.options()})
		require.ErrorIs(t, err, file.ErrLinked)
	}
	path := asking(t)
	require.NoError(t, os.Link(victim, filepath.Join(filepath.Dir(path), "answers")))
	_, err = experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
	require.ErrorIs(t, err, file.ErrLinked)
	data, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	require.Zero(t, o.asked.Load())
}

// TestOneAtATimeWritesAFileOfAnswers: two that did would each make all attempts, and write
// over each other's lines.
func TestOneAtATimeWritesAFileOfAnswers(t *testing.T) {
	var o oracle
	path := asking(t)
	answers, other := "answers", "another name"
	require.NoError(t, os.Symlink(answers, filepath.Join(filepath.Dir(path), other)))
	var within []error
	first := experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Jobs: 1, Ended: func(*experiment.Result, uint64, uint64) {
		asked := o.asked.Load()
		for _, name := range []string{answers, other} {
			s := o.load(t, path, "")
			s.Effects.Record = name
			_, err := experiment.Run(t.Context(), s, experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
			within = append(within, err)
			require.ErrorContains(t, err, name)
		}
		_, err := experiment.Run(t.Context(), o.load(t, path, experiment.EffectsRecorded), experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Runs: 1})
		require.NoError(t, err, "who reads may")
		require.Equal(t, asked, o.asked.Load())
	}}
	run(t, o.load(t, path, ""), first)
	require.Len(t, within, 10)
	for _, err := range within {
		require.ErrorIs(t, err, experiment.ErrAnswersUsed)
	}
	require.EqualValues(t, 10, o.asked.Load())
	require.Empty(t, run(t, o.load(t, path, experiment.EffectsRecorded), experiment.Options{Dir: t.TempDir(), Worlds: o.options()}).Failed)
}

func TestWhoReadsAnswersLeavesTheFileAsItIs(t *testing.T) {
	var o oracle
	path := asking(t)
	answers := filepath.Join(filepath.Dir(path), "answers")
	recorded := o.load(t, path, experiment.EffectsRecorded)
	_, err := experiment.Run(t.Context(), recorded, experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
	require.NoError(t, err)
	require.NoFileExists(t, answers)
	run(t, o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Jobs: 1})
	text, err := os.ReadFile(answers)
	require.NoError(t, err)
	text = append(text, `{"key":"12`...) // somebody is writing
	require.NoError(t, os.WriteFile(answers, text, 0o600))
	require.Empty(t, run(t, recorded, experiment.Options{Dir: t.TempDir(), Worlds: o.options()}).Failed)
	is, err := os.ReadFile(answers)
	require.NoError(t, err)
	require.Equal(t, text, is)
}

// TestWhatNoReceiptNamesStaysSetAside: the budget of money holds where the adapter counts none.
func TestWhatNoReceiptNamesStaysSetAside(t *testing.T) {
	var o oracle
	path := asking(t, "calls: 10", "calls: 10, micros: 100", "seeds: 5", "seeds: 5\nvariants: {dear: {set: {/effects/model.ask/max_cost: {micros: 30}}}}")
	out, err := experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Jobs: 1})
	var budget *experiment.BudgetError
	require.ErrorAs(t, err, &budget)
	require.Equal(t, "micros", budget.Unit)
	require.EqualValues(t, 3, o.asked.Load())
	require.Equal(t, experiment.Budget{Calls: 3, Micros: 90}, out.Spent)
	answers := filepath.Join(filepath.Dir(path), "answers")
	text, err := os.ReadFile(answers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(answers, bytes.Join(bytes.SplitAfter(text, []byte("\n"))[:5], nil), 0o600))
	out, err = experiment.Run(t.Context(), o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options(), Jobs: 1})
	require.ErrorAs(t, err, &budget)
	require.EqualValues(t, 3, o.asked.Load(), "an attempt that a kill has ended holds what it may have cost")
	require.Equal(t, experiment.Budget{Calls: 3, Micros: 90}, out.Spent)
}
