package local_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/local"
)

// The world changes while it is verified, and the report is of what it was.
func TestWorldGoesOnWhileItIsVerified(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	began := false
	r, err := w.Verify(t.Context(), local.Verification{Progress: func(_, all uint64) {
		require.EqualValues(t, head.ID, all)
		if !began {
			began = true
			live(t, w)
			require.Greater(t, w.Status().Head.ID, head.ID)
		}
	}})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.EqualValues(t, head.ID, r.Records)
	require.Equal(t, head.Root, r.EventChainRootHash)
	sound(t, w)
	require.NoError(t, w.Close())
}

func TestVerificationEndsWithItsContext(t *testing.T) {
	dir, _ := lived(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := local.Verify(ctx, dir, local.Options{}, local.Verification{Progress: func(uint64, uint64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	w := open(t, dir)
	require.NoError(t, w.Close())
}

// What is exported beside a run is what was there when that began.
func TestWorldGoesOnWhileItIsExported(t *testing.T) {
	for _, format := range local.Formats() {
		dir, head := lived(t)
		w := open(t, dir)
		began, last := false, uint64(0)
		require.NoError(t, w.Export(io.Discard, format, func(done uint64) {
			if last = done; !began {
				began = true
				live(t, w)
			}
		}))
		require.EqualValues(t, head.ID, last)
		require.NoError(t, w.Close())
	}
}
