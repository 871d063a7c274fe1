package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

func cellRecords(t testing.TB, s *Store, cell string, after journal.Seq) (all []journal.Seq) {
	t.Helper()
	for id, err := range s.CellRecords(cell, after) {
		require.NoError(t, err)
		all = append(all, id)
	}
	return all
}

func TestCellRecordsJoinIndexAndTail(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	ids := func(cell string) []journal.Seq { return cellRecords(t, s, cell, 0) }
	appendAll(t, s, w.batch("agent/a", "agent/a agent/ab agent/a", longPayload, "agent/ab"))
	require.Equal(t, []journal.Seq{1, 2}, ids("agent/a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	require.Equal(t, []journal.Seq{1, 2}, ids("agent/a"))
	appendAll(t, s, w.batch("agent/b", "agent/a"))
	require.Equal(t, []journal.Seq{1, 2, 6}, ids("agent/a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	appendAll(t, s, w.batch("agent/a"))
	require.Equal(t, []journal.Seq{1, 2, 6, 7}, ids("agent/a"))
	require.Equal(t, []journal.Seq{2, 4}, ids("agent/ab"))
	require.Equal(t, []journal.Seq{3}, ids("agent/blob"))
	require.Empty(t, ids("agent/none"))
	for _, err := range s.CellRecords("agent/a", 0) {
		require.NoError(t, err)
		break
	}
	require.NoError(t, s.Close())
}

// askedBy is the ledger entry of an intent.
func askedBy(t testing.TB, key byte, cell string) journal.IntentVersion {
	t.Helper()
	hash := journal.Hash{key}
	e := receipt.Entry{Version: 1, Intent: receipt.Intent{Key: receipt.Key{Hash: hash}, Cell: cell}}
	return journal.IntentVersion{Key: hash, Bytes: e.Append(nil)}
}

func TestRecordsOfAnIntentConcernItsCell(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	var a, b []journal.Seq
	check := func() {
		t.Helper()
		for after := range w.head.ID + 2 {
			require.Equal(t, since(a, after), cellRecords(t, s, "agent/a", after), "after %d", after)
			require.Equal(t, since(b, after), cellRecords(t, s, "agent/b", after), "after %d", after)
		}
		require.Empty(t, cellRecords(t, s, "agent/a", journal.Last))
	}
	appendAll(t, s, w.batch("agent/a", "@1=agent/a agent/a", "@2=agent/b", "@1", "@9 agent/b", "@2"))
	a, b = []journal.Seq{1, 2, 4}, []journal.Seq{5, 6}
	check()
	require.NoError(t, s.Checkpoint(&journal.Image{
		Head: w.head, Intents: []journal.IntentVersion{askedBy(t, '1', "agent/a"), askedBy(t, '2', "agent/b")},
	}))
	check()
	appendAll(t, s, w.batch("@2", "@3=agent/a", "@1", "@9", "@3")) // not indexed yet
	a, b = append(a, 9, 11), append(b, 7)
	check()
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Intents: []journal.IntentVersion{askedBy(t, '3', "agent/a")}}))
	check()
	appendAll(t, s, w.batch("@3", "@3 agent/b", "@1"))
	a, b = append(a, 12, 13, 14), append(b, 13)
	check()
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	check()
	require.NoError(t, s.Close())
}

func since(ids []journal.Seq, after journal.Seq) (late []journal.Seq) {
	for _, id := range ids {
		if id > after {
			late = append(late, id)
		}
	}
	return late
}

func TestALedgerEntryThatCannotBeReadIsNamed(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	appendAll(t, s, w.batch("a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Intents: []journal.IntentVersion{{Key: journal.Hash{'1'}, Bytes: []byte{0}}}}))
	appendAll(t, s, w.batch("@1"))
	var found *DamageError
	for _, err := range s.CellRecords("agent/a", 0) {
		require.ErrorAs(t, err, &found)
	}
	require.NotNil(t, found)
	require.Equal(t, "ledger entry 31"+zeros(31)+" at #1", found.What)
	require.NoError(t, s.Close())
}
