package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// bank is a world in which payments were made, denied, put before a person, repeated
// and made up for, and in which a step failed.
func bank(t *testing.T) Journal {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../worldctl/testdata/worlds/bank")))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "bank-1"}, local.Options{}))
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lw.Close()) })
	for _, order := range []map[string]any{
		{"who": "ann", "kind": "bank.pay", "amount": 50},
		{"who": "ben", "kind": "bank.pay", "amount": 300},
		{"who": "cal", "kind": "bank.pay", "amount": 2000},
		{"who": "dan", "kind": "bank.flaky", "amount": 1},
		{"who": "eve", "kind": "bank.book", "amount": 1},
		{"who": "fay", "kind": "bank.pay", "amount": 13},
	} {
		_, err := lw.Submit(t.Context(), "order.placed", order)
		require.NoError(t, err)
	}
	require.NoError(t, lw.Run(t.Context()))
	return Journal{Local: lw}
}

// TestDeadlineOfARealClockIsATime besides the tick: nobody counts ticks on the wall.
func TestDeadlineOfARealClockIsATime(t *testing.T) {
	yaml, err := os.ReadFile("../../worldctl/testdata/worlds/bank/world.yaml")
	require.NoError(t, err)
	for mode, want := range map[string]string{
		"":             "decide before tick 6",
		"mode: real, ": "decide before tick 6, 2026-01-01T00:06:00Z",
	} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS("../../worldctl/testdata/worlds/bank")))
		text := strings.Replace(string(yaml), "clock: {", "clock: {"+mode, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(text), 0o600))
		require.NoError(t, local.Create(dir, local.CreateOptions{ID: "bank-1"}, local.Options{}))
		lw, err := local.Open(dir, local.Options{})
		require.NoError(t, err)
		require.Equal(t, want, Journal{Local: lw}.decideBefore(&receipt.Entry{Deadline: 6}))
		require.NoError(t, lw.Close())
	}
}

// intentOf returns the first intent of a cell.
func (j Journal) intentOf(t *testing.T, cell string) *receipt.Entry {
	t.Helper()
	entries := j.Ledger()
	for i := range entries {
		if entries[i].Intent.Cell == cell {
			return &entries[i]
		}
	}
	require.Fail(t, "no intent of "+cell)
	return nil
}

// kindsOf returns the kinds of records, in their order.
func kindsOf(t *testing.T, records iter.Seq2[*Entry, error]) string {
	t.Helper()
	var kinds []string
	for e, err := range records {
		require.NoError(t, err)
		kinds = append(kinds, string(e.Kind))
	}
	return strings.Join(kinds, " ")
}

func TestIntentSaysWhereItStandsAndWhy(t *testing.T) {
	j := bank(t)
	lines, err := j.IntentLines(j.Ledger())
	require.NoError(t, err)
	for _, c := range []struct {
		cell     string
		state    receipt.State
		decision string
		rules    []string
		reason   string
		attempts int
		outcome  receipt.Outcome
		answer   string // status, attempt, and whether a host signed it
	}{
		{"teller/ann", receipt.StateCommitted, "allow", []string{"payments"}, "", 1, receipt.OutcomeSideEffectCommitted, "ok 1 true"},
		{
			"teller/ben", receipt.StateAwaitingApproval, "require_approval",
			[]string{"big payments need a person"},
			"decide before tick 6: intent approve, intent edit or intent deny", 0, "", "",
		},
		{
			"teller/cal", receipt.StateDenied, "deny",
			[]string{"no huge payments"},
			`policy_denied: effect "bank.pay" is denied by policy "no huge payments"`, 0, receipt.OutcomePermanentFailure, "denied 0 false",
		},
		{"teller/dan", receipt.StateFailed, "allow", []string{"all else"}, "try later", 3, receipt.OutcomePermanentFailure, "error 3 true"},
		{"teller/eve", receipt.StateFailed, "allow", []string{"all else"}, "it was compensated", 1, receipt.OutcomeCompensated, "error 1 false"},
	} {
		e := j.intentOf(t, c.cell)
		a, err := j.Intent(e)
		require.NoError(t, err, c.cell)
		require.Equal(t, []any{c.state, c.decision, c.rules, c.reason}, []any{a.State, a.Decision, a.Rules, a.Reason}, c.cell)
		require.Len(t, a.Attempts, c.attempts, c.cell)
		require.Equal(t, c.outcome, a.Outcome, c.cell)
		require.Equal(t, uint64(c.attempts), a.Cost.Calls, c.cell)
		for i, x := range a.Attempts {
			require.Equal(t, uint64(i+1), x.Attempt)
			require.Less(t, x.Started, x.Receipt)
		}
		line, err := j.IntentLine(e)
		require.NoError(t, err)
		require.Equal(t, a.IntentLine, line)
		of, err := lines.Line(*e)
		require.NoError(t, err)
		require.Equal(t, line, of, "a list says what the intent alone says")
		found, ok := j.LedgerEntry(e.Intent.Key)
		require.True(t, ok)
		require.Equal(t, *e, found)

		answer, err := j.AnswerTo(e, 0)
		require.NoError(t, err)
		if c.answer == "" {
			require.Nil(t, answer)
			continue
		}
		l, full := answer.Line(), answer.Full()
		require.Equal(t, c.answer, fmt.Sprint(l.Status, " ", l.Attempt, " ", l.Signed), c.cell)
		require.Equal(t, []any{l.Key, l.Cell, l.Record, l.Outcome, l.Signed}, []any{full.Key, full.Cell, full.Record, full.Outcome, full.Raw != nil}, c.cell)
		require.Equal(t, e.Intent.Key.External("bank-1"), l.ExternalKey)
	}
}

