package verify_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// partOf returns the records of a journal from one on, and where they begin.
func partOf(j *worldtest.Journal, id string, first journal.Seq) (*tampered, verify.Begin) {
	x := tamper(j)
	past := x.records[:first-1]
	x.records = slices.Clone(x.records[first-1:])
	return x, verify.Begin{First: first, Root: past[len(past)-1].Root, Nodes: worldtest.TreeOf(past).Nodes(), World: id}
}

// relinkFrom computes the chain of a part anew.
func (x *tampered) relinkFrom(t testing.TB, root journal.Hash) {
	t.Helper()
	chain := canon.ResumeChain(root)
	for i := range x.records {
		s := &x.records[i]
		e, err := canon.DecodeEnvelope(s.Bytes)
		require.NoError(t, err)
		s.Root = chain.Add(e.ID, e.Kind, s.Bytes)
	}
}

func TestEveryPartOfAGoodJournalIsGood(t *testing.T) {
	p := told(t)
	all := p.Journal.Records()
	head := p.Status().Head
	whole := withKeys(t, p.Journal)
	for first := journal.Seq(2); first <= head.ID; first++ {
		x, begin := partOf(p.Journal, "test", first)
		done := uint64(0)
		r := run(t, x, verify.Config{
			Begin: begin, Keys: worldtest.Keyring(t, "test"), Anchor: head, Trust: publics(1), Sealed: true,
			Checkpoints: notes(sign(t, "test", all, 1)), Kept: [][]byte{sign(t, "test", all[:first-1], 1)},
			Progress: func(n uint64) { done = n },
		})
		require.Empty(t, r.Faults, "from #%d", first)
		require.True(t, r.Trusted)
		require.Equal(t, first, r.From)
		require.EqualValues(t, head.ID, r.Records)
		require.EqualValues(t, head.ID, done)
		require.Equal(t, head.Root, r.EventChainRootHash)
		require.Equal(t, "test", r.WorldID)
		require.True(t, r.Anchor.OK)
		require.EqualValues(t, 2, r.Checkpoints.Checked)
		require.LessOrEqual(t, r.Receipts.Checked, whole.Receipts.Checked)
		require.Zero(t, r.Receipts.Unverifiable)

		require.Zero(t, r.ExecutionHash)
		require.Zero(t, r.StateRoot)
		require.Zero(t, r.Snapshots)
		require.False(t, r.Ledger.OK, "nothing is known of it")
		require.Equal(t, verify.ReplayProof{Error: "not checked: the journal begins with record #" + place(first)[len("record #"):], Gaps: []verify.Gap{}}, r.Replay)
	}
}

