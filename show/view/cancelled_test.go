package view_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// outside is an adapter whose effects end as their kind says. Those of slow end when their
// cells have cancelled them.
type outside struct{ lw *local.World }

func (o *outside) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	p := &call.Permit
	if strings.HasPrefix(p.Kind, "slow.") {
		_, key, _ := strings.Cut(p.Cell, "/")
		if err := o.cancel(ctx, key, p.Key); err != nil {
			return host.Result{}, err
		}
	}
	switch p.Kind {
	case "slow.ok":
		return host.OK("done")
	case "long.job":
		payload, err := (&receipt.Accepted{ID: "job-1", Message: "half of it"}).Encode()
		return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeAccepted, Payload: payload}, err
	case "ask.first":
		q := receipt.Question{Requests: map[string]receipt.InputRequest{"sure": {Message: "Drop it?", Schema: canon.Raw(canon.Null)}}}
		payload, err := q.Encode()
		return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeInputRequired, Payload: payload}, err
	case "flaky":
		return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Payload: canon.Raw(canon.Null)}, nil
	}
	return host.Result{Status: receipt.StatusError, Payload: canon.Raw(canon.Null)}, nil
}

func (o *outside) Ask(ctx context.Context, call host.Call) (host.Result, error) {
	return o.Perform(ctx, call)
}

// cancel has a cell cancel what it asked for, and waits until it has.
func (o *outside) cancel(ctx context.Context, cell string, intent receipt.Key) error {
	_, err := o.lw.Submit(ctx, "go", map[string]any{"to": cell, "cancel": true})
	for err == nil {
		is, head := false, o.lw.Head().ID
		o.lw.View(func(w *world.Moment) {
			e, _ := w.Intent(intent)
			is = w.Cancelled(&e, 0)
		})
		if is {
			break
		}
		err = o.lw.Await(ctx, head)
	}
	return err
}