func TestAnswersComeInTheOrderOfTheJournal(t *testing.T) {
	j := bank(t)
	var last journal.Seq
	n := 0
	for a, err := range j.Answers() {
		require.NoError(t, err)
		require.Greater(t, a.Record, last)
		last = a.Record
		e, err := j.Entry(a.Record)
		require.NoError(t, err)
		require.Contains(t, AnswerKinds(), e.Kind)
		n++
	}
	require.Equal(t, 8, n, "three of what was repeated; of the booking its receipt, its compensation and its end; a payment and a denial")
	dan := j.intentOf(t, "teller/dan")
	second, err := j.AnswerTo(dan, 2)
	require.NoError(t, err)
	require.Equal(t, uint64(2), second.Attempt)
	none, err := j.AnswerTo(dan, 9)
	require.NoError(t, err)
	require.Nil(t, none)
	first, err := j.Entry(1)
	require.NoError(t, err)
	none, err = j.Answer(first)
	require.NoError(t, err)
	require.Nil(t, none, "that the world was created answers nothing")
}

func TestCellHasItsRecords(t *testing.T) {
	j := bank(t)
	for cell, want := range map[string]string{
		"teller/ann": "event.submitted cell.stepped intent.emitted invocation.started invocation.finished cell.stepped",
		"teller/cal": "event.submitted cell.stepped intent.denied cell.stepped",
		"teller/fay": "event.submitted cell.failed",
		"teller/zoe": "",
	} {
		require.Equal(t, want, kindsOf(t, j.OfCell(cell, 0)), cell)
		for e, err := range j.OfCell(cell, 0) {
			require.NoError(t, err)
			tells, err := j.TellsOf(e, cell)
			require.NoError(t, err)
			require.True(t, tells, "#%d", e.ID)
			require.NotContains(t, kindsOf(t, j.OfCell(cell, e.ID)), "submitted", "the rest of it")
		}
	}
	ann := j.intentOf(t, "teller/ann")
	require.Equal(t, "intent.emitted invocation.started invocation.finished", kindsOf(t, j.OfIntent(ann)))
	emitted, err := j.Entry(journal.Seq(ann.Emitted))
	require.NoError(t, err)
	step, err := j.Turn(emitted)
	require.NoError(t, err)
	require.Equal(t, journal.KindStepped, step.Kind)
	require.Equal(t, []string{"teller/ann"}, j.Cells(step))
	require.Contains(t, kindsOf(t, j.Following(step.ID, step.ID)), "intent.emitted")
	started, err := j.Entry(journal.Seq(ann.Started))
	require.NoError(t, err)
	require.Equal(t, []string{"teller/ann"}, j.Cells(started), "by its intent")
	key, attempt := started.Intent()
	require.Equal(t, []any{ann.Intent.Key, uint64(1)}, []any{key, attempt})
}

