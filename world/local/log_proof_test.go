package local_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestWhoLooksProvesAndKeepsNothing: what is signed for somebody else takes the keys, and not the world.
func TestWhoLooksProvesAndKeepsNothing(t *testing.T) {
	shared = &logtest.Server{}
	defer func() { shared = nil }()
	dir, _ := lived(t)
	w := open(t, dir)
	first, err := w.Checkpoint()
	require.NoError(t, err)
	live(t, w)
	look, err := local.OpenReadOnly(dir, inLog(local.Options{}))
	require.NoError(t, err)
	require.True(t, look.Keys().CanSign())
	signers, err := look.Signers()
	require.NoError(t, err)

	p, err := look.ProveRecord(3)
	require.NoError(t, err)
	shown(t, p, look)
	_, err = look.ProveConsistency(first.Note)
	require.NoError(t, err)
	for _, part := range []local.BundleOptions{{}, {From: 2, To: 2}, {To: journal.Seq(first.Size)}} {
		r := verified(t, bundleOf(t, look, part), local.Verification{Trust: signers})
		require.Empty(t, r.Faults)
		require.True(t, r.Trusted)
	}
	_, err = look.Submit(t.Context(), "go", map[string]any{"to": "a"})
	require.ErrorIs(t, err, local.ErrNoKeys)
	require.NoError(t, look.Close())

	live(t, w) // it is the owner's still
	for signed, err := range w.Checkpoints(1, journal.Last) {
		require.NoError(t, err)
		require.Equal(t, first.Size, signed.Size)
	}
	require.NoError(t, w.Close())
}
