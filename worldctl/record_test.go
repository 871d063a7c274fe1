package worldctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestIndexTellsWhatTheWholeJournalTells compares what the index of the cells
// makes known of causes, consequences and cells with what a reader of the whole
// journal finds, for every record of a world in which everything happens.
func TestIndexTellsWhatTheWholeJournalTells(t *testing.T) {
	lw := eventful(t)
	j := recordsOf(lw)
	all := collect(t, j.Between(1, lw.Head().ID, nil))
	kinds := make(map[journal.Kind]bool)
	causes := make(map[journal.Seq]journal.Seq) // by effect
	for i, e := range all {
		kinds[e.Kind] = true
		causes[e.ID] = causeAmong(all[:i], e)
		got, err := j.CauseOf(e)
		require.NoError(t, err)
		require.Equal(t, causes[e.ID], got, "#%d", e.ID)
		if key, attempt := e.Intent(); e.Kind == journal.KindFinished || e.Kind == journal.KindLate || e.Kind == journal.KindExpired {
			permit := all[got-1].Body.(*journal.Started)
			require.Equal(t, []any{key, attempt}, []any{permit.Key, permit.Attempt})
		}
	}
	for _, kind := range []journal.Kind{
		journal.KindDropped, journal.KindFired, journal.KindFailed, journal.KindAwaitingApproval, journal.KindResolved, journal.KindDenied, journal.KindWaiting,
		journal.KindDue, journal.KindExpired, journal.KindInDoubt, journal.KindLate, journal.KindEnded,
	} {
		require.True(t, kinds[kind], kind)
	}
	for _, e := range all {
		for _, links := range []uint64{1, 2, 0} {
			var want, got []journal.Seq
			for _, x := range all {
				if away := linksBetween(causes, e.ID, x.ID); away > 0 && (links == 0 || away <= links) {
					want = append(want, x.ID)
				}
			}
			for x, err := range j.Consequences(t.Context(), e, links) {
				require.NoError(t, err)
				require.Equal(t, causes[x.ID], x.Cause, "#%d", x.ID)
				got = append(got, x.ID)
			}
			require.Equal(t, want, got, "#%d, %d links", e.ID, links)
		}
	}
}

// TestCellIsToldOfFromAnyRecordOn compares a cell's story from every record on
// with what a reader of the whole journal finds.
func TestCellIsToldOfFromAnyRecordOn(t *testing.T) {
	lw := eventful(t)
	j := recordsOf(lw)
	all := collect(t, j.Between(1, lw.Head().ID, nil))
	for _, cell := range []string{"teller/ada", "teller/eve", "operator/ann", "teller/nobody"} {
		var want []journal.Seq
		for i, e := range all {
			if concernsAmong(all[:i], e, cell) {
				want = append(want, e.ID)
			}
		}
		require.Equal(t, cell != "teller/nobody", len(want) > 5)
		for _, e := range all {
			s := view.Selection{Cell: cell}
			require.NoError(t, s.Range(j, fmt.Sprint(e.ID), ""))
			at, _ := slices.BinarySearch(want, e.ID)
			var got []journal.Seq
			for _, x := range collect(t, j.Select(t.Context(), &s)) {
				got = append(got, x.ID)
			}
			require.Equal(t, append([]journal.Seq(nil), want[at:]...), got, "%s from #%d", cell, e.ID)
			tells, err := j.TellsOf(e, cell)
			require.NoError(t, err)
			require.Equal(t, slices.Contains(want, e.ID), tells, "%s in #%d", cell, e.ID)
		}
	}
}

// What is said of an intent and its answers is the same for one and in a list.
func TestIntentsAndAnswersAreTheSameInListsAndAlone(t *testing.T) {
	j := recordsOf(eventful(t))
	entries := j.Ledger()
	lines, err := j.IntentLines(entries)
	require.NoError(t, err)
	last := make(map[receipt.Key]*view.Answer) // that is not late
	for a, err := range j.Answers() {
		require.NoError(t, err)
		if !a.Late {
			last[a.Key] = a
		}
	}
	reasons := 0
	for i := range entries {
		e := &entries[i]
		line, err := lines.Line(*e)
		require.NoError(t, err)
		alone, err := j.Intent(e)
		require.NoError(t, err)
		require.Equal(t, alone.IntentLine, line)
		require.Len(t, alone.Attempts, int(e.Attempt))
		if line.Reason != "" {
			reasons++
		}
		a, err := j.AnswerTo(e, 0)
		require.NoError(t, err)
		require.Equal(t, last[e.Intent.Key], a)
	}
	require.Greater(t, reasons, 3)
	require.Greater(t, len(last), 5)
}

