package world_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// schedule submits an event for a tick to come.
func (p *play) schedule(at manifest.Tick, o order) {
	p.t.Helper()
	data, err := canon.Marshal(o)
	require.NoError(p.t, err)
	_, err = p.World.World.Submit(context.Background(), world.Submission{Name: "go", Data: data, When: world.When{At: at}})
	require.NoError(p.t, err)
}

// ahead has much fall due for cells: events, and timers with tags and without.
func ahead(p *play) {
	p.t.Helper()
	for at := range manifest.Tick(6) {
		p.schedule(p.Status().Time+2+at, order{To: "a", Say: "later", Do: []act{{Timer: 3, Tag: "t"}, {Timer: 9}}})
		p.schedule(p.Status().Time+2+at, order{To: "b", Say: "later", Do: []act{{Timer: 4, Tag: "t"}}})
	}
	p.Step(3)
}

func lastImage(t *testing.T, j *worldtest.Journal) *journal.Image {
	t.Helper()
	img, err := j.Image(journal.Last)
	require.NoError(t, err)
	return img
}

func TestImageHasAnewOnlyWhatWasScheduledSince(t *testing.T) {
	p := live(t)
	ahead(p)
	p.snapshot("one")
	p.schedule(p.Status().Time+50, order{To: "b"})
	p.snapshot("two")
	var anew []string
	img := lastImage(t, p.Journal)
	for _, v := range img.Cells {
		if v.At == img.Head.ID {
			anew = append(anew, v.Cell)
		}
	}
	require.Equal(t, []string{"scheduled:bot/b"}, anew)
	require.Less(t, len(img.Core), 1000, "the core has none of it")
}

// A payload beside its record can be redacted once it has been handled.
func TestListsHoldNoPayloadThatHasFallenDueAndMayBeRedacted(t *testing.T) {
	for size, stays := range map[int]bool{100: true, journal.MaxInlineBytes - 50: false, journal.MaxInlineBytes + 1: false} {
		p := live(t)
		p.schedule(2, order{To: "a", Say: strings.Repeat("s", size), Do: []act{{Timer: 1, Tag: "t"}}})
		p.snapshot("before")
		p.Step(2)
		p.snapshot("after")
		held := slices.ContainsFunc(lastImage(t, p.Journal).Cells, func(v journal.CellVersion) bool {
			return strings.HasPrefix(v.Cell, "scheduled:") && strings.Contains(string(v.Bytes), "sss")
		})
		require.Equal(t, stays, held, size)
	}
}

// Cells of which all is due that ever fell due are as many as there are, and nobody has to know
// of them but a rollback to when they waited.
func TestListsInWhichAllIsDueLeaveMemory(t *testing.T) {
	const cells = 100
	lived := func(memory int) *worldtest.World {
		w := botsWith(t, worldtest.Options{Memory: memory, CheckpointRecords: 8})
		send := func(prefix string, timer uint64) {
			for i := range cells {
				data, err := canon.Marshal(order{To: fmt.Sprint(prefix, i), Do: []act{{Timer: timer, Tag: "t"}}})
				require.NoError(t, err)
				_, err = w.World.Submit(t.Context(), world.Submission{Name: "go", Data: data, When: world.When{At: w.Status().Time + 1 + manifest.Tick(i%3)}})
				require.NoError(t, err)
			}
		}
		send("a", 3)
		send("b", 9)
		w.Step(4)
		_, err := w.Snapshot(t.Context(), "before", "", "ada")
		require.NoError(t, err)
		w.Step(4)
		send("c", 1) // which is nothing to that snapshot
		w.Run()
		require.NoError(t, w.Checkpoint())
		for _, opened := range []bool{false, true} {
			if opened {
				w.Crash()
			}
			if memory == 1 {
				require.Zero(t, w.ListsInMemory(), "opened: %v", opened)
			}
		}
		_, _, err = w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Ack: true})
		require.NoError(t, err)
		w.Run()
		w.RequireReplay()
		return w
	}
	small, large := lived(1), lived(0)
	require.Equal(t, large.Journal.Records(), small.Journal.Records())
	require.Positive(t, small.RequireSpilling(1))
}
