package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// ended returns the record that ended the only intent.
func (p *play) ended() journal.Seq {
	p.t.Helper()
	entries := p.Intents()
	require.Len(p.t, entries, 1)
	require.Equal(p.t, receipt.StateCommitted, entries[0].State)
	return journal.Seq(entries[0].Finished)
}

func TestReceiptThatACellMayBeToldAgainIsNotRedacted(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	require.ErrorIs(t, p.StillNeeds(p.ended()), world.ErrStillNeeded, "a rollback leads to it again")
	p.snapshot("after")
	require.NoError(t, worldtest.ErrorOf(p.Prune(t.Context(), journal.SnapshotPruned{Name: "before", Actor: "ada"})))
	require.NoError(t, p.StillNeeds(p.ended()))
	require.NoError(t, p.StillNeeds(1), "it ends no intent")
}

func TestReceiptThatARollbackLeftBehindIsNotRedacted(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	end := p.ended()
	p.back("before")
	p.snapshot("after")
	require.NoError(t, worldtest.ErrorOf(p.Prune(t.Context(), journal.SnapshotPruned{Name: "before", Actor: "ada"})))
	require.ErrorIs(t, p.StillNeeds(end), world.ErrStillNeeded)
}

func TestRedactionIsOnTheRecordWithItsReason(t *testing.T) {
	p := live(t)
	head := p.Status().Head.ID
	b := journal.Redacted{Blob: journal.Hash{1}, Actor: "ada"}
	require.ErrorIs(t, worldtest.ErrorOf(p.Redact(t.Context(), b)), world.ErrNoReason)
	require.Equal(t, head, p.Status().Head.ID)
	b.Reason = "asked for"
	require.NoError(t, worldtest.ErrorOf(p.Redact(t.Context(), b)))
	require.Equal(t, head+1, p.Status().Head.ID)
}
