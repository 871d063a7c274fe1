package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// steps is the life of three proposals: one is applied, one withdrawn, one rejected.
func (c *council) steps() []func() error {
	ctx := c.t.Context()
	return []func() error{
		func() error { return c.proposeSigned(c.version(2)) },
		func() error { return c.shadow(1) },
		func() error { return c.sign(1, 1) },
		func() error { return c.propose(c.version(3)) },
		func() error { return worldtest.ErrorOf(c.Withdraw(ctx, 2, "ada", "no more")) },
		func() error { return c.sign(1, 2) },
		func() error { return c.propose(c.version(4)) },
		func() error { return worldtest.ErrorOf(c.Reject(ctx, 3, "bob", "no")) },
		func() error { return c.apply(1) },
	}
}

func TestEachStepOfAProposalIsOneRecordWithItsActor(t *testing.T) {
	c := councilOf(t, 2, true)
	c.Submit("go", order{To: "a"})
	c.Run()
	want := []struct {
		kind  journal.Kind
		actor string
	}{
		{journal.KindProposed, "ada"},
		{journal.KindShadowed, "bob"},
		{journal.KindApproved, "cleo"},
		{journal.KindProposed, "ada"},
		{journal.KindWithdrawn, "ada"},
		{journal.KindApproved, "cleo"},
		{journal.KindProposed, "ada"},
		{journal.KindRejected, "bob"},
		{journal.KindApplied, "dan"},
	}
	for i, step := range c.steps() {
		before := len(c.Journal.Records())
		require.NoError(t, step())
		require.Len(t, c.Journal.Records(), before+1)
		rec, err := journal.DecodeRecord(c.Journal.Records()[before].Bytes)
		require.NoError(t, err)
		require.NoError(t, rec.Load(c.Journal))
		require.Equal(t, want[i].kind, rec.Kind)
		body, err := rec.Body()
		require.NoError(t, err)
		require.Equal(t, want[i].actor, actorOf(t, body))
		c.RequireReplay()
	}
	all, f := c.Proposals()
	require.Equal(t, []governance.Stage{governance.Applied, governance.Withdrawn, governance.Rejected}, []governance.Stage{all[0].Stage, all[1].Stage, all[2].Stage})
	require.Equal(t, all[0].Candidate, f.Manifest)
	require.EqualValues(t, c.Status().Head.ID, f.Since)
	require.EqualValues(t, 2, c.Status().Version)
}

func actorOf(t *testing.T, body journal.Body) string {
	t.Helper()
	switch b := body.(type) {
	case *journal.ManifestProposed:
		return b.Actor
	case *journal.ManifestShadowed:
		return b.Actor
	case *journal.ManifestApproved:
		return b.Actor
	case *journal.ManifestRejected:
		return b.Actor
	case *journal.ManifestWithdrawn:
		return b.Actor
	case *journal.Applied:
		return b.Actor
	default:
		t.Fatalf("%T is no step of a proposal", body)
		return ""
	}
}

func TestCrashBetweenAllStepsOfAProposalShowsNowhere(t *testing.T) {
	c, twin := councilOf(t, 2, true), councilOf(t, 2, true)
	steps, same := c.steps(), twin.steps()
	for i := range steps {
		for _, w := range []*council{c, twin} {
			w.Submit("go", order{To: "a", Do: []act{{Timer: 2}, {Effect: "tool.a", Param: fmt.Sprint(i)}}})
			w.Step(1)
		}
		c.Crash()
		require.NoError(t, steps[i]())
		require.NoError(t, same[i]())
		c.Crash()
		require.Equal(t, twin.Status(), c.Status())
		require.Equal(t, twin.StateRoot(), c.StateRoot())
		require.Equal(t, twin.proposals(), c.proposals())
	}
	c.Run()
	twin.Run()
	require.Equal(t, twin.Status(), c.Status())
	c.RequireReplay()
}

