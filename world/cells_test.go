package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// Whichever read of what was left to the image fails, nothing that follows from that becomes
// durable, and the world goes on when it is opened again.
func TestWhatCannotBeReadBackEndsTheWorldInMemory(t *testing.T) {
	undisturbed, reads := liveOnImages(t, 0)
	require.Greater(t, reads, 10, "cells left memory")
	for n := range reads {
		got, _ := liveOnImages(t, n+1)
		require.Equal(t, undisturbed, got, "read %d fails", n+1)
	}
}

// liveOnImages lives a world whose cells leave memory whenever they can. The n-th read of
// what they left fails.
func liveOnImages(t *testing.T, n int) (came result, reads int) {
	j := new(worldtest.Journal)
	w := botsWith(t, worldtest.Options{Journal: j, BatchRecords: 1, CheckpointRecords: 1, Memory: 1}, small)
	fail := func() error {
		if reads++; reads == n {
			return worldtest.ErrInjected
		}
		return nil
	}
	do := func(durable func(before journal.Seq) bool, change func() error) {
		j.FailRead = fail
		before := j.Head().ID
		for {
			err := change()
			if err == nil {
				break
			}
			require.ErrorIs(t, err, worldtest.ErrInjected)
			require.ErrorIs(t, w.World.Run(t.Context()), worldtest.ErrInjected, "it has ended")
			j.FailRead = nil
			if w.Crash(); durable(before) {
				break
			}
			j.FailRead = fail
		}
		j.FailRead = nil
	}
	run := func() {
		do(func(journal.Seq) bool { return false }, func() error { return w.World.Run(t.Context()) })
	}
	for i := range 12 {
		o := order{To: fmt.Sprint("c", i%4), Do: []act{{Effect: "tool.a", Param: "x"}, {Emit: "ping", Key: fmt.Sprint("c", (i+1)%4)}}}
		do(func(before journal.Seq) bool { return j.Head().ID > before }, func() error { return w.TrySubmit("go", o) })
		run()
	}
	w.RequireReplay()
	return result{head: w.Status().Head, root: w.StateRoot()}, reads
}