func TestPartThatWasChangedIsNamed(t *testing.T) {
	p := told(t)
	all := p.Journal.Records()
	finished, _, _ := find(t, p.Journal, journal.KindFinished)
	made, _, _ := find(t, p.Journal, journal.KindSnapshot)
	last := placeOfHead(len(all))
	const first = 4
	for name, c := range map[string]struct {
		change func(t *testing.T, x *tampered, b *verify.Begin)
		found  []string
	}{
		"a record": {func(_ *testing.T, x *tampered, _ *verify.Begin) {
			x.records[1].Bytes = bytes.Clone(x.records[1].Bytes)
			x.records[1].Bytes[2] ^= 1
		}, []string{place(first + 1), last}},
		"a record and the chain": {func(t *testing.T, x *tampered, b *verify.Begin) {
			e, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
			require.NoError(t, err)
			e.Time++
			x.records[len(x.records)-1].Bytes = canon.AppendEnvelope(nil, e)
			x.relinkFrom(t, b.Root)
		}, []string{last}},
		"its number": {func(t *testing.T, x *tampered, b *verify.Begin) {
			e, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
			require.NoError(t, err)
			e.ID++
			x.records[len(x.records)-1].Bytes = canon.AppendEnvelope(nil, e)
			x.relinkFrom(t, b.Root)
		}, []string{place(journal.Seq(len(all))), last}},
		"a receipt": {func(t *testing.T, x *tampered, b *verify.Begin) {
			at := int(finished - first)
			e, err := canon.DecodeEnvelope(x.records[at].Bytes)
			require.NoError(t, err)
			e.Payload = bytes.Replace(e.Payload, []byte("started_at"), []byte("startef_at"), 1)
			x.records[at].Bytes = canon.AppendEnvelope(nil, e)
			x.relinkFrom(t, b.Root)
		}, []string{place(finished), place(made), last}},
		"the chain root before it": {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.Root[9] ^= 1 }, []string{place(first)}},
		"the chain root and all links": {func(t *testing.T, x *tampered, b *verify.Begin) {
			b.Root[9] ^= 1
			x.relinkFrom(t, b.Root)
		}, []string{place(made)}},
		"a node":        {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.Nodes[0][0] ^= 1 }, []string{last}},
		"no node":       {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.Nodes = nil }, []string{place(first - 1), last}},
		"its world":     {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.World = "city" }, []string{last}},
		"its beginning": {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.First-- }, []string{place(first), last}},
		"no record":     {func(_ *testing.T, x *tampered, _ *verify.Begin) { x.records = nil }, []string{place(first), last}},
	} {
		t.Run(name, func(t *testing.T) {
			x, begin := partOf(p.Journal, "test", first)
			c.change(t, x, &begin)
			r := run(t, x, verify.Config{Begin: begin, Trust: publics(1), Checkpoints: notes(sign(t, "test", all, 1))})
			for _, place := range c.found {
				require.Contains(t, places(r), place)
			}
			require.Equal(t, slices.Contains(c.found, last), !r.Trusted)
		})
	}
	x, begin := partOf(p.Journal, "test", first)
	require.Contains(t, places(run(t, x, verify.Config{})), place(first), "a part that does not say so is a fault")
	begin.First = 1
	require.Contains(t, places(run(t, x, verify.Config{Begin: begin})), place(first))
}

func TestPartSaysNothingOfWhatIsBeforeIt(t *testing.T) {
	p := told(t)
	x, begin := partOf(p.Journal, "test", 5)
	r := run(t, x, verify.Config{Begin: begin, Kept: [][]byte{sign(t, "test", p.Journal.Records()[:3], 1)}, Trust: publics(1)})
	require.Equal(t, []string{"kept " + placeOfHead(3)}, places(r))
}

// Receipts and checkpoints from before a fork are its parent's.
func TestPartThatAForkIsIn(t *testing.T) {
	p := parent(t)
	before := journal.Seq(len(p.Journal.Records()))
	child := p.fork(journal.ForkHold)
	all := child.Journal.Records()
	for first := journal.Seq(2); first <= before+2; first++ {
		x, begin := partOf(child.Journal, "child", first)
		list := [][]byte{sign(t, "child", all, 1)}
		if first <= before+1 {
			list = append([][]byte{sign(t, "test", all[:before], 1)}, list...)
		}
		r := run(t, x, verify.Config{
			Begin: begin, Keys: worldtest.Keyring(t, "child"), Signers: publics(1), Checkpoints: notes(list...),
		})
		require.Empty(t, r.Faults, "from #%d", first)
		require.Equal(t, "child", r.WorldID)
		if first <= before+1 {
			begin.World = "test"
			require.Equal(t, []string{"world"}, places(run(t, x, verify.Config{Begin: begin})), "from #%d", first)
		}
	}
}

func TestMalformedNodesAreAFaultAndNotAnError(t *testing.T) {
	p := told(t)
	x, begin := partOf(p.Journal, "test", 3)
	begin.Nodes = []checkpoint.Hash{{}, {}, {}}
	require.Equal(t, []string{place(2)}, places(run(t, x, verify.Config{Begin: begin})))
}