func TestRecordPrintsAsItIsStored(t *testing.T) {
	j := bank(t)
	require.Equal(t, strings.Repeat("event.submitted ", 5)+"event.submitted", kindsOf(t, j.Scan(0, journal.KindSubmitted)))
	require.Equal(t, "event.submitted event.submitted", kindsOf(t, j.Between(2, 3, nil)))
	require.Equal(t, j.Local.Head().ID, j.End())
	raw, err := j.Stored(2)
	require.NoError(t, err)
	e, err := j.Decode(raw)
	require.NoError(t, err)
	text, err := json.Marshal(e)
	require.NoError(t, err)
	shown, err := json.Marshal(e.View())
	require.NoError(t, err)
	require.JSONEq(t, string(shown), string(text))
	require.Equal(t, raw, e.View().Raw)
	require.False(t, e.View().Redacted)
	loaded, err := j.Load(e.Record, raw)
	require.NoError(t, err)
	require.Equal(t, e, loaded)
	for _, id := range []journal.Seq{0, j.End() + 1} {
		_, err = j.Entry(id)
		require.ErrorIs(t, err, journal.ErrNotFound, "#%d", id)
	}
}

func TestWorldIsShownAsItStands(t *testing.T) {
	j := bank(t)
	j.Local.View(func(w *world.Moment) {
		now := w.Status()
		s := StatusOf(&now, now.Head, 0)
		require.Equal(t, Anchor{ID: now.Head.ID, OK: true}, s.Anchor)
		for stored, ok := range map[journal.Head]bool{
			{ID: now.Head.ID + 1}: true, {ID: now.Head.ID - 1}: false, {ID: now.Head.ID, Root: journal.Hash{1}}: false,
		} {
			require.Equal(t, Anchor{ID: stored.ID, OK: ok}, StatusOf(&now, stored, 0).Anchor)
		}
		require.Equal(t, []any{"bank", "bank-1", 6, 1}, []any{s.World, s.WorldID, s.Cells, int(s.Manifest.Version)})
		require.Equal(t, IntentCounts{AwaitingApproval: 1, Committed: 2, Failed: 2, Denied: 1}, s.Intents)
		require.Equal(t, s.Intents, CountsOf(&now))
		c, err := j.Course(&local.Driven{Ticks: 3, Records: 9, Status: now})
		require.NoError(t, err)
		require.Equal(t, []any{uint64(3), uint64(9), s.Time, s.Head, s.Intents, 1}, []any{c.Ticks, c.Records, c.Time, c.Head, c.Intents, c.CellsHalted})
		for name, halted := range map[string]bool{"ann": false, "fay": true} {
			v, ok := w.Cell(reducer.Cell{Reducer: "teller", Key: name})
			require.True(t, ok)
			line, at := LineOfCell(v), CellAt(v, s.Head.ID)
			require.Equal(t, []any{v.N, halted, len(v.Mail)}, []any{line.N, line.Halted, line.Mailbox})
			require.Equal(t, []any{v.N, halted, len(v.Mail), s.Head.ID}, []any{at.N, at.Halted, len(at.Mailbox), at.At})
			require.Equal(t, halted, line.StateHash == nil, "whose first step failed has no state")
			require.NotNil(t, at.Mailbox, "an empty list, not null")
		}
	})
}

func TestProposalSaysWhatItChangesAndWhatIsMissing(t *testing.T) {
	j := bank(t)
	dir := j.Local.Dir()
	text, err := os.ReadFile(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	changed := strings.Replace(string(text), "amount > 100'", "amount > 10'", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(changed), 0o600))
	code, err := os.ReadFile(filepath.Join(dir, "teller.star"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "teller.star"), append(code, "# paid twice\n"...), 0o600))
	next, err := source.Load(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	_, base := j.Local.InForce()
	_, n, err := j.Local.Propose(t.Context(), world.Proposal{Candidate: next.Manifest, Contents: next.Contents, Base: base, Actor: "ann", Reason: "care"})
	require.NoError(t, err)

	p, err := j.Proposal(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, []any{"p1", governance.Proposed, "ann", "care", base, true, uint64(1)}, []any{p.Proposal, p.Stage, p.Author, p.Reason, p.Base, p.BaseInForce, p.Needed})
	require.Equal(t, []ProposalLine{p.ProposalLine}, j.Proposals(false))
	require.Contains(t, p.Code, "+# paid twice")
	require.NotEmpty(t, p.Missing)
	require.False(t, p.WouldApply.OK)
	require.NotEmpty(t, p.WouldApply.Error)
	require.Nil(t, p.Report)
	was, err := j.Manifest(base)
	require.NoError(t, err)
	changes, err := ChangesOf(was, next.Manifest)
	require.NoError(t, err)
	require.Equal(t, p.ManifestChanges, changes)
	require.Equal(t, 2, len(changes.Gains)+len(changes.Loses)+len(changes.Changes), "a policy and a reducer")
	would := Applied{Proposal: "p1", Manifest: p.Candidate, Version: 1, Base: base, Migrated: 2, Open: listed(world.Opened{}), Stale: []string{}}
	require.Equal(t, &would, j.Applied(p, 0, world.Outcome{Migrated: 2}))
	record := journal.Seq(7)
	would.Record = &record
	require.Equal(t, &would, j.Applied(p, 7, world.Outcome{Migrated: 2}))
	same, err := CodeDiff(was, was, j.Local.Blob, j.Local.Blob)
	require.NoError(t, err)
	require.Empty(t, same)

	require.NoError(t, j.Local.Update(func(w *world.World) error {
		_, err := w.Reject(t.Context(), n, "ben", "no")
		return err
	}))
	require.Empty(t, j.Proposals(false))
	closed := j.Proposals(true)
	require.Len(t, closed, 1)
	require.Equal(t, &Ended{Record: j.End(), By: "ben", Reason: "no"}, closed[0].Ended)
	require.Zero(t, closed[0].Needed)
}

