package local_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const asker = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return (state or []) + [event.data["payload"]]
    ctx.effect(event.data["kind"], event.data["what"])
    return state or []
`

const skies = `{"kind": "outside.ask", "params": "sky", "payload": "grey"}` + "\n"

// anew is a world that has paid and asked a stub, a backup of it, and what tries rules.
type anew struct {
	t    *testing.T
	till *till
	home string
	copy string
	last *local.DryRunResult // open; nil: none is

	undecided bool // no decision is repeated
}

func newAnew(t *testing.T) *anew {
	t.Helper()
	a := &anew{t: t, till: new(till), home: t.TempDir(), copy: filepath.Join(t.TempDir(), "copy")}
	a.write(local.ManifestFile, worldtest.Caller("shop",
		"outside.pay: {adapter: till, on_in_doubt: ask}\n  outside.ask: {adapter: stub, config: {answers: answers.jsonl}}"))
	a.write("caller.star", asker)
	a.write("answers.jsonl", skies)
	require.NoError(t, local.Create(a.home, local.CreateOptions{ID: "parent"}, a.till.options()))
	w := openPaying(t, a.home, a.till.options())
	for _, data := range []map[string]any{
		{"to": "a", "kind": "outside.pay", "what": "rent"}, {"to": "b", "kind": "outside.ask", "what": "sky"},
	} {
		_, err := w.Submit(t.Context(), "go", data)
		require.NoError(t, err)
		require.NoError(t, w.Run(t.Context()))
	}
	require.NoError(t, w.Close())
	a.backup()
	t.Cleanup(a.close)
	return a
}

func (a *anew) backup() {
	a.t.Helper()
	w := openPaying(a.t, a.home, a.till.options())
	_, err := w.Backup(a.copy)
	require.NoError(a.t, errors.Join(err, w.Close()))
}

func (a *anew) write(name, text string) {
	a.t.Helper()
	require.NoError(a.t, os.WriteFile(filepath.Join(a.home, name), []byte(text), 0o600))
}

// try makes the world anew of its sources as they are now. What it returns is open until
// the next try.
func (a *anew) try(live ...string) (was, is *local.Supposed) {
	a.t.Helper()
	a.close()
	rules, err := local.Load(filepath.Join(a.home, local.ManifestFile), a.till.options())
	require.NoError(a.t, err)
	x, err := local.DryRun(a.t.Context(), local.DryRunOptions{
		World: a.home, Copy: a.copy, Dir: a.t.TempDir(), Rules: rules, Live: live, Undecided: a.undecided, Actor: "ada",
	}, a.till.options())
	require.NoError(a.t, err)
	a.last = x
	return x.Was, x.Is
}

func (a *anew) close() {
	if a.last != nil {
		require.NoError(a.t, a.last.Close())
	}
	a.last = nil
}

// TestWorldIsMadeAnewOfItsInputs under other rules: what is recorded answers where it fits,
// stubs answer as their files are now, and nothing that is live is performed.
func TestWorldIsMadeAnewOfItsInputs(t *testing.T) {
	a := newAnew(t)
	was, x := a.try()
	d := differs(t, was.Fork, x.Fork)
	require.True(t, d.Same())
	require.Equal(t, [4]uint64{1, 1, 0, 2}, [4]uint64{x.Answered, x.Stubbed, x.Performed, x.Followed.Events})
	require.Empty(t, x.Unanswered)

	a.write("caller.star", strings.Replace(asker, "[event.data", `["got", event.data`, 1))
	was, x = a.try()
	d = differs(t, was.Fork, x.Fork)
	require.Len(t, d.CellsChanged, 2)
	require.Empty(t, d.IntentsAdded)
	require.Equal(t, `["got","paid rent"]`, toldOf(t, x.Fork, "a"))

	a.write("caller.star", asker)
	a.write("answers.jsonl", strings.Replace(skies, "grey", "blue", 1))
	_, x = a.try()
	require.Equal(t, `["blue"]`, toldOf(t, x.Fork, "b"), "what a stub answers is part of the rules")
	require.Equal(t, `["paid rent"]`, toldOf(t, x.Fork, "a"))
	require.Equal(t, []string{"rent"}, a.till.paid)

	w := openPaying(t, a.home, a.till.options())
	require.Equal(t, `["grey"]`, toldOf(t, w, "b"), "the world is as it was")
	require.NoError(t, w.Close())
}

// TestAnswersOfAWorldMadeAnewAreCountedByWhoGaveThem: those that were told. What a stub
// answers by now and the world still waits for is none.
func TestAnswersOfAWorldMadeAnewAreCountedByWhoGaveThem(t *testing.T) {
	a := newAnew(t)
	w := openPaying(t, a.home, a.till.options())
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "c", "kind": "outside.ask", "what": "moon"})
	require.NoError(t, err)
	require.Error(t, w.Run(t.Context()), "the stub has no answer")
	require.NoError(t, errors.Join(w.Close(), os.RemoveAll(a.copy)))
	a.backup()

	a.write("answers.jsonl", skies+`{"kind": "outside.ask", "params": "moon", "payload": "full"}`+"\n")
	_, x := a.try()
	require.Equal(t, `[]`, toldOf(t, x.Fork, "c"))
	require.Equal(t, [4]uint64{1, 1, 0, 3}, [4]uint64{x.Answered, x.Stubbed, x.Performed, x.Followed.Events})
}

// TestWorldThatIsMadeAnewLeavesOpenWhatNothingAnswers, and says which effects it is, unless they
// are to be performed.
func TestWorldThatIsMadeAnewLeavesOpenWhatNothingAnswers(t *testing.T) {
	a := newAnew(t)
	a.write("caller.star", strings.Replace(asker, `event.data["what"]`, `event.data["what"] + "!"`, 1))
	_, x := a.try()
	require.Len(t, x.Unanswered, 2)
	require.Equal(t, "outside.pay", x.Unanswered[0].Kind)
	require.True(t, x.Unanswered[0].Recorded)
	require.False(t, x.Unanswered[1].Recorded, "the stub's")
	require.Len(t, x.Unknown, 2)
	require.Equal(t, []string{"rent"}, a.till.paid)

	_, x = a.try("outside.pay")
	require.Equal(t, []string{"rent", "rent!"}, a.till.paid)
	require.Equal(t, uint64(1), x.Performed)
	require.Len(t, x.Unanswered, 1, "the stub has no answer, and is asked nevertheless")
	require.Equal(t, "outside.ask", x.Unanswered[0].Kind)
	require.False(t, x.Unanswered[0].Recorded)

	a.write("answers.jsonl", `{"kind": "outside.ask", "payload": "any"}`+"\n")
	_, x = a.try("outside.pay")
	require.Empty(t, x.Unanswered)
	require.Equal(t, `["any"]`, toldOf(t, x.Fork, "b"))
	require.NoError(t, x.Fork.RunUntil(t.Context(), math.MaxUint64))
}

// TestWorldIsMadeAnewUnderTheRulesInForce, whatever it had at first.
func TestWorldIsMadeAnewUnderTheRulesInForce(t *testing.T) {
	a := newAnew(t)
	a.write("caller.star", strings.Replace(asker, "[event.data", `["got", event.data`, 1))
	rules, err := local.Load(filepath.Join(a.home, local.ManifestFile), a.till.options())
	require.NoError(t, err)
	w := openPaying(t, a.home, a.till.options())
	require.NoError(t, w.Update(func(w *world.World) error {
		next := *rules.Manifest
		return worldtest.Adopt(t.Context(), w, &next, rules.Contents)
	}))
	require.NoError(t, errors.Join(w.Close(), os.RemoveAll(a.copy)))
	a.backup()
	was, x := a.try()
	require.Equal(t, journal.Seq(1), x.Forked.At)
	require.Equal(t, was.Fork.Status().Manifest, x.Fork.Status().Manifest)
	require.Equal(t, `["got","paid rent"]`, toldOf(t, was.Fork, "a"))
	d := differs(t, was.Fork, x.Fork)
	require.True(t, d.Same())
}
