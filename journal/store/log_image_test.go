package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// slowLog takes an image only when it is let.
type slowLog struct {
	journal.Log
	gate chan struct{}
}

func (l *slowLog) PutImage(ctx context.Context, img *journal.KeptImage) error {
	<-l.gate
	return l.Log.PutImage(ctx, img)
}

// The world goes on while an image is put, however many others it makes meanwhile: of those the
// last is put after it.
func TestImageThatTheLogTakesSlowlyStopsNobody(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	slow := &slowLog{shared.Log(), make(chan struct{})}
	s, err := Create(testDir, sharedOptions(mem, slow))
	require.NoError(t, err)
	w := &writer{}
	for range 10 {
		appendAll(t, s, w.batch("agent/a"))
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
		s.settleImages()
	}
	close(slow.gate)
	require.NoError(t, s.Close())
	kept, err := shared.Log().Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, w.head, kept.Head)
}