// The journal fails at every append in turn; whoever comes back goes on.
func TestFailingJournalLeavesAProposalBetweenTwoSteps(t *testing.T) {
	adopting := func(inject func(j *worldtest.Journal, fail func(n int) error), at int) (journal.Head, int) {
		w, next := growing(t)
		before := w.Status().Manifest
		for i := range 3 {
			w.Submit("go", order{To: fmt.Sprint("b", i), Say: "hello"})
		}
		w.Run()
		appends, failed := 0, false
		inject(w.Journal, func(int) error {
			appends++
			if !failed && appends == at {
				failed = true
				return worldtest.ErrInjected
			}
			return nil
		})
		for range 2 {
			if w.Status().Manifest != before {
				break
			}
			if err := adopt(t, w, &next); err != nil {
				require.ErrorIs(t, err, worldtest.ErrInjected)
				w.Crash()
			}
		}
		require.JSONEq(t, `{"version": 2, "lines": ["1:go hello"]}`, w.State("bot/b1"))
		w.RequireReplay()
		return w.Status().Head, appends
	}
	appending := func(j *worldtest.Journal, fail func(int) error) { j.FailAppend = fail }
	waiting := func(j *worldtest.Journal, fail func(int) error) { j.FailWait = fail }
	undisturbed, appends := adopting(appending, 0)
	require.Equal(t, 4, appends)
	for n := range appends {
		for _, inject := range []func(*worldtest.Journal, func(int) error){appending, waiting} {
			head, _ := adopting(inject, n+1)
			require.Equal(t, undisturbed, head, "failed at %d", n+1)
		}
	}
}

func TestSecondProposalOnABaseIsStaleAfterTheFirstIsApplied(t *testing.T) {
	c := councilOf(t, 1, false)
	c.Submit("go", order{To: "a"})
	c.Run()
	require.NoError(t, c.propose(c.version(2)))
	require.NoError(t, c.propose(c.version(3)))
	for n := range uint64(2) {
		require.NoError(t, c.shadow(n+1))
		require.NoError(t, c.sign(n+1, 1))
	}
	require.NoError(t, c.apply(1))
	for _, reopened := range []bool{false, true} {
		if reopened {
			c.Crash()
		}
		c.requireRefused(func() error { return c.apply(2) }, governance.ErrStale)
		c.requireRefused(func() error { return c.sign(2, 2) }, governance.ErrStale)
		c.requireRefused(func() error { return c.shadow(2) }, governance.ErrStale)
	}
	require.NoError(t, worldtest.ErrorOf(c.Withdraw(t.Context(), 2, "ada", "it is made again")), "what is stale can end")
	c.RequireReplay()
}

// A, then B, then A again: what is in force is the base of the proposal, and the
// report is about a world that was.
func TestReportFromBeforeTheLastApplyIsRefused(t *testing.T) {
	c := councilOf(t, 1, false)
	first := c.Manifest()
	require.NoError(t, c.propose(c.version(2)))
	require.NoError(t, c.shadow(1))
	require.NoError(t, c.sign(1, 1))
	c.put(c.version(3), 2)
	c.Submit("go", order{To: "a"})
	c.Run()
	c.put(first, 2)
	require.Equal(t, first, c.Manifest())
	for _, reopened := range []bool{false, true} {
		if reopened {
			c.Crash()
		}
		c.requireRefused(func() error { return c.apply(1) }, governance.ErrOldReport)
		c.requireRefused(func() error { return c.sign(1, 2) }, governance.ErrOldReport)
	}
	require.NoError(t, c.shadow(1))
	c.requireRefused(func() error { return c.apply(1) }, governance.ErrNotApproved)
	require.NoError(t, c.sign(1, 1), "the same person, under the new report")
	require.NoError(t, c.apply(1))
	require.EqualValues(t, 2, c.Status().Version)
	c.RequireReplay()
}