// causeAmong finds what caused a record among all before it.
func causeAmong(before []*view.Entry, e *view.Entry) journal.Seq {
	key, attempt := e.Intent()
	if len(e.Kind.Answers()) == 0 {
		return e.CausedBy
	}
	for _, x := range slices.Backward(before) {
		of, to := x.Intent()
		if slices.Contains(e.Kind.Answers(), x.Kind) && of == key && (to == attempt || to == 0 || attempt == 0) {
			return x.ID
		}
	}
	return 0
}

// linksBetween returns how many causes away an effect is, 0 where it is none.
func linksBetween(causes map[journal.Seq]journal.Seq, cause, effect journal.Seq) uint64 {
	for n := uint64(1); effect != 0; n++ {
		if effect = causes[effect]; effect == cause {
			return n
		}
	}
	return 0
}

// concernsAmong reports whether a record tells of a cell: it names it, a step of
// it brought it about, or an intent of the cell is what it is about.
func concernsAmong(before []*view.Entry, e *view.Entry, cell string) bool {
	if b, ok := e.Body.(*journal.OperatorEffect); ok {
		return reducer.Cell{Reducer: reducer.Operator, Key: b.Actor}.String() == cell
	}
	names := false
	_ = journal.EachCell(e.Kind, e.Payload, func(name []byte) { names = names || string(name) == cell })
	if names {
		return true
	}
	key, _ := e.Intent()
	for _, x := range before {
		switch b := x.Body.(type) {
		case *journal.Stepped:
			if x.ID == e.CausedBy && b.Cell == cell {
				return true
			}
		case *journal.Emitted:
			if x.ID == e.CausedBy && e.Kind == journal.KindDropped {
				return concernsAmong(before, x, cell)
			}
		case *journal.IntentEmitted, *journal.IntentDenied, *journal.IntentAwaitingApproval:
			if k, _ := x.Intent(); k == key && concernsAmong(nil, x, cell) {
				return true
			}
		}
	}
	return false
}

// busyTeller hands orders on, loses some, and sets timers.
const busyTeller = `
def reduce(ctx, state, event):
    if event.name == "order.placed":
        if event.data["amount"] == 13:
            fail("thirteen is not an amount")
        if event.data["kind"] == "hand on":
            ctx.emit("order.placed", {"who": "bob", "kind": "bank.pay", "amount": 5})
            return event.name
        ctx.effect(event.data["kind"], {"amount": event.data["amount"]})
        ctx.emit("order.lost", None)
        ctx.timer(2, "over", None)
        ctx.emit("order.lost", None)
    return event.name
`

// eventful returns a world in which steps fail and send events to nobody, effects
// are denied, put before a person, approved, repeated, made up for, in doubt and answered late.
func eventful(t *testing.T) *local.World {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/bank")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "teller.star"), []byte(busyTeller), 0o600))
	file := filepath.Join(dir, "world.yaml")
	yaml, err := os.ReadFile(file)
	require.NoError(t, err)
	yaml = bytes.Replace(yaml, []byte("events:\n"), []byte("events:\n  order.lost:\n"), 1)
	require.NoError(t, os.WriteFile(file, yaml, 0o600))
	code, _, said := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code, said)
	do := func(args ...string) (key string) {
		t.Helper()
		code, out, said := inProcess(t.Context(), append([]string{"-w", dir, "-o", "jsonl"}, args...)...)
		require.NotEqual(t, exitUsage, code, said)
		var answer struct{ Key string }
		require.NoError(t, json.Unmarshal([]byte(out), &answer), said)
		return answer.Key
	}
	order := func(who, kind, amount string) {
		do("send", "order.placed", `{"who": "`+who+`", "kind": "`+kind+`", "amount": `+amount+`}`)
	}
	order("ada", "bank.pay", "20")
	order("ada", "bank.pay", "13")
	order("eve", "bank.pay", "200")
	order("eve", "bank.pay", "2000")
	order("eve", "bank.flaky", "1")
	do("run")
	do("cell", "skip", "teller/ada")
	order("ada", "bank.book", "2")
	order("ada", "bank.call", "3")
	asked := do("effect", "bank.pay", `{"amount": 300}`, "--cap", "desk", "--reason", "x", "--as", "ann")
	do("intent", "approve", asked, "--reason", "x", "--as", "bob")
	do("effect", "bank.flaky", "--cap", "desk", "--reason", "x", "--as", "ann")
	called := do("effect", "bank.call", "--cap", "desk", "--reason", "x", "--as", "ann")
	do("intent", "resolve", called, "--not-executed", "--reason", "x", "--as", "bob")
	answer, _ := late(t, dir, called)
	do("run")
	do("intent", "resolve", called, "--not-executed", "--reason", "x", "--as", "bob")
	order("eve", "hand on", "1")
	require.NoError(t, os.Remove(filepath.Join(dir, "broken")))
	do("run")
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lw.Close()) })
	err = lw.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Receive(answer)) })
	require.NoError(t, err)
	return lw
}

func collect[T any](t *testing.T, items iter.Seq2[T, error]) (out []T) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		out = append(out, item)
	}
	return out
}