func TestWordsAreShort(t *testing.T) {
	for want, got := range map[string]string{
		"no calls":                  Cost(receipt.Cost{}),
		"1 call":                    Cost(receipt.Cost{Calls: 1}),
		"2 calls, 1 token, 3 bytes": Cost(receipt.Cost{Calls: 2, Tokens: 1, Bytes: 3}),
		"7 micros":                  Cost(receipt.Cost{Micros: 7}),
		"a<U+001B>b<U+202E>":        Visible("a\x1bb\u202e", ""),
		"a\nb":                      Visible("a\nb", "\n"),
		"3":                         Arrow(3, 3),
		"3 -> 4":                    Arrow(3, 4),
		"1,234,567":                 Thousands(1234567),
		"999":                       Thousands(999),
		"p12":                       ProposalName(12),
	} {
		require.Equal(t, want, got)
	}
	require.Empty(t, SignerOf(manifest.PublicKey{1}, manifest.Governance{}).Name)
	listed := manifest.Governance{Approvers: []manifest.Approver{{Name: "ann", Key: manifest.PublicKey{1}}}}
	require.Equal(t, "ann", SignerOf(manifest.PublicKey{1}, listed).Name)
}

func TestKindsAreSelectedByNameAndFamily(t *testing.T) {
	for kind, known := range map[journal.Kind]bool{"cell.stepped": true, "intent.*": true, "intent": false, "*": false, "cell.walked": false} {
		require.Equal(t, known, Selects(kind), kind)
	}
	require.True(t, Among(nil, journal.KindStepped), "none is all")
	require.True(t, Among([]journal.Kind{"intent.*", "cell.*"}, journal.KindStepped))
	require.False(t, Among([]journal.Kind{"intent.*", "cell.failed"}, journal.KindStepped))
	for _, family := range journal.Families() {
		require.True(t, Selects(journal.Kind(family+".*")), family)
	}
}

// TestFirstAtFindsTheFirstRecordNotBefore compares the search with one record
// after another, and bounds what it reads.
func TestFirstAtFindsTheFirstRecordNotBefore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		times := rapid.SliceOfN(rapid.Uint64Range(0, 20), 0, 200).Draw(rt, "times")
		slices.Sort(times)
		tick := rapid.Uint64Range(0, 22).Draw(rt, "tick")
		want := slices.IndexFunc(times, func(at uint64) bool { return at >= tick })
		if want < 0 {
			want = len(times)
		}
		reads := 0
		got, err := firstAt(journal.Seq(len(times)), manifest.Tick(tick), func(id journal.Seq) (manifest.Tick, error) {
			reads++
			return manifest.Tick(times[id-1]), nil
		})
		require.NoError(rt, err)
		require.Equal(rt, journal.Seq(want)+1, got)
		require.LessOrEqual(rt, reads, 8)
	})
}

func TestFirstAtReportsWhatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	failed := false
	_, err := firstAt(100, 7, func(id journal.Seq) (manifest.Tick, error) {
		require.False(t, failed, "nothing more is read")
		failed = id > 60
		if failed {
			return 0, broken
		}
		return 1, nil
	})
	require.ErrorIs(t, err, broken)
}