// cancelling is a world whose cells ask for an effect and cancel it.
func cancelling(t *testing.T) *local.World {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `
world: w
reducers: {a: {engine: starlark, source: a.star, grants: [all]}}
events: {go: }
effects:
  slow.ok: {adapter: outside}
  slow.error: {adapter: outside}
  flaky: {adapter: outside, retry: {attempts: 3, backoff: 1h}}
  asked: {adapter: outside}
  denied: {adapter: outside}
  long.job: {adapter: outside, retry: {attempts: 1, backoff: 1h}}
  ask.first: {adapter: outside}
caps: {all: {type: any, params: {kinds: ["*"]}}}
policies:
  - {name: all, when: 'intent.kind != "denied"', decide: allow}
  - {name: look, when: 'intent.kind == "asked"', decide: require_approval}
routing: [{event: go, reducer: a, key: event.data.to}]
`,
		"a.star": `
def reduce(ctx, state, event):
    if event.name == "receipt":
        return event.data
    if event.data.get("cancel"):
        ctx.cancel("it")
    else:
        ctx.effect(event.data["to"], {}, tag = "it")
    return state
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	o := new(outside)
	opts := local.Options{Adapters: map[string]host.Factory{"outside": func(host.Setup) (host.Adapter, error) { return o, nil }}}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, opts))
	var err error
	o.lw, err = local.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.lw.Close() })
	return o.lw
}

// lineOf returns how the intent of a cell is shown, and its records in words.
func lineOf(t *testing.T, j view.Journal, cell string) (in *view.Intent, words string) {
	t.Helper()
	entries, err := j.Selected(view.IntentFilter{Cell: cell})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	in, err = j.Intent(&entries[0])
	require.NoError(t, err)
	for e, err := range j.Concerning(cell, 0) {
		require.NoError(t, err)
		text, err := view.Describer{Journal: j}.Describe(e)
		require.NoError(t, err)
		words += text + "\n"
	}
	return in, words
}

// What a cell has cancelled says so, whatever came of it.
func TestWhatWasCancelledSaysSo(t *testing.T) {
	lw := cancelling(t)
	for _, to := range []string{"slow.ok", "slow.error", "flaky", "asked", "denied"} {
		_, err := lw.Submit(t.Context(), "go", map[string]any{"to": to})
		require.NoError(t, err)
	}
	waits := func(w *world.Moment) bool {
		return w.Status().Intents[receipt.StateOpen] == 1 && w.Status().Intents[receipt.StateInFlight] == 0
	}
	_, err := lw.Drive(t.Context(), local.Course{Stop: func(w *world.Moment) bool { return w.Status().Intents[receipt.StateDenied] > 0 && waits(w) }})
	require.NoError(t, err)
	for _, to := range []string{"flaky", "asked"} {
		_, err := lw.Submit(t.Context(), "go", map[string]any{"to": to, "cancel": true})
		require.NoError(t, err)
	}
	done, err := lw.Drive(t.Context(), local.Course{})
	require.NoError(t, err)
	j := view.Journal{Local: lw}
	course, err := j.Course(&done)
	require.NoError(t, err)
	require.Equal(t, view.IntentCounts{Committed: 1, Failed: 2, Denied: 1, Cancelled: 1}, course.Intents)
	require.Equal(t, [2]int{0, 1}, [2]int{course.Meanwhile.Denied, course.Meanwhile.Cancelled})
	for _, c := range []struct {
		cell               string
		state              receipt.State
		standing, why, say string
	}{
		{"a/slow.ok", receipt.StateCommitted, "committed, cancelled", "its cell cancelled it while it was under way, and it happened all the same", `slow.ok ok (its cell had cancelled it)  "done"`},
		{"a/slow.error", receipt.StateFailed, "failed, cancelled", "permanent_failure; its cell cancelled it while it was under way", "slow.error error (its cell had cancelled it)"},
		{"a/flaky", receipt.StateFailed, "failed, cancelled", "cancelled: its cell cancelled it before the next attempt", "ended rejected"},
		{"a/asked", receipt.StateCancelled, "cancelled", "cancelled: its cell cancelled it before anything was attempted", "ended cancelled"},
	} {
		in, words := lineOf(t, j, c.cell)
		require.True(t, in.Cancelled, c.cell)
		require.Equal(t, c.state, in.State)
		require.Equal(t, c.standing, in.Standing())
		require.Equal(t, c.why, in.Reason)
		require.Contains(t, words, c.say)
		name, err := reducer.ParseCell(c.cell)
		require.NoError(t, err)
		cell, err := j.Cell(name, "")
		require.NoError(t, err)
		told, err := canon.ToJSON(cell.State)
		require.NoError(t, err)
		require.Contains(t, string(told), `"cancelled":true`, c.cell)
	}
	in, _ := lineOf(t, j, "a/denied")
	require.False(t, in.Cancelled)
	require.Equal(t, receipt.StateDenied, in.State)
	for state, cell := range map[receipt.State]string{receipt.StateDenied: "a/denied", receipt.StateCancelled: "a/asked"} {
		entries, err := j.Selected(view.IntentFilter{State: state})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, cell, entries[0].Intent.Cell)
	}
	cancelled := map[string]bool{}
	for l, err := range j.AnswersByIntent() {
		require.NoError(t, err)
		cancelled[l.Cell+" "+string(l.Status)] = l.Cancelled
	}
	require.Equal(t, map[string]bool{
		"a/slow.ok ok": true, "a/slow.error error": true, "a/asked cancelled": true, "a/denied denied": false,
		"a/flaky error": false, "a/flaky rejected": true,
	}, cancelled)
}

// Of what nothing was attempted there is nothing to try again: who says so says what to do.
func TestWhoTriesAgainWhatNeverBeganHearsWhatToDo(t *testing.T) {
	lw := cancelling(t)
	for _, data := range []map[string]any{{"to": "denied"}, {"to": "asked"}, {"to": "asked", "cancel": true}} {
		_, err := lw.Submit(t.Context(), "go", data)
		require.NoError(t, err)
		require.NoError(t, lw.Run(t.Context()))
	}
	j := view.Journal{Local: lw}
	for cell, is := range map[string]string{"a/denied": "is denied: no_policy", "a/asked": "is cancelled: its cell cancelled it"} {
		in, _ := lineOf(t, j, cell)
		e, _ := j.LedgerEntry(in.Key)
		_, err := j.Decide(t.Context(), &journal.Resolved{Key: in.Key, How: journal.RetryAnyway, Params: e.Params, Actor: "ada", Reason: "so"}, &e)
		require.ErrorIs(t, err, world.ErrNotWaiting)
		require.ErrorContains(t, err, is)
		require.ErrorContains(t, err, "send its cell an event on which it asks once more")
	}
}

// What leaves an intent waiting for the outside, or for a person, is no failure.
func TestWhatIsAcceptedAndWhatIsAskedIsToldSo(t *testing.T) {
	lw := cancelling(t)
	for _, to := range []string{"long.job", "ask.first"} {
		_, err := lw.Submit(t.Context(), "go", map[string]any{"to": to})
		require.NoError(t, err)
	}
	require.NoError(t, lw.Step(t.Context()))
	require.NoError(t, lw.Step(t.Context()))
	j := view.Journal{Local: lw}
	for cell, c := range map[string]struct{ words, how string }{
		"a/long.job":  {`long.job accepted as "job-1": half of it`, "accepted"},
		"a/ask.first": {`ask.first asks sure: "Drop it?"`, "input_required"},
	} {
		_, words := lineOf(t, j, cell)
		require.Contains(t, words, c.words)
		for e, err := range j.Concerning(cell, 0) {
			require.NoError(t, err)
			if e.Kind == journal.KindFinished {
				told, err := j.View(e)
				require.NoError(t, err)
				require.Equal(t, c.how, told.How)
			}
		}
	}
}
