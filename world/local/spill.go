package local

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world"
)

// spillPrefix begins the names of the directories beside the store where replays put aside
// what does not fit in memory. Each is gone when the replay ends; what a process leaves that is
// killed, the next owner of the world removes.
const spillPrefix = "spill-"

// spilling says how much of the world that is computed again is in memory: so many bytes, as
// Options have it where that is 0.
func (lw *World) spilling(memory int) world.Spilling {
	return world.Spilling{
		Memory: cmp.Or(memory, lw.opts.Memory, world.DefaultMemory),
		Spill: func() (world.Spill, error) {
			return store.NewSpill(filepath.Join(cmp.Or(lw.aside, lw.hidden), fmt.Sprint(spillPrefix, lw.spills.Add(1))), store.Options{})
		},
	}
}

// dropSpills removes what a process has left that was killed. hidden is this one's. What cannot
// be removed takes room, and nobody reads it.
func dropSpills(hidden string) {
	left, _ := filepath.Glob(filepath.Join(hidden, spillPrefix+"*")) // the pattern is one
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}
