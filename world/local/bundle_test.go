package local_test

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func bundleOf(t *testing.T, w *local.World, o local.BundleOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, w.ExportBundle(t.Context(), &b, o))
	return b.Bytes()
}

func verified(t *testing.T, data []byte, v local.Verification) *verify.Report {
	t.Helper()
	r, err := local.VerifyBundle(t.Context(), bytes.NewReader(data), local.Options{}, v)
	require.NoError(t, err)
	return r
}

// What the store proves the bundle proves, without the store and without a secret.
func TestBundleProvesWhatTheStoreProves(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	defer func() { require.NoError(t, w.Close()) }()
	data := bundleOf(t, w, local.BundleOptions{})
	require.Equal(t, data, bundleOf(t, w, local.BundleOptions{}), "the same world has the same bundle")
	signers, err := w.Signers()
	require.NoError(t, err)
	stored, err := w.Verify(t.Context(), local.Verification{Trust: signers})
	require.NoError(t, err)
	require.True(t, stored.OK && stored.Trusted, stored.Faults)
	r := verified(t, data, local.Verification{Trust: signers})
	require.Empty(t, r.Faults)
	require.True(t, r.Trusted)
	require.Zero(t, r.Receipts.Checked)
	require.Equal(t, stored.Receipts.Checked, r.Receipts.Unverifiable)
	stored.Receipts, stored.Anchor = r.Receipts, nil
	require.Equal(t, stored, r)
	require.False(t, verified(t, data, local.Verification{}).Trusted)
	other := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	require.False(t, verified(t, data, local.Verification{Trust: []ed25519.PublicKey{other}}).Trusted)
	keys, err := w.Keys().Encode()
	require.NoError(t, err)
	require.NotContains(t, string(data), string(keys))
}

// Whoever has kept a checkpoint finds it in what is signed later, and only there.
func TestKeptCheckpointIsOfTheHistory(t *testing.T) {
	_, w, kept := checkpointed(t)
	live(t, w)
	with := local.Verification{Kept: [][]byte{kept.Note}}
	require.Empty(t, verified(t, bundleOf(t, w, local.BundleOptions{}), with).Faults)
	short := bundleOf(t, w, local.BundleOptions{To: journal.Seq(kept.Size) - 1})
	require.Empty(t, verified(t, short, local.Verification{}).Faults)
	require.NotEmpty(t, verified(t, short, with).Faults, "what it was signed over is missing")
	p, err := w.ProveConsistency(kept.Note)
	require.NoError(t, err)
	proven := shown(t, p, w)
	require.Equal(t, verify.ProofConsistency, proven.Kind)
	require.NoError(t, w.Close())

	other := open(t, create(t))
	_, err = other.Submit(t.Context(), "go", map[string]any{"to": "b"})
	require.NoError(t, err)
	live(t, other)
	live(t, other)
	_, err = other.ProveConsistency(kept.Note)
	require.ErrorIs(t, err, local.ErrOtherHistory)
	require.NoError(t, other.Close())
}

func TestBundleOfARange(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	defer func() { require.NoError(t, w.Close()) }()
	r := verified(t, bundleOf(t, w, local.BundleOptions{From: 3, To: head.ID - 2}), local.Verification{})
	require.Empty(t, r.Faults)
	require.EqualValues(t, 3, r.From)
	require.EqualValues(t, head.ID-2, r.Records)
	require.False(t, r.Replay.OK)
	for _, o := range []local.BundleOptions{{From: 5, To: 4}, {To: head.ID + 1}, {Withhold: []journal.Seq{head.ID + 1}}} {
		require.ErrorIs(t, w.ExportBundle(t.Context(), new(bytes.Buffer), o), local.ErrNoRange)
	}
	require.ErrorIs(t, w.ExportBundle(t.Context(), new(bytes.Buffer), local.BundleOptions{Withhold: []journal.Seq{1}}), local.ErrInline)
}

// A payload that is not for everybody is left out, and nothing else with it.
func TestWithheldPayloadIsNotInTheBundle(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	defer func() { require.NoError(t, w.Close()) }()
	large := journal.Seq(0)
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		if large == 0 && !s.Record.Blob.IsZero() {
			large = s.ID
		}
	}
	require.NotZero(t, large)
	r := verified(t, bundleOf(t, w, local.BundleOptions{Withhold: []journal.Seq{large}}), local.Verification{})
	require.Empty(t, r.Faults)
	require.EqualValues(t, 1, r.Withheld)
	require.NotEmpty(t, r.Replay.Gaps)
}

func shown(t *testing.T, p *verify.Proof, w *local.World) *verify.Proven {
	t.Helper()
	data, err := p.Encode()
	require.NoError(t, err)
	signers, err := w.Signers()
	require.NoError(t, err)
	proven, err := verify.CheckProof(data, signers)
	require.NoError(t, err)
	require.Empty(t, proven.Faults)
	require.True(t, proven.OK && proven.Trusted)
	return proven
}

func TestProofsOfAWorld(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	defer func() { require.NoError(t, w.Close()) }()
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(t.Context(), "s", "", "ada")) })
	require.NoError(t, err)
	live(t, w)
	var intents []receipt.Entry
	w.View(func(at *world.Moment) { intents = at.Intents() })
	proven := map[receipt.State]bool{}
	for _, e := range intents {
		p, err := w.ProveReceipt(e.Intent.Key)
		proven[e.State] = true
		if e.State != receipt.StateCommitted {
			require.ErrorIs(t, err, local.ErrNoReceipt)
			continue
		}
		require.NoError(t, err)
		r := shown(t, p, w)
		require.Equal(t, verify.ProofReceipt, r.Kind)
		require.Equal(t, e.Intent.Key, r.Receipt.Key)
	}
	require.True(t, proven[receipt.StateCommitted] && proven[receipt.StateDenied])
	_, err = w.ProveReceipt(receipt.Key{})
	require.ErrorIs(t, err, journal.ErrNotFound)

	cell := reducer.Cell{Reducer: "bot", Key: "a"}
	p, err := w.ProveCell(cell, "s")
	require.NoError(t, err)
	require.NotEmpty(t, shown(t, p, w).Cell.State)
	cell.Key = "nobody"
	p, err = w.ProveCell(cell, "s")
	require.NoError(t, err)
	require.False(t, shown(t, p, w).Cell.Present)
	_, err = w.ProveCell(cell, "another")
	require.ErrorIs(t, err, snapshot.ErrNoSnapshot)

	p, err = w.ProveRecord(1)
	require.NoError(t, err)
	require.Equal(t, verify.ProofRecord, shown(t, p, w).Kind)
	_, err = w.ProveRecord(w.Status().Head.ID + 1)
	require.ErrorIs(t, err, journal.ErrNotFound)
}
