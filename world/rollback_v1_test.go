package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// TestOnlyVersion1NotesWhatWasLetThrough: it asks for nothing else, and no other rule
// asks for it.
func TestOnlyVersion1NotesWhatWasLetThrough(t *testing.T) {
	for v, matched := range map[uint64]bool{1: true, journal.RollbackVersion: false} {
		k := newKernel(nil, false)
		e := k.ledger.Emit(receipt.Intent{Key: receipt.NewKey("w", "s", "pay", nil), Cell: "bot/a", Kind: "pay"}, 2)
		k.ledger.End(e, receipt.OutcomeSideEffectCommitted, 3)
		k.rollbacks, k.rollbackV = []turning{{Record: 4, To: 1}}, v
		k.abandon(&journal.RolledBack{Version: journal.V(v), Fresh: true}, &past{left: []*receipt.Entry{e}}, 4)
		require.True(t, e.Abandoned)
		require.Equal(t, matched, e.Matched, "version %d", v)
		require.Equal(t, matched, k.ledger.LeftV1(&e.Intent) == nil)
	}
}