func TestApprovalIsOfOneReport(t *testing.T) {
	c := councilOf(t, 2, false)
	require.NoError(t, c.propose(c.version(2)))
	require.NoError(t, c.shadow(1))
	require.NoError(t, c.sign(1, 1))
	old := c.terms(1)
	c.Submit("go", order{To: "a"})
	c.Run()
	require.NoError(t, c.shadow(1))
	c.requireRefused(func() error { return c.approve(1, old, manifest.Sign(worldtest.Key(2), old)) }, governance.ErrOtherTerms)
	require.NoError(t, c.sign(1, 2))
	c.requireRefused(func() error { return c.apply(1) }, governance.ErrNotApproved)
	require.NoError(t, c.sign(1, 1))
	require.NoError(t, c.apply(1))
	report, err := c.ReportOf(1)
	require.NoError(t, err)
	hash, err := report.Hash()
	require.NoError(t, err)
	require.Equal(t, c.terms(1).Report, hash, "what was approved is what is kept")
	c.RequireReplay()
}

// A signature is good for one proposal of one world.
func TestApprovalDoesNotReplayElsewhere(t *testing.T) {
	c := councilOf(t, 1, false)
	require.NoError(t, c.propose(c.version(2)))
	require.NoError(t, c.shadow(1))
	terms := c.terms(1)
	given := manifest.Sign(worldtest.Key(1), terms)
	require.NoError(t, worldtest.ErrorOf(c.Reject(t.Context(), 1, "bob", "not yet")))

	require.NoError(t, c.propose(c.version(2)), "the same once more")
	require.NoError(t, c.shadow(2))
	c.requireRefused(func() error { return c.approve(2, terms, given) }, governance.ErrOtherTerms)
	c.requireRefused(func() error { return c.approve(2, c.terms(2), given) }, governance.ErrSignature)

	other := &council{World: botsWith(t, worldtest.Options{ID: "other"}, governedBy(1, false)), t: t}
	require.Equal(t, c.Status().Manifest, other.Status().Manifest)
	require.NoError(t, other.propose(other.version(2)))
	require.NoError(t, other.shadow(1))
	other.requireRefused(func() error { return other.approve(1, terms, given) }, governance.ErrOtherTerms)
	other.requireRefused(func() error { return other.approve(1, other.terms(1), given) }, governance.ErrSignature)
}

func TestForkBeginsItsParentsProposalsAnew(t *testing.T) {
	c := councilOf(t, 2, true)
	c.put(c.version(2), 1, 2)
	require.NoError(t, c.proposeSigned(c.version(3)))
	require.NoError(t, c.shadow(2))
	require.NoError(t, c.sign(2, 1))
	require.NoError(t, c.sign(2, 2))
	terms := c.terms(2)
	given := manifest.Sign(worldtest.Key(2), terms)

	f := &council{World: c.Fork(journal.ForkLive, worldtest.Options{ID: "fork", Reducers: botRegistry(), Answer: answering().Answer}), t: t}
	all, _ := f.Proposals()
	require.Equal(t, []governance.Stage{governance.Applied, governance.Proposed}, []governance.Stage{all[0].Stage, all[1].Stage})
	require.Nil(t, all[1].Signature)
	f.requireRefused(func() error { return f.apply(2) }, governance.ErrNotShadowed)
	require.NoError(t, f.shadow(2))
	require.NotEqual(t, terms.Report, f.terms(2).Report)
	f.requireRefused(func() error { return f.apply(2) }, governance.ErrNotApproved)
	f.requireRefused(func() error { return f.approve(2, terms, given) }, governance.ErrOtherTerms)
	f.requireRefused(func() error { return f.approve(2, f.terms(2), given) }, governance.ErrSignature)
	require.NoError(t, f.sign(2, author), "it is nobody's own any more")
	f.Crash()
	f.requireRefused(func() error { return f.apply(2) }, governance.ErrNotApproved)
	require.NoError(t, f.sign(2, 1))
	require.NoError(t, f.apply(2))
	f.RequireReplay()

	require.NoError(t, c.apply(2), "the parent's are the parent's")
	c.RequireReplay()
}
